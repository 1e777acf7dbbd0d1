//! The observable arguments of a call.

use std::sync::Arc;

use serde_json::Value;
use toolpost_model::{Arguments, Redactions};

use super::{
    ARGUMENT_MARK, CallRedactor, HostRedactor, KnownSecrets, MIN_SECRET, SensitiveArgument,
};
use crate::execution::credentials::reference;

/// The observable arguments, and the facts about their secrets.
pub(crate) struct RedactedArguments {
    pub(crate) shown: Arguments,
    /// Texts of sensitive fields, which the call's redactor must remove everywhere else.
    pub(crate) secrets: Vec<String>,
    /// Length and keyed hash of each sensitive field.
    pub(crate) sensitive: Vec<SensitiveArgument>,
}

/// Removes sensitive fields and secrets from arguments.
pub(crate) fn observable(
    arguments: &Arguments,
    sensitive: &[String],
    host: &HostRedactor,
) -> RedactedArguments {
    observable_after(None, arguments, sensitive, host)
}

/// The same for a call with further secrets. `before` holds them: secrets of the calling call, or of the arguments that
/// these replace.
pub(crate) fn observable_after(
    before: Option<&Arc<KnownSecrets>>,
    arguments: &Arguments,
    sensitive: &[String],
    host: &HostRedactor,
) -> RedactedArguments {
    let mut secrets = Vec::new();
    let mut described = Vec::new();
    let mut shown: Option<Value> = None;
    for pointer in sensitive {
        let value = shown.get_or_insert_with(|| arguments.value().clone());
        // A reference to a credential reveals nothing about it.
        let place = value
            .pointer_mut(pointer)
            .filter(|place| reference(place).is_none());
        if let Some(place) = place {
            collect_texts(place, &mut secrets);
            described.push(host.describe(pointer, place));
            *place = Value::String(ARGUMENT_MARK.to_owned());
        }
    }
    let own = match before {
        Some(before) if secrets.is_empty() => Some(Arc::clone(before)),
        Some(before) => Some(Arc::new(KnownSecrets::arguments(
            &[before.texts(), &secrets].concat(),
        ))),
        None => (!secrets.is_empty()).then(|| Arc::new(KnownSecrets::arguments(&secrets))),
    };
    let redactor = CallRedactor {
        own,
        ..host.of_no_call()
    };
    if shown.is_none() && !redactor.finds(arguments.value()) {
        return RedactedArguments {
            shown: arguments.clone(),
            secrets,
            sensitive: described,
        };
    }
    let mut value = shown.unwrap_or_else(|| arguments.value().clone());
    redactor.value(&mut value, &mut Redactions::default());
    RedactedArguments {
        shown: Arguments::from_value(value),
        secrets,
        sensitive: described,
    }
}

fn collect_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= MIN_SECRET => found.push(text.clone()),
        Value::Number(number) if number.to_string().len() >= MIN_SECRET => {
            found.push(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Value::Object(object) => object
            .values()
            .for_each(|inner| collect_texts(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
