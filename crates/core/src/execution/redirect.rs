//! The check of redirects: each further request of a running call is decided as if the call had named its URL.
//! Otherwise an allowed address could redirect the call to a denied one.

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

/// The facts of the call's decision.
pub(crate) struct RedirectCheck {
    entry: Arc<CatalogEntry>,
    arguments: Value,
    effects: Effects,
    /// The reason for the question, if an operator was asked.
    asked_because: Option<DecisionReason>,
}

impl RedirectCheck {
    /// `None` if the call names no URL and so makes no requests that rules could match.
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

    /// Whether the call may follow a redirect to `url`.
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
            // An approval of the call covers its redirects, but not past a rule that the operator was not asked about.
            Behavior::Ask => self.asked_because.as_ref().is_some_and(|asked| {
                decision.reason.kind != ReasonType::Rule || decision.reason.rule == asked.rule
            }),
        }
    }
}

/// Sets an argument, even if the call omitted it.
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
