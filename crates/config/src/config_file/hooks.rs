//! `hooks`: programs that look at calls.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::{HookEvent, HookStanding, SandboxProfile};

use crate::{ConfigDuration, LocatedValue, several::OneOrMany};

/// A program that looks at calls.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookEntry {
    /// What records and messages call it.
    pub name: LocatedValue<String>,
    /// When it is asked.
    pub event: LocatedValue<OneOrMany<HookEvent>>,
    /// About calls of which tools, by name or id, with `*` for any characters. Without it: of every tool.
    #[serde(default)]
    pub tools: Option<LocatedValue<OneOrMany<String>>>,
    /// Of those only the calls that this fits, written as in a rule: `shell(git push *)`, `fs.write(src/**)`,
    /// `http_request[/method = "POST"]`, `class:network`.
    #[serde(default)]
    pub when: Option<LocatedValue<String>>,
    /// The program and its arguments. No shell reads them. What begins with `./` or `../` is a file, relative to this
    /// one.
    #[schemars(length(min = 1))]
    pub command: LocatedValue<Vec<LocatedValue<String>>>,
    /// What its failure means.
    #[serde(default)]
    pub standing: Option<LocatedValue<HookStanding>>,
    /// How long it may take to answer, up to a minute.
    #[serde(default)]
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// What it may do.
    #[serde(default)]
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// Folders it may write, relative to this file, whatever its profile says. They must be there.
    #[serde(default)]
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// Variables that it gets from the host's environment, beside those of `sandbox.environment`.
    #[serde(default)]
    pub environment: Vec<LocatedValue<String>>,
}
