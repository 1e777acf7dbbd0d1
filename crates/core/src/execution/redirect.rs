//! Requests that a running call is led to by the answer to its own. Each is judged as if the call had named it, so that
//! nobody comes by way of an allowed address to one that is not.

use std::sync::Arc;

use serde_json::Value;
use toolpost_model::{
    ArgumentKind, Arguments, Behavior, DecisionReason, Effects, PermissionInput, Principal,
    ReasonType,
};

use crate::{
    catalog::CatalogEntry,
    invocation::PipelineCall,
    permission::{PermissionFacts, PolicyEngine},
};

/// What a call was decided on.
pub(crate) struct RedirectCheck {
    entry: Arc<CatalogEntry>,
    arguments: Value,
    effects: Effects,
    /// Why a person was asked, where one was.
    asked_because: Option<DecisionReason>,
}

impl RedirectCheck {
    /// `None`: the call names no URL, so it can be led nowhere.
    pub(crate) fn of(call: &PipelineCall, effects: &Effects) -> Option<Self> {
        let resolved = call.findings.resolved.as_ref()?;
        let input = call.inputs.permission.as_ref()?;
        let entry = Arc::clone(&resolved.entry);
        let meanings = &entry.declaration().interface.permission.arguments;
        meanings
            .iter()
            .find(|meaning| meaning.kind == ArgumentKind::Url)?;
        let decision = call.findings.decision.as_ref()?;
        let asked_because = (decision.behavior == Behavior::Ask).then(|| decision.reason.clone());
        Some(Self {
            arguments: input.arguments().value().clone(),
            effects: effects.clone(),
            entry,
            asked_because,
        })
    }

    /// Whether the call may go on to `url`.
    pub(crate) fn allows(
        &self,
        engine: &dyn PolicyEngine,
        principal: &Principal,
        (method, url): (&str, &str),
    ) -> bool {
        let declaration = self.entry.declaration();
        let mut arguments = self.arguments.clone();
        for meaning in &declaration.interface.permission.arguments {
            let text = match meaning.kind {
                ArgumentKind::Url => url,
                ArgumentKind::Method => method,
                ArgumentKind::Command
                | ArgumentKind::Words
                | ArgumentKind::Directory
                | ArgumentKind::Environment
                | ArgumentKind::ReadPath
                | ArgumentKind::WritePath => continue,
            };
            put(&mut arguments, &meaning.pointer, text);
        }
        let input = PermissionInput::new(Arguments::from_value(arguments));
        let decision = engine.decide(&PermissionFacts {
            declaration,
            input: Some(&input),
            effects: &self.effects,
            principal,
            opinions: &[],
            delegated: &[],
            at: crate::port::now(),
        });
        match decision.behavior {
            Behavior::Allow => true,
            Behavior::Deny => false,
            // Who was asked about the call let it go where it leads, but not past a rule that was not among the reasons.
            Behavior::Ask => self.asked_because.as_ref().is_some_and(|asked| {
                decision.reason.kind != ReasonType::Rule || decision.reason.rule == asked.rule
            }),
        }
    }
}

/// Sets an argument, also one that was left out.
fn put(arguments: &mut Value, pointer: &str, text: &str) {
    if let Some(place) = arguments.pointer_mut(pointer) {
        *place = Value::from(text);
        return;
    }
    let name = pointer
        .trim_start_matches('/')
        .replace("~1", "/")
        .replace("~0", "~");
    if let Some(object) = arguments.as_object_mut()
        && pointer.matches('/').count() == 1
    {
        object.insert(name, Value::from(text));
    }
}
