//! Arguments as others may see them.

use std::sync::Arc;

use serde_json::Value;
use toolpost_model::{Arguments, Redactions};

use super::{
    ARGUMENT_MARK, CallRedactor, HostRedactor, KnownSecrets, MIN_SECRET, SensitiveArgument,
};
use crate::execution::credentials::reference;

/// Arguments as others may see them, and what that is not.
pub(crate) struct RedactedArguments {
    pub(crate) shown: Arguments,
    /// Texts of sensitive fields, for whoever must keep them out of everything else.
    pub(crate) secrets: Vec<String>,
    /// What may be said of the sensitive fields.
    pub(crate) sensitive: Vec<SensitiveArgument>,
}

/// Takes sensitive fields and secrets out of arguments.
pub(crate) fn observable(
    arguments: &Arguments,
    sensitive: &[String],
    host: &HostRedactor,
) -> RedactedArguments {
    observable_after(None, arguments, sensitive, host)
}

/// The same for a call that has secrets without them. `before` is where they are: those of the call
/// that made it, or of arguments that these took the place of.
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
        // What stands for a credential tells nothing.
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
