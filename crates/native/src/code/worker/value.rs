//! Converts Python values to JSON and back.

use monty_types::MontyObject;
use serde_json::{Map, Number, Value};

/// The deepest nesting that becomes JSON. Parsers stop at 128 levels, and frames add some.
const DEPTH: usize = 100;

/// A Python value without a JSON form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotJson {
    #[error("`{0}`")]
    NotFinite(String),
    #[error("a whole number beyond 64 bits")]
    TooBig,
    #[error("a dict key of type `{0}`")]
    Key(String),
    #[error("a value of type `{0}`")]
    Type(String),
    #[error("a value nested more than {DEPTH} levels deep")]
    TooDeep,
}

/// Converts JSON to a Python value.
pub(super) fn to_python(value: Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(value) => MontyObject::Bool(value),
        Value::Number(number) => number_to_python(&number),
        Value::String(text) => MontyObject::String(text),
        Value::Array(items) => MontyObject::List(items.into_iter().map(to_python).collect()),
        Value::Object(map) => MontyObject::Dict(
            map.into_iter()
                .map(|(key, value)| (MontyObject::String(key), to_python(value)))
                .collect(),
        ),
    }
}

fn number_to_python(number: &Number) -> MontyObject {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(value), ..) => MontyObject::Int(value),
        (None, Some(value), _) => MontyObject::BigInt(value.into()),
        (None, None, Some(value)) => MontyObject::Float(value),
        (None, None, None) => MontyObject::None,
    }
}

/// Converts a Python value to JSON, if it has a JSON form. Tuples and sets become arrays and whole numbers as keys
/// become text, as in Python's own `json`; values that `json` refuses are refused here.
pub(super) fn to_json(object: MontyObject) -> Result<Value, NotJson> {
    beneath(object, DEPTH)
}

fn beneath(object: MontyObject, depth: usize) -> Result<Value, NotJson> {
    let depth = depth.checked_sub(1).ok_or(NotJson::TooDeep)?;
    Ok(match object {
        MontyObject::None => Value::Null,
        MontyObject::Bool(value) => Value::Bool(value),
        MontyObject::Int(value) => value.into(),
        MontyObject::BigInt(value) => u64::try_from(&value).map_err(|_| NotJson::TooBig)?.into(),
        MontyObject::Float(value) => match Number::from_f64(value) {
            Some(number) => Value::Number(number),
            None => return Err(NotJson::NotFinite(object_text(value))),
        },
        MontyObject::String(text) | MontyObject::Path(text) => Value::String(text),
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::Set(items)
        | MontyObject::FrozenSet(items)
        | MontyObject::NamedTuple { values: items, .. } => Value::Array(
            items
                .into_iter()
                .map(|item| beneath(item, depth))
                .collect::<Result<_, _>>()?,
        ),
        MontyObject::Dict(pairs) => pairs_to_json(pairs, depth)?,
        MontyObject::ClassInstance(instance) => pairs_to_json(instance.attrs, depth)?,
        // The interpreter's placeholder for a value that is nested too deeply.
        MontyObject::Repr(text) if text == "<deeply nested>" => return Err(NotJson::TooDeep),
        other => return Err(NotJson::Type(other.type_name().to_owned())),
    })
}

fn pairs_to_json(
    pairs: impl IntoIterator<Item = (MontyObject, MontyObject)>,
    depth: usize,
) -> Result<Value, NotJson> {
    let mut map = Map::new();
    for (key, value) in pairs {
        let key = match key {
            MontyObject::String(key) => key,
            MontyObject::Int(key) => key.to_string(),
            other => return Err(NotJson::Key(other.type_name().to_owned())),
        };
        map.insert(key, beneath(value, depth)?);
    }
    Ok(Value::Object(map))
}

fn object_text(value: f64) -> String {
    MontyObject::Float(value).py_repr()
}

#[cfg(test)]
mod tests {
    use monty_types::MontyObject;
    use serde_json::{Value, json};

    use super::{NotJson, to_json, to_python};

    #[test]
    fn json_goes_through_python_unchanged() {
        let check = |value: Value| assert_eq!(to_json(to_python(value.clone())), Ok(value));
        check(json!(null));
        check(json!([true, -1, 1.5, "text", {}]));
        check(json!({ "large": u64::MAX, "small": i64::MIN, "nested": { "a": [[]] } }));
    }

    #[test]
    fn what_json_cannot_say_is_named() {
        let check =
            |object: MontyObject, expected: NotJson| assert_eq!(to_json(object), Err(expected));
        check(
            MontyObject::Float(f64::NAN),
            NotJson::NotFinite("nan".to_owned()),
        );
        check(
            MontyObject::Float(f64::NEG_INFINITY),
            NotJson::NotFinite("-inf".to_owned()),
        );
        check(
            MontyObject::BigInt((u128::from(u64::MAX) + 1).into()),
            NotJson::TooBig,
        );
        check(
            MontyObject::BigInt((i128::from(i64::MIN) - 1).into()),
            NotJson::TooBig,
        );
        check(
            MontyObject::Bytes(vec![1]),
            NotJson::Type("bytes".to_owned()),
        );
        let pair = |key| MontyObject::dict(vec![(key, MontyObject::None)]);
        check(
            pair(MontyObject::Float(1.0)),
            NotJson::Key("float".to_owned()),
        );
        assert_eq!(to_json(pair(MontyObject::Int(1))), Ok(json!({ "1": null })));
        let deep = (0..200).fold(MontyObject::None, |inner, _| MontyObject::List(vec![inner]));
        check(deep, NotJson::TooDeep);
    }
}
