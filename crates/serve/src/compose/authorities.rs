//! Builds the authorities of a configuration.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolpost_config::{AuthorityConfig, AuthorityReachConfig, HostConfig};
use toolpost_core::DecisionAuthority;
use toolpost_model::Secret;
use toolpost_processes::{
    AuthorityDeclaration, AuthorityError, AuthorityParts, AuthorityReach, EndpointDeclaration,
    configured_authorities,
};
use toolpost_sandbox::Launcher;
use toolpost_store::DataDir;
use url::Url;

use super::{
    hooks,
    native::{self, NativeError},
};

/// The reason why the authorities of a configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// The workspace cannot be opened for their programs, or a credential has no value.
    #[error(transparent)]
    Native(#[from] NativeError),
    /// The address of an endpoint is not a URL.
    #[error("{place}: `{url}` is not a URL: {source}")]
    Url {
        /// File and line of its entry.
        place: String,
        /// The address as written.
        url: String,
        /// The problem.
        #[source]
        source: url::ParseError,
    },
    /// A file or folder of a program is missing.
    #[error("{place}: authority `{authority}`: `{}` cannot be found: {source}", path.display())]
    Missing {
        /// File and line of its entry.
        place: String,
        /// The authority.
        authority: String,
        /// The missing path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// An authority is declared wrongly.
    #[error("{place}: {source}")]
    Declaration {
        /// File and line of its entry.
        place: String,
        /// The problem.
        #[source]
        source: AuthorityError,
    },
}

/// The files of authorities. Tools ask before they change one, because it decides calls.
pub(super) fn files(config: &HostConfig) -> Vec<PathBuf> {
    let programs = config
        .authorities
        .iter()
        .filter_map(|authority| match &authority.reach {
            AuthorityReachConfig::Program { command, .. } => Some(hooks::files_among(command)),
            AuthorityReachConfig::Endpoint { .. } => None,
        });
    programs.flatten().collect()
}

/// The authorities that rules may delegate to.
pub(super) fn authorities(
    config: &HostConfig,
    data_dir: Option<&DataDir>,
    program: Option<&Path>,
    credentials: &[(String, Secret)],
) -> Result<Vec<Arc<dyn DecisionAuthority>>, AuthoritiesError> {
    if config.authorities.is_empty() {
        return Ok(Vec::new());
    }
    let programs = match (&config.workspace, program) {
        (Some(root), Some(program)) => {
            let workspace = Arc::new(native::workspace(config, root, files(config))?);
            let children = native::children(config, &workspace, data_dir);
            Some((workspace, Launcher::new(program.to_owned()), children))
        }
        (_, None) | (None, _) => None,
    };
    let declared = config
        .authorities
        .iter()
        .map(|authority| declared(authority, config, credentials));
    let parts = AuthorityParts {
        programs,
        authorities: declared.collect::<Result<_, _>>()?,
    };
    configured_authorities(parts).map_err(|source| {
        let of = config
            .authorities
            .iter()
            .find(|authority| authority.name == source.authority);
        let place = of
            .map(|authority| authority.place.clone())
            .unwrap_or_default();
        AuthoritiesError::Declaration { place, source }
    })
}

fn declared(
    authority: &AuthorityConfig,
    config: &HostConfig,
    credentials: &[(String, Secret)],
) -> Result<AuthorityDeclaration, AuthoritiesError> {
    let reach = match &authority.reach {
        AuthorityReachConfig::Endpoint {
            url,
            credential,
            max_answer,
        } => AuthorityReach::Endpoint(EndpointDeclaration {
            url: Url::parse(url).map_err(|source| AuthoritiesError::Url {
                place: authority.place.clone(),
                url: url.clone(),
                source,
            })?,
            max_answer: usize::try_from(*max_answer).unwrap_or(usize::MAX),
            credential: match credential {
                Some(name) => {
                    let known = native::network(&config.network, credentials)?.credentials;
                    let missing = || NativeError::CredentialWithoutValue(name.clone());
                    Some(
                        known
                            .into_iter()
                            .find(|one| one.name == *name)
                            .ok_or_else(missing)?,
                    )
                }
                None => None,
            },
        }),
        AuthorityReachConfig::Program {
            command,
            files,
            profile,
            writable,
            environment,
        } => {
            let wanted = hooks::ConfiguredProgram {
                command,
                files,
                profile: *profile,
                writable,
                environment,
            };
            let program =
                wanted
                    .declared(config)
                    .map_err(|(path, source)| AuthoritiesError::Missing {
                        place: authority.place.clone(),
                        authority: authority.name.to_string(),
                        path,
                        source,
                    })?;
            AuthorityReach::Program(program)
        }
    };
    Ok(AuthorityDeclaration {
        name: authority.name.clone(),
        reach,
        time_limit: authority.timeout,
        keeps_answers_for: authority.cache,
    })
}
