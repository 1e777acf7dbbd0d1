//! Decides which URLs may be requested. It is called before the first request and again at every redirect.
//!
//! A client does not call its resolver for hosts that are addresses, so those are checked here, after `Url` has
//! normalised all their spellings (`127.1`, `0x7f000001`, full-width digits, a dot at the end).

use std::net::IpAddr;

use reqwest::Url;
use toolpost_model::{ErrorClass, InputRefusal, ToolFailure};
use url::Host;

use super::{address::AddressKind, settings::PrivateTarget};
use crate::workspace::shown;

/// The longest URL, in bytes.
const URL_BYTES: usize = 8 * 1024;

/// A URL that may be requested, and the addresses that its host may resolve to.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    /// Where the request goes.
    pub url: Url,
    pub(super) reach: AddressReach,
}

/// The addresses that a name may resolve to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressReach {
    /// Public ones only.
    Public,
    /// Loopback and private ones, too, because the operator listed the URL.
    Listed,
}

/// Why a URL is not requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TargetRefusal {
    #[error("`{}` is not a URL: {source}", shown(.given))]
    NotAUrl {
        given: String,
        source: url::ParseError,
    },
    #[error("the URL has {bytes} bytes, the limit is {URL_BYTES}")]
    TooLong { bytes: usize },
    #[error("`{}` does not begin with `http://` or `https://`", shown(.given))]
    Scheme { given: String },
    #[error("`{}` has no host", shown(.given))]
    NoHost { given: String },
    #[error("the URL contains a user name or password; nothing was sent")]
    UserInfo,
    #[error("`{host}` is {kind}")]
    Address { host: String, kind: AddressKind },
    #[error("`{host}` is a name of this machine")]
    LocalName { host: String },
    #[error("the name `{host}` resolves to `{address}`, which is {kind}")]
    Answer {
        host: String,
        address: IpAddr,
        kind: AddressKind,
    },
    #[error("the name `{host}` does not resolve")]
    NoAddress { host: String },
    #[error("the answer for `{host}` came from `{address}`, which is {kind}")]
    Peer {
        host: String,
        address: IpAddr,
        kind: AddressKind,
    },
}

impl HttpTarget {
    /// Parses a URL as a caller sent it and applies the rules. No I/O.
    pub fn parse(given: &str, private: &[PrivateTarget]) -> Result<Self, TargetRefusal> {
        if given.len() > URL_BYTES {
            return Err(TargetRefusal::TooLong { bytes: given.len() });
        }
        let url = Url::parse(given).map_err(|source| TargetRefusal::NotAUrl {
            given: given.to_owned(),
            source,
        })?;
        Self::of(url, private)
    }

    /// Applies the rules to a composed URL: one with its query, or the target of a redirect.
    pub fn of(mut url: Url, private: &[PrivateTarget]) -> Result<Self, TargetRefusal> {
        if url.as_str().len() > URL_BYTES {
            return Err(TargetRefusal::TooLong {
                bytes: url.as_str().len(),
            });
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TargetRefusal::Scheme {
                given: url.to_string(),
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetRefusal::UserInfo);
        }
        // The fragment is not sent; without it, messages show the URL that is requested.
        url.set_fragment(None);
        let reach = match private.iter().any(|target| target.0.covers(&url)) {
            true => AddressReach::Listed,
            false => AddressReach::Public,
        };
        reach.check_host(&url)?;
        Ok(Self { url, reach })
    }

    /// Checks the address of the peer that answered.
    pub fn check_peer(&self, peer: IpAddr) -> Result<(), TargetRefusal> {
        let is_literal =
            literal(&self.url).is_some_and(|address| address.to_canonical() == peer.to_canonical());
        let is_listed = self.reach == AddressReach::Listed && is_literal;
        match AddressKind::of(peer).filter(|kind| !self.reach.allows(*kind)) {
            Some(kind) if !is_listed => {
                let host = self.url.host_str().unwrap_or_default().to_owned();
                Err(TargetRefusal::Peer {
                    host,
                    address: peer,
                    kind,
                })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl AddressReach {
    fn allows(self, kind: AddressKind) -> bool {
        match self {
            Self::Public => false,
            Self::Listed => kind.is_a_names_business(),
        }
    }

    fn check_host(self, url: &Url) -> Result<(), TargetRefusal> {
        let Some(host) = url.host() else {
            return Err(TargetRefusal::NoHost {
                given: url.to_string(),
            });
        };
        // A listed address is allowed as it is: an operator who lists a link-local address means it.
        if self == Self::Listed {
            return Ok(());
        }
        match host {
            Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                let local = name == "localhost" || name.ends_with(".localhost");
                match (name.is_empty(), local) {
                    (true, _) => Err(TargetRefusal::NoHost {
                        given: url.to_string(),
                    }),
                    (_, true) => Err(TargetRefusal::LocalName {
                        host: host.to_string(),
                    }),
                    (false, false) => Ok(()),
                }
            }
            Host::Ipv4(_) | Host::Ipv6(_) => match literal(url).and_then(AddressKind::of) {
                Some(kind) => Err(TargetRefusal::Address {
                    host: host.to_string(),
                    kind,
                }),
                None => Ok(()),
            },
        }
    }

    /// Checks one address that a name resolved to.
    pub(super) fn check_answer(self, host: &str, address: IpAddr) -> Result<(), TargetRefusal> {
        match AddressKind::of(address) {
            Some(kind) if !self.allows(kind) => Err(TargetRefusal::Answer {
                host: host.to_owned(),
                address,
                kind,
            }),
            Some(_) | None => Ok(()),
        }
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

impl TargetRefusal {
    /// The class of the failure.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotAUrl { .. }
            | Self::TooLong { .. }
            | Self::Scheme { .. }
            | Self::NoHost { .. }
            | Self::UserInfo => ErrorClass::InvalidArguments,
            Self::Address { .. }
            | Self::LocalName { .. }
            | Self::Answer { .. }
            | Self::Peer { .. } => ErrorClass::SandboxViolation,
            Self::NoAddress { .. } => ErrorClass::DependencyUnavailable,
        }
    }

    /// Whether the operator can allow it.
    pub(super) fn is_private(&self) -> bool {
        self.class() == ErrorClass::SandboxViolation
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotAUrl { .. } | Self::Scheme { .. } | Self::NoHost { .. } => {
                Some("write the whole URL, such as `https://example.org/page`")
            }
            Self::UserInfo => Some("use `credential`, or an `Authorization` header"),
            Self::Address { .. }
            | Self::LocalName { .. }
            | Self::Answer { .. }
            | Self::Peer { .. } => Some(
                "the operator must list private targets under `network.private`, such as \
                 `http://127.0.0.1:8080/`",
            ),
            Self::TooLong { .. } | Self::NoAddress { .. } => None,
        }
    }

    /// The refusal as `check` reports it. Both tools call the argument `url`.
    pub fn into_refusal(self) -> InputRefusal {
        let hint = self
            .hint()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        InputRefusal {
            class: self.class(),
            at: "/url".to_owned(),
            message: format!("{self}{hint}"),
        }
    }

    /// The refusal as the failure of a call.
    pub fn into_failure(self) -> ToolFailure {
        let code = match &self {
            Self::NotAUrl { .. } | Self::NoHost { .. } | Self::Scheme { .. } => "bad_url",
            Self::TooLong { .. } => "url_too_long",
            Self::UserInfo => "user_info",
            Self::Address { .. }
            | Self::LocalName { .. }
            | Self::Answer { .. }
            | Self::Peer { .. } => "private_address",
            Self::NoAddress { .. } => "name_not_found",
        };
        let failure = ToolFailure::of(self.class(), self.to_string()).code(code);
        match self.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
