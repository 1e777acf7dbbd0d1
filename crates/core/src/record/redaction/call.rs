//! The redaction for one call: the host's secrets and the call's own.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use toolpost_model::{
    Decision, Effects, EventBody, Redactions, ResultContent, ToolError, ToolOutput, ToolResult,
};

use super::{KnownSecrets, RedactionWindow, Redactor, SecretFinding, StreamRedactor};

/// The host's redactor together with the sensitive arguments of one call: a secret that came in as an argument must not
/// come back in an error or a log line. Cheap to clone, and valid as long as anything of the call is written.
#[derive(Clone)]
pub(crate) struct CallRedactor {
    pub(crate) host: Arc<dyn Redactor>,
    /// The call's own secrets, if it has any.
    pub(crate) own: Option<Arc<KnownSecrets>>,
}

impl Redactor for CallRedactor {
    fn find(&self, window: RedactionWindow<'_>, found: &mut Vec<SecretFinding>) -> usize {
        let decided = self.host.find(window, found);
        match &self.own {
            Some(own) => own.find(window, found).min(decided),
            None => decided,
        }
    }
}

/// A member of an object as a line of text, if its name announces a secret.
fn announced(key: &str, value: &Value) -> Option<String> {
    const ANNOUNCING: [&str; 4] = ["authorization", "access_key", "accesskey", "session_token"];
    let text = value.as_str()?;
    let name = key.to_ascii_lowercase();
    ANNOUNCING
        .iter()
        .any(|end| name.ends_with(end))
        .then(|| format!("{key}: {text}"))
}

impl CallRedactor {
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Redactor::text(self, text)
    }

    /// For bytes that arrive in pieces: an artifact, the output of a process.
    pub(crate) fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(match &self.own {
            Some(_) => Arc::new(self.clone()),
            None => Arc::clone(&self.host),
        })
    }

    /// Redacts a text in place. Returns whether it held secrets.
    pub(crate) fn in_place(&self, text: &mut String, counts: &mut Redactions) -> bool {
        match self.counted(text, counts) {
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
        }
    }

    /// A decision repeats parts of its call.
    pub(crate) fn decision(&self, decision: &mut Decision) {
        let counts = &mut Redactions::default();
        self.in_place(&mut decision.reason.text, counts);
        let more = decision
            .subject
            .iter_mut()
            .chain(&mut decision.opaque)
            .chain(&mut decision.operator_hint);
        let more = more.chain(&mut decision.approval_waived);
        // The votes of authorities were redacted when they arrived.
        let more = more.chain(
            decision
                .classified
                .as_mut()
                .map(|finding| &mut finding.found),
        );
        more.for_each(|text| {
            self.in_place(text, counts);
        });
    }

    /// Whether the value holds secrets. A check without a copy, for the common case that it does not.
    pub(crate) fn finds(&self, value: &Value) -> bool {
        let hit = |text: &str| matches!(self.text(text), Cow::Owned(_));
        match value {
            Value::String(text) => hit(text),
            Value::Number(number) => hit(&number.to_string()),
            Value::Array(items) => items.iter().any(|item| self.finds(item)),
            Value::Object(object) => object.iter().any(|(key, inner)| {
                hit(key)
                    || self.finds(inner)
                    || announced(key, inner).is_some_and(|text| hit(&text))
            }),
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Redacts every text and key. Returns whether there were secrets.
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
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |found, item| self.value(item, counts) | found),
            Value::Object(object) => {
                let mut found = false;
                for (key, inner) in &mut *object {
                    found |= self.value(inner, counts);
                    found |= self.beside_its_name(key, inner, counts);
                }
                let bad_keys: Vec<String> = object
                    .keys()
                    .filter(|key| matches!(self.text(key), Cow::Owned(_)))
                    .cloned()
                    .collect();
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

    /// Removes a text that is a secret only because of the name before it.
    fn beside_its_name(&self, key: &str, value: &mut Value, counts: &mut Redactions) -> bool {
        let Some(mut text) = announced(key, value) else {
            return false;
        };
        let found = self.in_place(&mut text, counts);
        if found {
            let rest = text.get(key.len()..).unwrap_or(&text);
            *value = Value::String(rest.trim_start_matches(": ").to_owned());
        }
        found
    }

    /// Plain data without secrets. `None`: the rest has no valid form.
    pub(crate) fn data<T: Clone + Serialize + DeserializeOwned>(&self, data: &T) -> Option<T> {
        let mut value = serde_json::to_value(data).ok()?;
        let taken_out = self.value(&mut value, &mut Redactions::default());
        if taken_out {
            serde_json::from_value(value).ok()
        } else {
            Some(data.clone())
        }
    }

    /// The resources of a call may have a secret in their names.
    pub(crate) fn effects(&self, effects: &Effects) -> Effects {
        self.data(effects)
            .unwrap_or_else(|| Effects::of(effects.class))
    }

    /// Whether base64 holds secrets, in its letters or in the decoded bytes.
    fn in_data(&self, data: &str, counts: &mut Redactions) -> bool {
        if let Cow::Owned(_) = self.counted(data, counts) {
            return true;
        }
        // Invalid base64 was searched as text above.
        let Ok(bytes) = STANDARD.decode(data) else {
            return false;
        };
        let mut stream = self.stream();
        let mut clean = Vec::with_capacity(bytes.len());
        stream.push(&bytes, &mut clean);
        counts.add(&stream.finish(&mut clean));
        !counts.is_empty()
    }

    fn content(&self, content: &mut ResultContent, counts: &mut Redactions) {
        match content {
            ResultContent::Text { text } => {
                self.in_place(text, counts);
            }
            ResultContent::Image { data, media_type }
            | ResultContent::Binary {
                data, media_type, ..
            }
            | ResultContent::Audio { data, media_type } => {
                self.in_place(media_type, counts);
                if let Some(told) = self.instead_of(data, media_type, counts) {
                    *content = ResultContent::text(told);
                }
            }
            ResultContent::Resource {
                uri,
                media_type,
                text,
                data,
            } => {
                for said in [Some(uri), media_type.as_mut(), text.as_mut()]
                    .into_iter()
                    .flatten()
                {
                    self.in_place(said, counts);
                }
                let kind = media_type.as_deref().unwrap_or("resource");
                let told = data
                    .as_deref()
                    .and_then(|data| self.instead_of(data, kind, counts));
                if let Some(told) = told {
                    *content = ResultContent::text(told);
                }
            }
            ResultContent::Link {
                uri,
                name,
                title,
                description,
                media_type,
                size: _,
            } => {
                let rest = [title, description, media_type].into_iter().flatten();
                [uri, name].into_iter().chain(rest).for_each(|said| {
                    self.in_place(said, counts);
                });
            }
        }
    }

    /// The text that replaces base64 with secrets. A mark inside would break the encoding of the rest, so all of it is
    /// replaced.
    fn instead_of(&self, data: &str, media_type: &str, counts: &mut Redactions) -> Option<String> {
        let mut within = Redactions::default();
        if !self.in_data(data, &mut within) {
            return None;
        }
        let kinds: Vec<String> = within
            .0
            .keys()
            .map(|kind| format!("[redacted:{kind}]"))
            .collect();
        counts.add(&within);
        Some(format!(
            "[{media_type} left out: it holds {}]",
            kinds.join(", ")
        ))
    }

    /// Redacts metadata from a tool's own system, all of which is foreign.
    fn meta(&self, meta: &mut Option<Box<Map<String, Value>>>, counts: &mut Redactions) {
        let Some(said) = meta else { return };
        let mut value = Value::Object(std::mem::take(&mut **said));
        self.value(&mut value, counts);
        match value {
            Value::Object(clean) => **said = clean,
            _ => *meta = None,
        }
    }

    /// Redacts a tool's output, and counts the secrets.
    pub(crate) fn output(&self, output: &mut ToolOutput, counts: &mut Redactions) {
        output
            .content
            .iter_mut()
            .for_each(|piece| self.content(piece, counts));
        if let Some(value) = &mut output.structured {
            self.value(value, counts);
        }
        self.meta(&mut output.meta, counts);
        if let Some(summary) = &mut output.summary {
            self.in_place(summary, counts);
        }
        if let Some(hint) = output
            .truncated
            .as_mut()
            .and_then(|truncated| truncated.hint.as_mut())
        {
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

    /// The same for a whole result, part by part.
    pub(crate) fn result(&self, result: &mut ToolResult) {
        let mut counts = Redactions::default();
        result
            .content
            .iter_mut()
            .for_each(|piece| self.content(piece, &mut counts));
        if let Some(value) = &mut result.structured_content {
            self.value(value, &mut counts);
        }
        self.meta(&mut result.meta, &mut counts);
        if let Some(error) = &mut result.error {
            self.error(error, &mut counts);
        }
        let hint = result
            .truncated
            .as_mut()
            .and_then(|truncated| truncated.hint.as_mut());
        let names = result
            .artifacts
            .iter_mut()
            .map(|artifact| &mut artifact.name);
        for text in result.summary.iter_mut().chain(hint).chain(names) {
            self.in_place(text, &mut counts);
        }
        result.redactions.add(&counts);
    }

    /// The same for an event. Output of a process is not included: it arrives in pieces and has a stream redactor.
    pub(crate) fn event(&self, body: &mut EventBody) {
        let counts = &mut Redactions::default();
        match body {
            EventBody::Stage { .. } | EventBody::Approval(_) | EventBody::Output(_) => {}
            // Its name was redacted when the artifact began.
            EventBody::Kept(kept) => {
                if self.in_place(&mut kept.media_type, counts) {
                    // A type with a mark in it would be no type.
                    kept.media_type = "application/octet-stream".to_owned();
                }
            }
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
            EventBody::Custom { name, data } => {
                self.in_place(name, counts);
                self.value(data, counts);
            }
            EventBody::Message { message } => {
                self.value(message, counts);
            }
        }
    }
}
