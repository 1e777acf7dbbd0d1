//! `network`: where tools that talk HTTP may go, and with which credentials.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, LocatedValue};

/// Where tools that talk HTTP may go.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    /// Addresses of this machine or of private networks that may be reached: beginnings of URLs, such as
    /// `http://127.0.0.1:8080/`. All others are refused, whatever name leads to them.
    pub private: Vec<LocatedValue<String>>,
    /// The largest body that is read, unpacked.
    pub max_body: Option<LocatedValue<ByteSize>>,
    /// Credentials that a request may name. The model sees the name and never the value.
    pub credentials: BTreeMap<String, LocatedValue<CredentialEntry>>,
}

/// Where a credential is kept, and where it may be sent. It has a `file` or an `env`, never both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{ "required": ["urls"] }, { "required": ["tools"] }]))]
pub struct CredentialEntry {
    /// A file that holds nothing else, relative to this one. Only its owner may be able to read it.
    #[serde(default)]
    pub file: Option<LocatedValue<PathBuf>>,
    /// A variable of the host's environment, in capitals.
    #[serde(default)]
    #[schemars(extend("pattern" = "^[A-Z_][A-Z0-9_]*$"))]
    pub env: Option<LocatedValue<String>>,
    /// The header it is sent in.
    #[serde(default)]
    pub header: Option<LocatedValue<String>>,
    /// The word before it in the header. Without it, `Bearer` in `Authorization` and none in other headers; an
    /// empty text means none.
    #[serde(default)]
    pub scheme: Option<LocatedValue<String>>,
    /// Where it may be sent: beginnings of URLs, such as `https://api.example.org/`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub urls: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Tools that get its value where a call writes `{"$cred": "name"}`, by id or name, with `*` for any characters. It
    /// has `urls`, `tools` or both.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub tools: Option<LocatedValue<Vec<LocatedValue<String>>>>,
}
