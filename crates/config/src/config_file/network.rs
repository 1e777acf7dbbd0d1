//! `network`: the URLs that HTTP tools may reach, and their credentials.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, LocatedValue};

/// The URLs that HTTP tools may reach, and their credentials.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSection {
    /// Private addresses and addresses of this machine that may be reached, as URL prefixes such as
    /// `http://127.0.0.1:8080/`. All other private addresses are refused, also when a public name resolves to them.
    pub private: Vec<LocatedValue<String>>,
    /// The largest response body, after decompression.
    pub max_body: Option<LocatedValue<ByteSize>>,
    /// Credentials that a request may name. The model sees the name, never the value.
    pub credentials: BTreeMap<String, LocatedValue<CredentialEntry>>,
}

/// The place of a credential, and the destinations that it may be sent to. It has a `file` or an `env`, never both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{ "required": ["urls"] }, { "required": ["tools"] }]))]
pub struct CredentialEntry {
    /// A file with nothing else in it, relative to this one. Other users must not be able to read it.
    #[serde(default)]
    pub file: Option<LocatedValue<PathBuf>>,
    /// A variable of the host's environment, in capitals.
    #[serde(default)]
    #[schemars(extend("pattern" = "^[A-Z_][A-Z0-9_]*$"))]
    pub env: Option<LocatedValue<String>>,
    /// The header of the credential.
    #[serde(default)]
    pub header: Option<LocatedValue<String>>,
    /// The scheme before it in the header. Without it, `Bearer` in `Authorization` and none in other headers; an empty
    /// text means none.
    #[serde(default)]
    pub scheme: Option<LocatedValue<String>>,
    /// URL prefixes that it may be sent to, such as `https://api.example.org/`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub urls: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Tools that get its value if a call contains `{"$cred": "name"}`, by id or name, with `*` for any characters. A
    /// credential has `urls`, `tools` or both.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub tools: Option<LocatedValue<Vec<LocatedValue<String>>>>,
}
