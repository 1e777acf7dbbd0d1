//! Arguments as others may see them.

use std::sync::Arc;

use serde_json::Value;
use toolpost_model::{Arguments, Redactions};

use super::{ARGUMENT_MARK, CallRedactor, KnownSecrets, MIN_SECRET, Redactor};

/// Arguments as others may see them, and the secrets that were taken out.
pub(crate) fn observable(
    arguments: &Arguments,
    sensitive: &[String],
    host: &Arc<dyn Redactor>,
) -> (Arguments, Vec<String>) {
    let mut secrets = Vec::new();
    let mut shown: Option<Value> = None;
    for pointer in sensitive {
        let value = shown.get_or_insert_with(|| arguments.value().clone());
        if let Some(place) = value.pointer_mut(pointer) {
            collect_texts(place, &mut secrets);
            *place = Value::String(ARGUMENT_MARK.to_owned());
        }
    }
    let own = (!secrets.is_empty()).then(|| Arc::new(KnownSecrets::arguments(&secrets)));
    let redactor = CallRedactor { host: Arc::clone(host), own };
    if shown.is_none() && !redactor.finds(arguments.value()) {
        return (arguments.clone(), secrets);
    }
    let mut value = shown.unwrap_or_else(|| arguments.value().clone());
    redactor.value(&mut value, &mut Redactions::default());
    (Arguments::from_value(value), secrets)
}

fn collect_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= MIN_SECRET => found.push(text.clone()),
        Value::Number(number) if number.to_string().len() >= MIN_SECRET => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, found)),
        Value::Object(object) => object.values().for_each(|inner| collect_texts(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
