//! Invariant 5: one redaction port in front of the journal, events, answers and logs.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;
use serde_json::Value;
use toolpost_model::{Arguments, Content, Decision, EventBody, ToolError, ToolOutput};

/// What stands where a sensitive argument was.
pub(crate) const ARGUMENT_MARK: &str = "[redacted:argument]";
/// Shorter secrets would blot out ordinary words.
const MIN_SECRET: usize = 8;

/// Takes secrets out of text.
pub trait Redactor: Send + Sync + 'static {
    /// The text without its secrets; borrowed when there were none.
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Knows the host's own secrets by value.
#[derive(Default)]
pub struct KnownSecrets {
    matcher: Option<AhoCorasick>,
    marks: Vec<String>,
}

impl KnownSecrets {
    /// From pairs of kind and value. Values under eight characters are left out: they would blot out ordinary
    /// words.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let long_enough = secrets.into_iter().filter(|(_, value)| value.len() >= MIN_SECRET);
        // Records are JSON, where a quote or a backslash is written otherwise.
        let kept: Vec<(&str, String)> = long_enough
            .flat_map(|(kind, value)| {
                let escaped = Value::from(value).to_string();
                [(kind, value.to_owned()), (kind, escaped[1..escaped.len() - 1].to_owned())]
            })
            .collect();
        if kept.is_empty() {
            return Self::default();
        }
        // Building fails only beyond sizes that a handful of tokens never reaches; then nothing may pass.
        let matcher = AhoCorasick::new(kept.iter().map(|(_, value)| value)).ok();
        let marks = kept.iter().map(|(kind, _)| format!("[redacted:{kind}]")).collect();
        Self { matcher, marks }
    }
}

impl Redactor for KnownSecrets {
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.matcher {
            None if self.marks.is_empty() => Cow::Borrowed(text),
            None => Cow::Borrowed("[redacted:all]"),
            Some(matcher) if !matcher.is_match(text) => Cow::Borrowed(text),
            Some(matcher) => Cow::Owned(matcher.replace_all(text, &self.marks)),
        }
    }
}

/// The host's redactor together with the sensitive arguments of one call: what came in as a secret must not
/// come back in an error or a log line.
pub(crate) struct CallRedactor<'a> {
    pub(crate) host: &'a dyn Redactor,
    pub(crate) secrets: Vec<String>,
}

impl CallRedactor<'_> {
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = self.host.text(text);
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = Cow::Owned(clean.replace(secret.as_str(), ARGUMENT_MARK));
            }
        }
        clean
    }

    fn in_place(&self, text: &mut String) -> bool {
        match self.text(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
        }
    }

    /// A decision repeats parts of the call it is about.
    pub(crate) fn decision(&self, decision: &mut Decision) {
        self.in_place(&mut decision.reason.text);
        let more = decision.subject.iter_mut().chain(&mut decision.opaque).chain(&mut decision.operator_hint);
        more.for_each(|text| {
            self.in_place(text);
        });
    }

    /// Whether there is anything to take out. Looks only, so that the common case copies nothing.
    fn finds(&self, value: &Value) -> bool {
        let hit = |text: &str| matches!(self.text(text), Cow::Owned(_));
        match value {
            Value::String(text) => hit(text),
            Value::Array(items) => items.iter().any(|item| self.finds(item)),
            Value::Object(object) => object.iter().any(|(key, inner)| hit(key) || self.finds(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Whether anything was taken out.
    pub(crate) fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.in_place(text),
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.value(item) | found),
            Value::Object(object) => {
                let found = object.values_mut().fold(false, |found, inner| self.value(inner) | found);
                let bad_keys: Vec<String> =
                    object.keys().filter(|key| matches!(self.text(key), Cow::Owned(_))).cloned().collect();
                for key in &bad_keys {
                    if let Some(inner) = object.remove(key) {
                        object.insert(self.text(key).into_owned(), inner);
                    }
                }
                found || !bad_keys.is_empty()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn content(&self, content: &mut Content) -> bool {
        match content {
            Content::Text { text } => self.in_place(text),
            Content::Image { .. } | Content::Binary { .. } => false,
        }
    }

    pub(crate) fn output(&self, output: &mut ToolOutput) -> bool {
        let mut found = output.content.iter_mut().fold(false, |found, piece| self.content(piece) | found);
        found |= output.structured.as_mut().is_some_and(|value| self.value(value));
        found | output.summary.as_mut().is_some_and(|summary| self.in_place(summary))
    }

    pub(crate) fn error(&self, error: &mut ToolError) -> bool {
        let mut found = self.in_place(&mut error.message);
        found |= error.hint.as_mut().is_some_and(|hint| self.in_place(hint));
        found | error.details.as_mut().is_some_and(|details| self.value(details))
    }

    pub(crate) fn event(&self, body: &mut EventBody) {
        match body {
            // The labels of a kept piece were redacted when it was begun.
            EventBody::Stage { .. } | EventBody::Approval(_) | EventBody::Kept(_) => {}
            EventBody::Progress(progress) => {
                self.in_place(&mut progress.message);
            }
            EventBody::Status { message } | EventBody::Log { message, .. } => {
                self.in_place(message);
            }
            EventBody::Artifact { name, content } => {
                self.in_place(name);
                self.content(content);
            }
            EventBody::Output(chunk) => {
                self.in_place(&mut chunk.text);
            }
        }
    }
}

/// Arguments as others may see them, and the secrets that were taken out.
pub(crate) fn observable(
    arguments: &Arguments,
    sensitive: &[String],
    host: &dyn Redactor,
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
    let redactor = CallRedactor { host, secrets: secrets.clone() };
    if shown.is_none() && !redactor.finds(arguments.value()) {
        return (arguments.clone(), secrets);
    }
    let mut value = shown.unwrap_or_else(|| arguments.value().clone());
    redactor.value(&mut value);
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_model::Arguments;

    use super::{KnownSecrets, Redactor, observable};

    #[test]
    fn known_values_and_sensitive_fields_are_taken_out() {
        let host = KnownSecrets::new([("token", "tp_0123456789"), ("short", "abc")]);
        assert_eq!(host.text("x tp_0123456789 abc"), "x [redacted:token] abc");
        let arguments =
            Arguments::from_value(json!({ "key": "hunter2hunter2", "note": "tp_0123456789", "n": 1 }));
        let (shown, secrets) = observable(&arguments, &["/key".to_owned()], &host);
        assert_eq!(
            shown.value(),
            &json!({ "key": "[redacted:argument]", "note": "[redacted:token]", "n": 1 })
        );
        assert_eq!(secrets, ["hunter2hunter2"]);
    }
}
