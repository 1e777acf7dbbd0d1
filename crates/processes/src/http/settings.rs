//! The operator's network settings: allowed private hosts, credentials, and size limits.

use std::{fmt, sync::Arc};

use reqwest::header::{HeaderName, HeaderValue};
use toolpost_model::Secret;

use super::{
    names::{NameLookup, SystemNames},
    url_prefix::{UrlPrefix, UrlPrefixError},
};

/// Default for `max_body_bytes`.
const BODY_BYTES: u64 = 5 * 1024 * 1024;
/// Default for `max_saved_bytes`.
const SAVED_BYTES: u64 = 256 * 1024 * 1024;

/// Settings of the HTTP tools.
#[derive(Clone)]
pub struct NetworkSettings {
    /// Targets that may be reached although their addresses are private.
    pub private: Vec<PrivateTarget>,
    /// The credentials that a call may name as `credential`.
    pub credentials: Vec<Credential>,
    /// The most decompressed bytes of a body that a result or a page is made from.
    pub max_body_bytes: u64,
    /// The most decompressed bytes of a body that are saved to a file.
    pub max_saved_bytes: u64,
    /// The name lookup.
    pub names: Arc<dyn NameLookup>,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            private: Vec::new(),
            credentials: Vec::new(),
            max_body_bytes: BODY_BYTES,
            max_saved_bytes: SAVED_BYTES,
            names: Arc::new(SystemNames),
        }
    }
}

impl fmt::Debug for NetworkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkSettings")
            .field("private", &self.private)
            .field("credentials", &self.credentials)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("max_saved_bytes", &self.max_saved_bytes)
            .finish_non_exhaustive()
    }
}

/// A private or loopback target that may be reached: all URLs that begin with it. With a name, it allows loopback and
/// private addresses of that name; link-local addresses have to be listed themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateTarget(pub(super) UrlPrefix);

impl PrivateTarget {
    /// Parses a target such as `http://127.0.0.1:8080/`.
    pub fn parse(text: &str) -> Result<Self, UrlPrefixError> {
        UrlPrefix::parse(text).map(Self)
    }
}

impl fmt::Display for PrivateTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A secret that calls use by name, for some URLs only.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The name that calls use.
    pub name: String,
    /// The secret.
    pub value: Secret,
    /// The header that carries it.
    pub header: CredentialHeader,
    /// The URLs it may be sent to. If empty, it is never sent.
    pub urls: Vec<UrlPrefix>,
}

/// The header of a credential, and the word before the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialHeader {
    /// The header's name.
    pub name: HeaderName,
    scheme: Option<String>,
}

/// Why a text is not a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a header; write `Authorization: Bearer` or a name such as `X-Api-Key`")]
pub struct CredentialHeaderError {
    /// As written.
    pub given: String,
}

impl Default for CredentialHeader {
    fn default() -> Self {
        Self {
            name: reqwest::header::AUTHORIZATION,
            scheme: Some("Bearer".to_owned()),
        }
    }
}

impl CredentialHeader {
    /// Parses a name, or a name and the word before the value, as in `Authorization: Bearer`.
    pub fn parse(given: &str) -> Result<Self, CredentialHeaderError> {
        let refused = || CredentialHeaderError {
            given: given.to_owned(),
        };
        let (name, scheme) = match given.split_once(':') {
            Some((name, scheme)) => (name, Some(scheme.trim())),
            None => (given, None),
        };
        let name: HeaderName = name.trim().parse().map_err(|_| refused())?;
        let legal =
            |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_graphic());
        if is_refused_header(&name) || scheme.is_some_and(|scheme| !legal(scheme)) {
            return Err(refused());
        }
        Ok(Self {
            name,
            scheme: scheme.map(str::to_owned),
        })
    }
}

impl Credential {
    /// The header's value; `None` if the secret is not valid in a header.
    pub fn header_value(&self) -> Option<HeaderValue> {
        let secret = self.value.reveal().trim();
        let text = match &self.header.scheme {
            Some(scheme) => format!("{scheme} {secret}"),
            None => secret.to_owned(),
        };
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Whether the header controls where a message goes or ends. Only the client may set these: if two parties read the end
/// of a message differently, one can smuggle a request past the other.
pub fn is_refused_header(name: &HeaderName) -> bool {
    const REFUSED: [&str; 10] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "http2-settings",
    ];
    REFUSED.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

#[cfg(test)]
mod tests {
    use super::{Credential, CredentialHeader, NetworkSettings, Secret};

    #[test]
    fn headers_of_credentials() {
        let check = |header: &str, expected: Option<(&str, &str)>| {
            let parsed = CredentialHeader::parse(header)
                .ok()
                .map(|header| Credential {
                    name: "c".to_owned(),
                    value: Secret::new("s3cret\n"),
                    header,
                    urls: Vec::new(),
                });
            let told = parsed.map(|credential| {
                let value = credential.header_value().unwrap();
                (
                    credential.header.name.as_str().to_owned(),
                    value.to_str().unwrap().to_owned(),
                )
            });
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(told, expected, "{header}");
        };
        check(
            "Authorization: Bearer",
            Some(("authorization", "Bearer s3cret")),
        );
        check(
            "authorization:token",
            Some(("authorization", "token s3cret")),
        );
        check("X-Api-Key", Some(("x-api-key", "s3cret")));
        check("Host", None);
        check("Proxy-Authorization: Basic", None);
        check("Authorization:", None);
        check("Authorization: a b", None);
        check("", None);
        check("bad name", None);
    }

    #[test]
    fn settings_do_not_tell_secrets() {
        let credential = Credential {
            name: "c".to_owned(),
            value: Secret::new("s3cret"),
            header: CredentialHeader::default(),
            urls: Vec::new(),
        };
        let settings = NetworkSettings {
            credentials: vec![credential],
            ..NetworkSettings::default()
        };
        let told = format!("{settings:?}");
        assert!(
            told.contains("Secret(…)") && !told.contains("s3cret"),
            "{told}"
        );
    }
}
