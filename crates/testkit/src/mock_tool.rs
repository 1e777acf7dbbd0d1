//! A tool that keeps its calls.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;
use toolpost_model::{
    ClassFact, Declaration, EffectClass, Effects, Tool, ToolCall, ToolFailure, ToolOutput,
};

/// A tool with a fixed answer that counts and keeps its calls. Clones share them.
#[derive(Clone)]
pub struct MockNativeTool {
    declaration: Declaration,
    answer: Result<ToolOutput, ToolFailure>,
    effects: Option<Effects>,
    gate: Option<MockToolGate>,
    memory: Arc<MockCallLog>,
}

#[derive(Default)]
struct MockCallLog {
    calls: AtomicUsize,
    inputs: Mutex<Vec<Value>>,
}

/// Holds calls of a [`MockNativeTool`] until the test lets them through: a fixed order without sleeping.
#[derive(Clone)]
pub struct MockToolGate {
    entered: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl MockToolGate {
    /// A closed gate.
    #[expect(clippy::new_without_default, reason = "a gate is made on purpose")]
    pub fn new() -> Self {
        Self {
            entered: Arc::new(Semaphore::new(0)),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits until `count` more calls are at the gate.
    pub async fn entered(&self, count: u32) {
        self.entered
            .acquire_many(count)
            .await
            .expect("the gate is never closed")
            .forget();
    }

    /// Lets `count` calls through.
    pub fn let_through(&self, count: usize) {
        self.open.add_permits(count);
    }
}

impl MockNativeTool {
    /// A tool `namespace.name` of class read that takes any object and returns no text.
    pub fn named(id: &str) -> Self {
        let mut declaration = Declaration::new(id.parse().expect("a tool id"), "A tool for tests");
        declaration.interface.safety.class = ClassFact::Always(EffectClass::Read);
        Self {
            declaration,
            answer: Ok(ToolOutput::default()),
            effects: None,
            gate: None,
            memory: Arc::default(),
        }
    }

    /// Sets the answer.
    #[must_use]
    pub fn output(mut self, output: impl Into<ToolOutput>) -> Self {
        self.answer = Ok(output.into());
        self
    }

    /// Makes every call fail.
    #[must_use]
    pub fn failing(mut self, failure: ToolFailure) -> Self {
        self.answer = Err(failure);
        self
    }

    /// Sets the effect class.
    #[must_use]
    pub fn class(mut self, class: EffectClass) -> Self {
        self.declaration.interface.safety.class = ClassFact::Always(class);
        self
    }

    /// Sets the effects of each call.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.effects = Some(effects);
        self
    }

    /// Sets the input schema.
    #[must_use]
    pub fn schema(self, schema: Value) -> Self {
        self.declare(|declaration| declaration.input.schema = Arc::new(schema))
    }

    /// Changes other parts of the declaration.
    #[must_use]
    pub fn declare(mut self, change: impl FnOnce(&mut Declaration)) -> Self {
        change(&mut self.declaration);
        self
    }

    /// Makes calls wait at the gate.
    #[must_use]
    pub fn gate(mut self, gate: &MockToolGate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// The number of runs.
    pub fn call_count(&self) -> usize {
        self.memory.calls.load(Ordering::SeqCst)
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> Vec<Value> {
        self.memory.inputs.lock().clone()
    }
}

impl Tool for MockNativeTool {
    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    fn effects(&self, _: &toolpost_model::CallInput) -> Option<Effects> {
        self.effects.clone()
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        self.memory.calls.fetch_add(1, Ordering::SeqCst);
        let input = call.input.arguments().value().clone();
        self.memory.inputs.lock().push(input);
        if let Some(gate) = &self.gate {
            gate.entered.add_permits(1);
            gate.open
                .acquire()
                .await
                .expect("the gate is never closed")
                .forget();
        }
        self.answer.clone()
    }
}
