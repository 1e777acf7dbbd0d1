//! `authorities`: where rules delegate decisions to.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::SandboxProfile;

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// An authority that rules delegate decisions to: a policy endpoint (`url`) or a program (`command`), never both.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("anyOf" = [{ "required": ["url"] }, { "required": ["command"] }]))]
pub struct AuthorityEntry {
    /// The policy endpoint. It gets `POST` with `{"input": …}` and answers `{"result": …}`, as OPA does under
    /// `/v1/data/…`. The address may be private; redirects are not followed.
    pub url: Option<LocatedValue<String>>,
    /// A credential of `network.credentials` that is sent along. Its `urls` must cover the endpoint.
    pub credential: Option<LocatedValue<String>>,
    /// The largest answer of the endpoint, up to 1MiB.
    pub max_answer: Option<LocatedValue<ByteSize>>,
    /// The program and its arguments. No shell reads them. What begins with `./` or `../` is a file, relative to this
    /// one.
    #[schemars(length(min = 1))]
    pub command: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// What the program may do.
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// Folders that the program may write, relative to this file, whatever its profile says. They must be there.
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// Variables that the program gets from the host's environment, beside those of `sandbox.environment`.
    pub environment: Vec<LocatedValue<String>>,
    /// How long it may take to decide, up to a minute. Without a decision by then the call is denied.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long an answer is kept for calls with the same input, up to a day. Without it, it is asked about every call.
    pub cache: Option<LocatedValue<ConfigDuration>>,
}
