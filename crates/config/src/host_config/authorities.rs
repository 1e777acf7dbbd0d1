//! Authorities as used.

use std::{path::PathBuf, time::Duration};

use toolpost_model::{AuthorityName, SandboxProfile};

/// An authority that rules delegate decisions to, checked and with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityConfig {
    /// The name that rules use.
    pub name: AuthorityName,
    /// How it is asked.
    pub reach: AuthorityReachConfig,
    /// How long it may take to decide.
    pub timeout: Duration,
    /// How long answers are kept; `None`: not at all.
    pub cache: Option<Duration>,
    /// File and line of its entry.
    pub place: String,
}

/// How an authority is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityReachConfig {
    /// Over HTTP.
    Endpoint {
        /// Where questions are sent.
        url: String,
        /// The credential that is sent along.
        credential: Option<String>,
        /// The largest answer, in bytes.
        max_answer: u64,
    },
    /// By starting a program.
    Program {
        /// The program and its arguments. Never empty.
        command: Vec<String>,
        /// The files among them that were written relative to the configuration.
        files: Vec<PathBuf>,
        /// What it may do.
        profile: SandboxProfile,
        /// Folders it may write, whatever its profile says.
        writable: Vec<PathBuf>,
        /// Names of variables it gets beside those of the sandbox.
        environment: Vec<String>,
    },
}

impl AuthorityConfig {
    /// How long an authority may take where its entry does not say.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
    /// The largest answer where its entry does not say.
    pub(crate) const MAX_ANSWER: u64 = 64 << 10;

    /// The variables that its program gets.
    pub fn environment(&self) -> &[String] {
        match &self.reach {
            AuthorityReachConfig::Endpoint { .. } => &[],
            AuthorityReachConfig::Program { environment, .. } => environment,
        }
    }
}
