//! Authorities that rules delegate decisions to: a program of the operator that is started for every question, or a
//! policy endpoint with the protocol of OPA's data API.

mod endpoint;
mod program;

use std::{sync::Arc, time::Duration};

use toolpost_core::{AuthorityAnswer, AuthorityFault, AuthorityQuestion, DecisionAuthority};
use toolpost_model::{AuthorityKind, AuthorityName, BoxFuture};
use toolpost_sandbox::Launcher;
use url::Url;

use crate::{
    children::{ChildSettings, Children},
    environment::EnvironmentRefusal,
    hook::program::{AskedProgram, ProgramDeclaration},
    http::Credential,
    workspace::Workspace,
};

use endpoint::PolicyEndpoint;

/// The operator's settings of an authority.
#[derive(Clone, Debug)]
pub struct AuthorityDeclaration {
    /// The name that rules use.
    pub name: AuthorityName,
    /// How questions reach it.
    pub reach: AuthorityReach,
    /// Its time limit for one question.
    pub time_limit: Duration,
    /// How long answers are kept for calls with the same input. With `None` it is asked about every call.
    pub keeps_answers_for: Option<Duration>,
}

/// How questions reach an authority.
#[derive(Clone, Debug)]
pub enum AuthorityReach {
    /// A program in the confines of a hook.
    Program(ProgramDeclaration),
    /// A policy endpoint.
    Endpoint(EndpointDeclaration),
}

/// A policy endpoint. Its address comes from the operator, so it may be private.
#[derive(Clone, Debug)]
pub struct EndpointDeclaration {
    /// The address for questions.
    pub url: Url,
    /// The largest answer, in bytes.
    pub max_answer: usize,
    /// The credential of the requests. Its `urls` must cover the address.
    pub credential: Option<Credential>,
}

/// The inputs of [`configured_authorities`].
pub struct AuthorityParts {
    /// The inputs for starting programs. With `None` no program can be started.
    pub programs: Option<(Arc<Workspace>, Launcher, ChildSettings)>,
    /// The authorities.
    pub authorities: Vec<AuthorityDeclaration>,
}

/// An authority that cannot be configured.
#[derive(Debug, thiserror::Error)]
#[error("authority `{authority}`: {problem}")]
pub struct AuthorityError {
    /// The authority's name.
    pub authority: AuthorityName,
    /// The problem.
    #[source]
    pub problem: AuthorityProblem,
}

/// Why an authority cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityProblem {
    /// The command is empty.
    #[error("its command is empty")]
    NoProgram,
    /// The host cannot start its program.
    #[error("its program cannot be started: the host has no workspace or no launcher")]
    NoLauncher,
    /// A variable that no child gets.
    #[error(transparent)]
    Environment(#[from] EnvironmentRefusal),
    /// Its credential is for other addresses.
    #[error("the credential `{0}` is not for `{1}`; add the address to its `urls`")]
    CredentialElsewhere(String, Url),
    /// The credential's value is not valid in a header.
    #[error("the value of the credential `{0}` cannot be sent in a header")]
    CredentialValue(String),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// Builds the declared authorities. One that cannot work is refused here and not at the first call.
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
    let asked = match &declaration.reach {
        AuthorityReach::Program(program) => {
            let children = children.ok_or(AuthorityProblem::NoLauncher)?;
            AskedAuthority::Program(program::asked(program.clone(), Arc::clone(children))?)
        }
        AuthorityReach::Endpoint(endpoint) => AskedAuthority::Endpoint(PolicyEndpoint::new(
            endpoint.clone(),
            declaration.time_limit,
        )?),
    };
    Ok(Arc::new(ConfiguredAuthority { declaration, asked }))
}

/// An authority of the configuration, ready for questions.
struct ConfiguredAuthority {
    declaration: AuthorityDeclaration,
    asked: AskedAuthority,
}

enum AskedAuthority {
    Program(AskedProgram),
    Endpoint(PolicyEndpoint),
}

impl DecisionAuthority for ConfiguredAuthority {
    fn name(&self) -> &AuthorityName {
        &self.declaration.name
    }

    fn kind(&self) -> AuthorityKind {
        match self.asked {
            AskedAuthority::Program(_) => AuthorityKind::Program,
            AskedAuthority::Endpoint(_) => AuthorityKind::Endpoint,
        }
    }

    fn time_limit(&self) -> Duration {
        self.declaration.time_limit
    }

    fn keeps_answers_for(&self) -> Option<Duration> {
        self.declaration.keeps_answers_for
    }

    fn decide<'a>(
        &'a self,
        question: &'a AuthorityQuestion<'a>,
    ) -> BoxFuture<'a, Result<AuthorityAnswer, AuthorityFault>> {
        match &self.asked {
            AskedAuthority::Program(program) => Box::pin(program::ask(program, question)),
            AskedAuthority::Endpoint(endpoint) => Box::pin(endpoint.ask(question)),
        }
    }
}
