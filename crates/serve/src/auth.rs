//! Authentication: maps tokens to principals, and refuses requests from other sites' pages.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolpost_config::TokenConfig;
use toolpost_core::AcknowledgementTiming;
use toolpost_model::{Principal, PrincipalRole};

use crate::http::{HttpProblem, RequestFace, header_text};

/// The authentication of callers on the network.
#[derive(Clone, Debug)]
pub enum CallerAuthentication {
    /// With the token in the data directory, or with one generated for this run if there is no data directory.
    KeptToken,
    /// With this token.
    Token(String),
    /// Without a token. Only on loopback.
    Open,
}

pub(crate) struct AdmittedCaller {
    pub(crate) principal: Principal,
    /// A mark of the caller's token, if it came with one.
    pub(crate) credential: Option<String>,
}

pub(crate) enum RequestAuthenticator {
    Network {
        tokens: Vec<KnownToken>,
        open: bool,
        hosts: Vec<String>,
        origins: Vec<String>,
    },
    /// The unix socket in the data directory: the file's permissions are the check.
    Socket,
    /// A connection within the process: the command line and its own host.
    CommandLine,
    /// Pipes or a link to the process that started or embeds the host, which counts as authentication. A token may name
    /// another principal.
    Process {
        tokens: Vec<KnownToken>,
        token_required: bool,
        principal: Principal,
    },
}

/// A stored token: its hash, never the token.
pub(crate) struct KnownToken {
    hash: [u8; 32],
    principal: Principal,
}

impl KnownToken {
    /// The mark of a token in its sessions. It is a hash of the hash, so it does not authenticate anything.
    fn mark(&self) -> String {
        let hash = Sha256::digest(self.hash);
        const_hex::encode(&hash[..8])
    }

    pub(crate) fn of(token: &str, principal: Principal) -> Self {
        Self {
            hash: Sha256::digest(token.as_bytes()).into(),
            principal,
        }
    }

    fn admitted(&self) -> AdmittedCaller {
        AdmittedCaller {
            principal: self.principal.clone(),
            credential: Some(self.mark()),
        }
    }

    pub(crate) fn configured(token: &TokenConfig) -> Self {
        let principal = match token.role {
            PrincipalRole::Agent => Principal::agent(&token.name),
            PrincipalRole::Operator => Principal::operator(&token.name),
        };
        Self {
            hash: token.sha256,
            principal,
        }
    }
}

impl RequestAuthenticator {
    /// Authenticates an agent over stdio. A token is required only if one is set for it; a configured token may name
    /// another principal.
    pub(crate) fn of_stdio(configured: &[TokenConfig], token: Option<&str>) -> Self {
        let mut tokens: Vec<KnownToken> = configured.iter().map(KnownToken::configured).collect();
        tokens.extend(token.map(|token| KnownToken::of(token, Principal::agent("agent"))));
        Self::Process {
            tokens,
            token_required: token.is_some(),
            principal: Principal::agent("stdio"),
        }
    }

    /// Checks that the request is meant for this server. This stops a page of another site that reaches `localhost`
    /// through a rebound name, and a form that is posted across sites, on every route.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), HttpProblem> {
        let Self::Network { hosts, origins, .. } = self else {
            return Ok(());
        };
        // With two values of a header, this check and a proxy could each read a different one.
        if [header::HOST, header::ORIGIN]
            .iter()
            .any(|name| headers.get_all(name).iter().count() > 1)
        {
            return Err(HttpProblem::bad_request(
                "repeated_header",
                "`Host` or `Origin` is present more than once",
            ));
        }
        let host = header_text(headers, header::HOST).ok_or_else(|| {
            HttpProblem::bad_request("missing_host", "the request has no `Host` header")
        })?;
        if !is_own_host(host, hosts) {
            return Err(HttpProblem::forbidden(
                "host_not_allowed",
                format!("the host `{}` is not allowed", host.escape_debug()),
            )
            .hint("add it to `http.allowed_hosts`"));
        }
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default();
        let same = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            == Some(host);
        if same || origins.iter().any(|allowed| allowed == origin) {
            return Ok(());
        }
        Err(HttpProblem::forbidden(
            "origin_not_allowed",
            format!("the origin `{}` is not allowed", origin.escape_debug()),
        )
        .hint("add it to `http.allowed_origins`"))
    }

    /// The face of this authenticator's requests.
    pub(crate) fn face(&self) -> RequestFace {
        let (name, acknowledgement) = match self {
            Self::Network { .. } => ("http", AcknowledgementTiming::Early),
            Self::Socket => ("socket", AcknowledgementTiming::Early),
            Self::Process { .. } => ("process", AcknowledgementTiming::Early),
            // The caller ends with the host, so it needs no early record of its call.
            Self::CommandLine => ("cli", AcknowledgementTiming::AtTheEnd),
        };
        RequestFace {
            name,
            acknowledgement,
        }
    }

    pub(crate) fn principal(&self, headers: &HeaderMap) -> Result<Principal, HttpProblem> {
        match self {
            Self::Network { open: false, .. } => {}
            Self::Network { open: true, .. } => return Ok(Principal::agent("anonymous")),
            Self::Socket | Self::CommandLine => return Ok(Principal::operator("local")),
            Self::Process { principal, .. } => return Ok(principal.clone()),
        }
        let given = header_text(headers, header::AUTHORIZATION)
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        let Some(given) = given else {
            return Err(HttpProblem::unauthorized("a token is required").hint(
                "send `Authorization: Bearer TOKEN`; `toolpost serve` shows the file of the token",
            ));
        };
        let known = self.known(given).map(|token| token.principal.clone());
        known.ok_or_else(|| {
            HttpProblem::unauthorized("the token is unknown").hint(
                "each workspace has a token of its own; `toolpost serve` prints the file of this one",
            )
        })
    }

    /// Authenticates an agent by the token in its own protocol, which may be empty.
    pub(crate) fn admits(&self, token: &str) -> Option<AdmittedCaller> {
        let unmarked = |principal| {
            Some(AdmittedCaller {
                principal,
                credential: None,
            })
        };
        match self {
            Self::Network { open: true, .. } => unmarked(Principal::agent("anonymous")),
            Self::Network { .. } => self.known(token).map(KnownToken::admitted),
            Self::Socket | Self::CommandLine => unmarked(Principal::agent("local")),
            Self::Process {
                principal,
                token_required: false,
                ..
            } if token.is_empty() => unmarked(principal.clone()),
            Self::Process { .. } => self.known(token).map(KnownToken::admitted),
        }
    }

    /// Whether a caller that was admitted earlier would still be admitted.
    pub(crate) fn still_admits(&self, principal: &Principal, credential: Option<&str>) -> bool {
        match self {
            Self::Network { open: true, .. } => *principal == Principal::agent("anonymous"),
            Self::Network { tokens, .. } => tokens.iter().any(|token| {
                token.principal == *principal && credential == Some(token.mark().as_str())
            }),
            Self::Socket | Self::CommandLine => *principal == Principal::agent("local"),
            Self::Process { .. } => false,
        }
    }

    fn known(&self, token: &str) -> Option<&KnownToken> {
        let (Self::Network { tokens, .. } | Self::Process { tokens, .. }) = self else {
            return None;
        };
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Every token is compared in constant time, so that the duration of the check reveals nothing.
        let mut found = None;
        for token in tokens {
            if bool::from(token.hash.ct_eq(&hash)) {
                found = Some(token);
            }
        }
        found
    }
}

/// DNS rebinding requires a name, so addresses and `localhost` always count as this host; other names must be
/// configured.
fn is_own_host(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || allowed
            .iter()
            .any(|known| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::is_own_host;

    #[test]
    fn only_addresses_localhost_and_configured_names_are_own() {
        let allowed = ["tools.example".to_owned()];
        for host in [
            "localhost",
            "localhost:8765",
            "127.0.0.1:1",
            "[::1]:8765",
            "10.0.0.2",
            "tools.example:99",
        ] {
            assert!(is_own_host(host, &allowed), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8765",
            "127.0.0.1.nip.io",
            "",
            "[::1",
        ] {
            assert!(!is_own_host(host, &allowed), "{host}");
        }
    }
}
