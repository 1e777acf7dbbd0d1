//! References to credentials: `{"$cred": "name"}` anywhere in a call's arguments stands for a value of the operator's
//! configuration.
//!
//! Rules, hooks, approvals, records and events get the reference. Checks that look at arguments before the run (the
//! schema, the tool's own checks, its effects) get the text `credential:name` in its place. The value is filled in when
//! the tool starts, and only for the tools that the operator lists. Filling it in earlier and redacting it later was
//! rejected: a rule would match the reference while the request goes to the address in the value.

use std::borrow::Cow;

use serde_json::Value;
use toolpost_model::{
    AccessKind, Arguments, CallInput, Declaration, EffectOrigin, Secret, ToolPattern,
};

use crate::{
    catalog::CatalogEntry,
    result::{self, CallEnding},
};

/// The only key of a reference.
const KEY: &str = "$cred";

/// A credential and the tools that may get it.
#[derive(Clone, Debug)]
pub struct CredentialGrant {
    /// The name in references.
    pub name: String,
    /// The secret value. The host's redactor should have it too.
    pub value: Secret,
    /// The tools by id. Compiled-in tools can also be listed by name; the self-chosen name of an outside tool does not
    /// count.
    pub tools: Vec<ToolPattern>,
}

#[derive(Default)]
pub(crate) struct CredentialGrants(Vec<CredentialGrant>);

/// The name in a reference, if the value is one.
pub(crate) fn reference(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(KEY)?.as_str()
}

/// The input for checks before the run, with text in place of references.
pub(crate) fn with_words(input: &CallInput) -> Cow<'_, CallInput> {
    let arguments = input.arguments();
    if !holds_reference(arguments.value()) {
        return Cow::Borrowed(input);
    }
    let mut value = arguments.value().clone();
    replace(&mut value, &mut |name| format!("credential:{name}"));
    Cow::Owned(CallInput::new(Arguments::from_value(value)))
}

impl CredentialGrants {
    pub(crate) fn new(grants: Vec<CredentialGrant>) -> Self {
        Self(grants)
    }

    /// The names of the credentials that calls of this tool may refer to.
    pub(crate) fn names_for(&self, tool: &Declaration) -> Vec<String> {
        let is_granted =
            |grant: &&CredentialGrant| grant.tools.iter().any(|tools| tools.names_exactly(tool));
        self.0
            .iter()
            .filter(is_granted)
            .map(|grant| grant.name.clone())
            .collect()
    }

    /// Checks that the tool may use each credential in the arguments.
    pub(crate) fn check(&self, entry: &CatalogEntry, arguments: &Value) -> Result<(), CallEnding> {
        let mut wanted = Vec::new();
        references(arguments, &mut String::new(), &mut wanted);
        wanted
            .iter()
            .try_for_each(|(pointer, name)| self.grant(entry, pointer, name).map(|_| ()))
    }

    /// The input with values in place of references, and these values. Only for the run of the tool.
    pub(crate) fn filled(
        &self,
        entry: &CatalogEntry,
        input: &CallInput,
    ) -> Result<Option<(CallInput, Vec<String>)>, CallEnding> {
        let arguments = input.arguments().value();
        if !holds_reference(arguments) {
            return Ok(None);
        }
        self.check(entry, arguments)?;
        let mut value = arguments.clone();
        let mut used = Vec::new();
        replace(&mut value, &mut |name| {
            let found = self.0.iter().find(|grant| grant.name == name);
            let text = found
                .map(|grant| grant.value.reveal().to_owned())
                .unwrap_or_default();
            used.push(text.clone());
            text
        });
        Ok(Some((CallInput::new(Arguments::from_value(value)), used)))
    }

    fn grant(
        &self,
        entry: &CatalogEntry,
        pointer: &str,
        name: &str,
    ) -> Result<&CredentialGrant, CallEnding> {
        let Some(grant) = self.0.iter().find(|grant| grant.name == name) else {
            return Err(result::credential_missing(pointer, name));
        };
        if !grant
            .tools
            .iter()
            .any(|pattern| pattern.names_exactly(entry.declaration()))
        {
            return Err(result::credential_not_granted(pointer, name, entry.name()));
        }
        // A native tool that takes credentials by name binds them to URLs as well. A reference would bypass that check.
        let declared = entry.declaration();
        if entry.origin == EffectOrigin::HostCode
            && declared
                .interface
                .permission
                .access
                .contains(&AccessKind::Credential)
        {
            return Err(result::credential_by_name(pointer, name, entry.name()));
        }
        // Rules decide on the text of commands, paths and URLs, so this text must not change before the run.
        let meanings = &declared.interface.permission.arguments;
        let within = |outer: &str| {
            pointer
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if meanings.iter().any(|meaning| within(&meaning.pointer)) {
            return Err(result::credential_out_of_place(pointer, name));
        }
        Ok(grant)
    }
}

fn holds_reference(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_reference),
        Value::Object(object) => reference(value).is_some() || object.values().any(holds_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn references(value: &Value, pointer: &mut String, found: &mut Vec<(String, String)>) {
    if let Some(name) = reference(value) {
        found.push((pointer.clone(), name.to_owned()));
        return;
    }
    let length = pointer.len();
    let mut at = |key: &str, inner: &Value| {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        references(inner, pointer, found);
        pointer.truncate(length);
    };
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(place, item)| at(&place.to_string(), item));
        }
        Value::Object(object) => object.iter().for_each(|(key, inner)| at(key, inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace(value: &mut Value, with: &mut impl FnMut(&str) -> String) {
    if let Some(name) = reference(value) {
        *value = Value::String(with(name));
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, with)),
        Value::Object(object) => object.values_mut().for_each(|inner| replace(inner, with)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
