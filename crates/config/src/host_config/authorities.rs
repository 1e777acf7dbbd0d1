//! Authorities as used.

use std::{path::PathBuf, time::Duration};

use toolpost_model::{AuthorityName, SandboxProfile};

/// An authority for `delegate` rules, checked and with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityConfig {
    /// The name that rules use.
    pub name: AuthorityName,
    /// The way to ask it.
    pub reach: AuthorityReachConfig,
    /// Its time limit.
    pub timeout: Duration,
    /// How long answers are reused; `None`: not at all.
    pub cache: Option<Duration>,
    /// File and line of its entry.
    pub place: String,
}

/// The way to ask an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityReachConfig {
    /// Over HTTP.
    Endpoint {
        /// The URL of the endpoint.
        url: String,
        /// The credential of its requests.
        credential: Option<String>,
        /// The largest answer, in bytes.
        max_answer: u64,
    },
    /// By starting a program.
    Program {
        /// The program and its arguments. Never empty.
        command: Vec<String>,
        /// The files among them with paths relative to the configuration.
        files: Vec<PathBuf>,
        /// The sandbox profile of the program.
        profile: SandboxProfile,
        /// Folders that it may write under any profile.
        writable: Vec<PathBuf>,
        /// Names of variables that it gets beside those of the sandbox.
        environment: Vec<String>,
    },
}

impl AuthorityConfig {
    /// The default time limit of an authority.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
    /// The default size limit of an answer.
    pub(crate) const MAX_ANSWER: u64 = 64 << 10;

    /// The variables that its program gets.
    pub fn environment(&self) -> &[String] {
        match &self.reach {
            AuthorityReachConfig::Endpoint { .. } => &[],
            AuthorityReachConfig::Program { environment, .. } => environment,
        }
    }
}
