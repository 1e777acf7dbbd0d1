//! Variables in the texts of a plan: `${NAME}` and `${NAME:default}`.

use std::collections::BTreeSet;

use serde_json::Value;

/// Replaces variables with their values in every text of `value`, at any depth. Keys stay as they are. A variable that
/// is not set and has no default becomes empty, and its name is reported.
pub(super) fn expand(
    value: &mut Value,
    lookup: &dyn Fn(&str) -> Option<String>,
    unset: &mut BTreeSet<String>,
) {
    match value {
        Value::String(text) if text.contains("${") => *text = expanded(text, lookup, unset),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| expand(item, lookup, unset)),
        Value::Object(table) => table
            .values_mut()
            .for_each(|item| expand(item, lookup, unset)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Values are not expanded again: `${` in a value is plain text.
fn expanded(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    unset: &mut BTreeSet<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let inner = &rest[at + 2..];
        let Some(end) = inner.find('}') else { break };
        let (name, default) = match inner[..end].split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (&inner[..end], None),
        };
        out.push_str(&rest[..at]);
        if is_name(name) {
            match (lookup(name), default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => {
                    unset.insert(name.to_owned());
                }
            }
        } else {
            out.push_str(&rest[at..at + 2 + end + 1]);
        }
        rest = &inner[end + 1..];
    }
    out.push_str(rest);
    out
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_taken_from_the_lookup_or_from_their_defaults() {
        let lookup = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "B" => Some("${A}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expected, missing) in [
            ("x", "x", None),
            ("${A}", "one", None),
            ("a ${A} b ${A}", "a one b one", None),
            ("${B}", "${A}", None),
            ("${C:two}", "two", None),
            ("${C:http://x:1}", "http://x:1", None),
            ("${C:}", "", None),
            ("${EMPTY:two}", "", None),
            ("-${C}-", "--", Some("C")),
            ("${A", "${A", None),
            ("$A ${} ${1a} ${a b}", "$A ${} ${1a} ${a b}", None),
        ] {
            let mut value = json!({ "k": [text] });
            let mut unset = BTreeSet::new();
            expand(&mut value, &lookup, &mut unset);
            assert_eq!(value, json!({ "k": [expected] }), "{text}");
            assert_eq!(unset.into_iter().next().as_deref(), missing, "{text}");
        }
    }
}
