//! Authorities that rules delegate decisions to: a program of the operator, started for every question, or a policy
//! endpoint that is asked over HTTP in the form of OPA's data API.

mod endpoint;
mod program;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use toolpost_core::DecisionAuthority;
use toolpost_model::{AuthorityName, SandboxProfile};
use toolpost_sandbox::Launcher;
use url::Url;

use crate::{
    children::{ChildSettings, Children},
    environment::EnvironmentRefusal,
    http::Credential,
    workspace::Workspace,
};

use endpoint::PolicyEndpoint;
use program::ProgramAuthority;

/// What the operator says of an authority.
#[derive(Clone, Debug)]
pub struct AuthorityDeclaration {
    /// The name that rules use.
    pub name: AuthorityName,
    /// How it is asked.
    pub reach: AuthorityReach,
    /// How long it may take.
    pub time_limit: Duration,
    /// How long answers are kept for calls with the same input; `None`: it is asked about every call.
    pub keeps_answers_for: Option<Duration>,
}

/// How an authority is asked.
#[derive(Clone, Debug)]
pub enum AuthorityReach {
    /// A program in the confines of a hook.
    Program {
        /// The program and its arguments. No shell reads them.
        argv: Vec<String>,
        /// What it may do.
        profile: SandboxProfile,
        /// Folders it may write, whatever else its profile lets it write.
        writable: Vec<PathBuf>,
        /// Further files and folders it may read: usually its own script.
        readable: Vec<PathBuf>,
        /// Variables beside those that every child gets.
        environment: BTreeMap<String, String>,
    },
    /// A policy endpoint.
    Endpoint(EndpointDeclaration),
}

/// A policy endpoint. Its address is the operator's own word, so it may be private.
#[derive(Clone, Debug)]
pub struct EndpointDeclaration {
    /// Where questions are sent.
    pub url: Url,
    /// The largest answer, in bytes.
    pub max_answer: usize,
    /// The credential that is sent along. Its `urls` must cover the address.
    pub credential: Option<Credential>,
}

/// What the authorities of a configuration are made of.
pub struct AuthorityParts {
    /// What programs are started with. `None`: nothing can start them.
    pub programs: Option<(Arc<Workspace>, Launcher, ChildSettings)>,
    /// The authorities.
    pub authorities: Vec<AuthorityDeclaration>,
}

/// An authority that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("authority `{authority}`: {problem}")]
pub struct AuthorityError {
    /// Which.
    pub authority: AuthorityName,
    /// What is wrong with it.
    #[source]
    pub problem: AuthorityProblem,
}

/// What is wrong with an authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityProblem {
    /// Nothing to run.
    #[error("its command names no program")]
    NoProgram,
    /// Nothing can start its program.
    #[error("its program cannot be started: the host has no workspace or no launcher")]
    NoLauncher,
    /// A variable that no child is given.
    #[error(transparent)]
    Environment(#[from] EnvironmentRefusal),
    /// Its credential is for other addresses.
    #[error("the credential `{0}` is not for `{1}`; add the address to its `urls`")]
    CredentialElsewhere(String, Url),
    /// Its credential can be in no header.
    #[error("the value of the credential `{0}` cannot be sent in a header")]
    CredentialValue(String),
    /// There is no HTTP client.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// Makes the declared authorities. What cannot work is refused here, not at the first call.
pub fn configured_authorities(
    parts: AuthorityParts,
) -> Result<Vec<Arc<dyn DecisionAuthority>>, AuthorityError> {
    let AuthorityParts {
        programs,
        authorities,
    } = parts;
    let children = programs.map(|(workspace, launcher, settings)| {
        Arc::new(Children::new(Some(launcher), settings, workspace))
    });
    let made = authorities.into_iter().map(|declaration| {
        let authority = declaration.name.clone();
        made(declaration, children.as_ref())
            .map_err(|problem| AuthorityError { authority, problem })
    });
    made.collect()
}

fn made(
    declaration: AuthorityDeclaration,
    children: Option<&Arc<Children>>,
) -> Result<Arc<dyn DecisionAuthority>, AuthorityProblem> {
    let terms = AuthorityTerms {
        name: declaration.name,
        time_limit: declaration.time_limit,
        keeps_answers_for: declaration.keeps_answers_for,
    };
    Ok(match declaration.reach {
        AuthorityReach::Program {
            argv,
            profile,
            writable,
            readable,
            environment,
        } => {
            let children = children.ok_or(AuthorityProblem::NoLauncher)?;
            let program = crate::hook::program::ProgramDeclaration {
                argv,
                profile,
                writable,
                readable,
                environment,
            };
            Arc::new(ProgramAuthority::new(terms, program, Arc::clone(children))?)
        }
        AuthorityReach::Endpoint(endpoint) => Arc::new(PolicyEndpoint::new(terms, endpoint)?),
    })
}

/// What holds for an authority however it is asked.
struct AuthorityTerms {
    name: AuthorityName,
    time_limit: Duration,
    keeps_answers_for: Option<Duration>,
}
