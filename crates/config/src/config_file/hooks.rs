//! `hooks`: programs that decide about calls or observe them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::{HookEvent, HookStanding, SandboxProfile};

use crate::{ConfigDuration, LocatedValue, several::OneOrMany};

/// A program that decides about calls or observes them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookEntry {
    /// Its name in records and messages.
    pub name: LocatedValue<String>,
    /// The moments at which it runs.
    pub event: LocatedValue<OneOrMany<HookEvent>>,
    /// The tools whose calls it gets, by name or id, with `*` for any characters. Without it: all tools.
    #[serde(default)]
    pub tools: Option<LocatedValue<OneOrMany<String>>>,
    /// Limits it to the calls that match, written as in a rule: `shell(git push *)`, `fs.write(src/**)`,
    /// `http_request[/method = "POST"]`, `class:network`.
    #[serde(default)]
    pub when: Option<LocatedValue<String>>,
    /// The program and its arguments, without a shell. A word that begins with `./` or `../` is a file, relative to
    /// this one.
    #[schemars(length(min = 1))]
    pub command: LocatedValue<Vec<LocatedValue<String>>>,
    /// The consequence of its failure.
    #[serde(default)]
    pub standing: Option<LocatedValue<HookStanding>>,
    /// Its time limit, up to a minute.
    #[serde(default)]
    pub timeout: Option<LocatedValue<ConfigDuration>>,
    /// The sandbox profile of the program.
    #[serde(default)]
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// Folders that it may write under any profile, relative to this file. They must exist.
    #[serde(default)]
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// Variables of the host's environment for the program, beside those of `sandbox.environment`.
    #[serde(default)]
    pub environment: Vec<LocatedValue<String>>,
}
