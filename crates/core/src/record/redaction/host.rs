//! The host's redactor, and its description of values that must not be written.

use std::{borrow::Cow, sync::Arc};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolpost_model::{Declaration, InvocationId, Lifecycle, Redactions, RequestId};

use super::{CallRedactor, RedactionWindow, Redactor, SecretFinding};

/// The redactor for everything that a host writes or shows.
pub(crate) struct HostRedactor {
    redactor: Arc<dyn Redactor>,
    /// The key of the hashes of sensitive values; without it, guesses could be checked. Ends with the host.
    key: [u8; 32],
}

/// A sensitive argument: enough to compare two calls without the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Sensitive")]
pub(crate) struct SensitiveArgument {
    /// Its place in the arguments.
    pub(crate) pointer: String,
    /// Its length in bytes of text.
    // Of a value that is no text, the length of its JSON.
    #[schemars(with = "u64")]
    pub(crate) length: usize,
    /// A keyed hash of it. The key ends with the host that wrote it.
    pub(crate) hash: String,
}

/// The replacement of a request id that must not be written: its hash, so that the same id still finds the same call.
pub(crate) fn hidden(id: &RequestId) -> RequestId {
    let hash = Sha256::digest(id.as_str().as_bytes());
    RequestId::new(hash.iter().fold("sha256:".to_owned(), |text, byte| {
        format!("{text}{byte:02x}")
    }))
}

impl Redactor for HostRedactor {
    fn find(&self, window: RedactionWindow<'_>, found: &mut Vec<SecretFinding>) -> usize {
        self.redactor.find(window, found)
    }
}

impl HostRedactor {
    pub(crate) fn new(redactor: Arc<dyn Redactor>) -> Arc<Self> {
        let mut hasher = Sha256::new();
        // Two ids have 148 random bits from the system.
        hasher.update(InvocationId::new().as_bytes());
        hasher.update(InvocationId::new().as_bytes());
        Arc::new(Self {
            redactor,
            key: hasher.finalize().into(),
        })
    }

    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.text(text)
    }

    pub(crate) fn of_no_call(&self) -> CallRedactor {
        CallRedactor {
            host: Arc::clone(&self.redactor),
            own: None,
        }
    }

    /// The description of a value that must not be written.
    pub(super) fn describe(&self, pointer: &str, value: &Value) -> SensitiveArgument {
        let text = match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        };
        // Hashed by itself first, so that an extension of the outer hash is impossible.
        let inner = Sha256::digest(text.as_bytes());
        let hash = Sha256::new()
            .chain_update(self.key)
            .chain_update(inner)
            .finalize();
        SensitiveArgument {
            pointer: pointer.to_owned(),
            length: text.len(),
            hash: hash[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        }
    }

    /// The body of a record without secrets.
    pub(crate) fn json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        self.of_no_call().json(json, &mut Redactions::default())
    }

    /// Redacts a tool's declaration. `false`: its name itself holds a secret, so the tool cannot be offered.
    pub(crate) fn declaration(&self, declaration: &mut Declaration) -> bool {
        let names = [declaration.tool_id.as_str()]
            .into_iter()
            .chain(declaration.aliases.iter().map(String::as_str));
        if names
            .into_iter()
            .any(|name| matches!(self.text(name), Cow::Owned(_)))
        {
            return false;
        }
        let redactor = self.of_no_call();
        let counts = &mut Redactions::default();
        let Declaration {
            title,
            description,
            search_hint,
            tags,
            version,
            toolkit,
            ..
        } = declaration;
        for text in [description, search_hint, version, toolkit]
            .into_iter()
            .chain(title)
            .chain(tags)
        {
            redactor.in_place(text, counts);
        }
        if let Lifecycle::RequiresSetup(text) = &mut declaration.lifecycle {
            redactor.in_place(text, counts);
        }
        for mapping in &mut declaration.external_mappings {
            redactor.in_place(&mut mapping.system, counts);
            redactor.in_place(&mut mapping.native_id, counts);
            for argument in &mut mapping.template {
                redactor.in_place(argument, counts);
            }
        }
        for value in declaration
            .annotations
            .values_mut()
            .chain(&mut declaration.input.examples)
        {
            redactor.value(value, counts);
        }
        let schemas = [
            Some(&mut declaration.input.schema),
            declaration.output.schema.as_mut(),
        ];
        for schema in schemas.into_iter().flatten() {
            if redactor.finds(schema) {
                redactor.value(Arc::make_mut(schema), counts);
            }
        }
        true
    }
}
