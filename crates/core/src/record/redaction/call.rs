//! What one call may not tell: the host's secrets and its own.

use std::{borrow::Cow, sync::Arc};

use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;
use toolpost_model::{Content, Decision, Effects, EventBody, Redactions, ToolError, ToolOutput};

use super::{Finding, KnownSecrets, Redactor, StreamRedactor, Window};

/// The host's redactor together with the sensitive arguments of one call: what came in as a secret must not come back
/// in an error or a log line. Cheap to clone, and good for as long as anything of the call is being written.
#[derive(Clone)]
pub(crate) struct CallRedactor {
    pub(crate) host: Arc<dyn Redactor>,
    /// The call's own secrets, where it has any.
    pub(crate) own: Option<Arc<KnownSecrets>>,
}

impl Redactor for CallRedactor {
    fn find(&self, window: Window<'_>, found: &mut Vec<Finding>) -> usize {
        let decided = self.host.find(window, found);
        match &self.own {
            Some(own) => own.find(window, found).min(decided),
            None => decided,
        }
    }
}

impl CallRedactor {
    /// The text without its secrets.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Redactor::text(self, text)
    }

    /// For bytes that come in pieces: a kept result, the output of a process.
    pub(crate) fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(match &self.own {
            Some(_) => Arc::new(self.clone()),
            None => Arc::clone(&self.host),
        })
    }

    /// Takes the secrets out of a text where it stands. Whether there were any.
    pub(crate) fn in_place(&self, text: &mut String, counts: &mut Redactions) -> bool {
        match self.counted(text, counts) {
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
        }
    }

    /// A decision repeats parts of the call it is about.
    pub(crate) fn decision(&self, decision: &mut Decision) {
        let counts = &mut Redactions::default();
        self.in_place(&mut decision.reason.text, counts);
        let more = decision.subject.iter_mut().chain(&mut decision.opaque).chain(&mut decision.operator_hint);
        more.for_each(|text| {
            self.in_place(text, counts);
        });
    }

    /// Whether there is anything to take out. Looks only, so that the common case copies nothing.
    pub(crate) fn finds(&self, value: &Value) -> bool {
        let hit = |text: &str| matches!(self.text(text), Cow::Owned(_));
        match value {
            Value::String(text) => hit(text),
            Value::Number(number) => hit(&number.to_string()),
            Value::Array(items) => items.iter().any(|item| self.finds(item)),
            Value::Object(object) => object.iter().any(|(key, inner)| hit(key) || self.finds(inner)),
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Takes the secrets out of every text and key. Whether there were any.
    pub(crate) fn value(&self, value: &mut Value, counts: &mut Redactions) -> bool {
        match value {
            Value::String(text) => self.in_place(text, counts),
            Value::Number(number) => {
                let mut text = number.to_string();
                let found = self.in_place(&mut text, counts);
                if found {
                    *value = Value::String(text);
                }
                found
            }
            Value::Array(items) => {
                items.iter_mut().fold(false, |found, item| self.value(item, counts) | found)
            }
            Value::Object(object) => {
                let found = object.values_mut().fold(false, |found, inner| self.value(inner, counts) | found);
                let bad_keys: Vec<String> =
                    object.keys().filter(|key| matches!(self.text(key), Cow::Owned(_))).cloned().collect();
                for key in &bad_keys {
                    if let Some(inner) = object.remove(key) {
                        object.insert(self.counted(key, counts).into_owned(), inner);
                    }
                }
                found || !bad_keys.is_empty()
            }
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Plain data without secrets. `None`: taking them out left nothing that makes sense.
    pub(crate) fn data<T: Clone + Serialize + DeserializeOwned>(&self, data: &T) -> Option<T> {
        let mut value = serde_json::to_value(data).ok()?;
        let taken_out = self.value(&mut value, &mut Redactions::default());
        if taken_out { serde_json::from_value(value).ok() } else { Some(data.clone()) }
    }

    /// What a call touches may be named like a secret.
    pub(crate) fn effects(&self, effects: &Effects) -> Effects {
        self.data(effects).unwrap_or_else(|| Effects::of(effects.class))
    }

    /// JSON without secrets. It stays JSON: where a mark would break it, only its texts are looked at.
    pub(crate) fn json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let clean = match self.text(json) {
            Cow::Borrowed(text) => return Cow::Borrowed(text),
            Cow::Owned(clean) => clean,
        };
        if serde_json::from_str::<IgnoredAny>(&clean).is_ok() {
            return Cow::Owned(clean);
        }
        let Ok(mut value) = serde_json::from_str::<Value>(json) else { return Cow::Owned(clean) };
        self.texts(&mut value);
        Cow::Owned(value.to_string())
    }

    /// The same for what must keep its shape: texts only, and no keys.
    fn texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                self.in_place(text, &mut Redactions::default());
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            Value::Object(object) => object.values_mut().for_each(|inner| self.texts(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn content(&self, content: &mut Content, counts: &mut Redactions) {
        match content {
            Content::Text { text } => {
                self.in_place(text, counts);
            }
            Content::Image { data, media_type } | Content::Binary { data, media_type, .. } => {
                self.in_place(media_type, counts);
                let mut within = Redactions::default();
                if let Cow::Owned(_) = self.counted(data, &mut within) {
                    // Half of its letters would be no bytes, so all of it goes.
                    let kinds: Vec<String> =
                        within.0.keys().map(|kind| format!("[redacted:{kind}]")).collect();
                    let told = format!("[{media_type} left out: it holds {}]", kinds.join(", "));
                    counts.add(&within);
                    *content = Content::text(told);
                }
            }
        }
    }

    /// Takes the secrets out of what a tool gave back, and counts them.
    pub(crate) fn output(&self, output: &mut ToolOutput, counts: &mut Redactions) {
        output.content.iter_mut().for_each(|piece| self.content(piece, counts));
        if let Some(value) = &mut output.structured {
            self.value(value, counts);
        }
        if let Some(summary) = &mut output.summary {
            self.in_place(summary, counts);
        }
        if let Some(hint) = output.truncated.as_mut().and_then(|truncated| truncated.hint.as_mut()) {
            self.in_place(hint, counts);
        }
    }

    /// The same for a failure.
    pub(crate) fn error(&self, error: &mut ToolError, counts: &mut Redactions) {
        self.in_place(&mut error.message, counts);
        if let Some(hint) = &mut error.hint {
            self.in_place(hint, counts);
        }
        if let Some(details) = &mut error.details {
            self.value(details, counts);
        }
    }

    /// The same for an event. Output of a process is not looked at here: it comes in pieces.
    pub(crate) fn event(&self, body: &mut EventBody) {
        let counts = &mut Redactions::default();
        match body {
            EventBody::Stage { .. } | EventBody::Approval(_) | EventBody::Output(_) => {}
            // Its labels were looked at when it was begun.
            EventBody::Kept(_) => {}
            EventBody::Progress(progress) => {
                self.in_place(&mut progress.message, counts);
            }
            EventBody::Status { message } | EventBody::Log { message, .. } => {
                self.in_place(message, counts);
            }
            EventBody::Artifact { name, content } => {
                self.in_place(name, counts);
                self.content(content, counts);
            }
        }
    }
}
