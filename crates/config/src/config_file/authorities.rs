//! `authorities`: the programs and endpoints that decide for `delegate` rules.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::SandboxProfile;

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// An authority that decides for `delegate` rules: a policy endpoint (`url`) or a program (`command`), never both.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("anyOf" = [{ "required": ["url"] }, { "required": ["command"] }]))]
pub struct AuthorityEntry {
    /// The policy endpoint. It gets `POST` with `{"input": …}` and answers `{"result": …}`, as OPA does under
    /// `/v1/data/…`. The address may be private; redirects are not followed.
    pub url: Option<LocatedValue<String>>,
    /// The credential of `network.credentials` for its requests. Its `urls` must cover the endpoint.
    pub credential: Option<LocatedValue<String>>,
    /// The largest answer of the endpoint, up to 1MiB.
    pub max_answer: Option<LocatedValue<ByteSize>>,
    /// The program and its arguments, without a shell. A word that begins with `./` or `../` is a file, relative to
    /// this one.
    #[schemars(length(min = 1))]
    pub command: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// The sandbox profile of the program.
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// Folders that the program may write under any profile, relative to this file. They must exist.
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// Variables of the host's environment for the program, beside those of `sandbox.environment`.
    pub environment: Vec<LocatedValue<String>>,
    /// The time limit for a decision, up to a minute. Without a decision by then the call is denied.
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// How long an answer is reused for calls with the same input, up to a day. Without it, each call is asked about.
    pub cache: Option<LocatedValue<ConfigDuration>>,
}
