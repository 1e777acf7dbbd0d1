//! A URL prefix, with which an operator selects URLs.

use std::fmt;

use reqwest::Url;

/// URLs of one origin, from a path on: `http://127.0.0.1:8080/api/`.
///
/// Scheme, host and port must be equal after normalisation. The path is compared by segments, so `/api` covers `/api`
/// and `/api/x` and not `/apix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPrefix {
    url: Url,
}

/// Why a text is not a URL prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlPrefixError {
    /// It is not a URL.
    #[error("`{given}` is not a URL: {source}; write one such as `http://127.0.0.1:8080/`")]
    NotAUrl {
        /// As written.
        given: String,
        /// The parser's error.
        source: url::ParseError,
    },
    /// Another scheme.
    #[error("`{given}` must begin with `http://` or `https://`")]
    Scheme {
        /// As written.
        given: String,
    },
    /// It has a name, a password, a query or a fragment.
    #[error("`{given}` must be scheme, host, port and path only, without {part}")]
    TooMuch {
        /// As written.
        given: String,
        /// The part that is not allowed.
        part: &'static str,
    },
    /// It has a `*`, which has no meaning here.
    #[error(
        "`{given}` has a `*`, which is not supported; a prefix matches everything beneath its path"
    )]
    Pattern {
        /// As written.
        given: String,
    },
}

impl UrlPrefix {
    /// Parses a prefix.
    pub fn parse(given: &str) -> Result<Self, UrlPrefixError> {
        let text = || given.to_owned();
        let url = Url::parse(given).map_err(|source| UrlPrefixError::NotAUrl {
            given: text(),
            source,
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlPrefixError::Scheme { given: text() });
        }
        let parts = [
            (
                !url.username().is_empty() || url.password().is_some(),
                "a user name or password",
            ),
            (url.query().is_some(), "a query"),
            (url.fragment().is_some(), "a fragment"),
        ];
        if let Some((_, part)) = parts.into_iter().find(|(has, _)| *has) {
            return Err(UrlPrefixError::TooMuch {
                given: text(),
                part,
            });
        }
        match given.contains('*') {
            true => Err(UrlPrefixError::Pattern { given: text() }),
            false => Ok(Self { url }),
        }
    }

    /// Whether the URL begins with this prefix.
    pub fn covers(&self, url: &Url) -> bool {
        same_origin(&self.url, url) && covers_path(self.url.path(), url.path())
    }
}

impl fmt::Display for UrlPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

/// Whether scheme, host and port are equal. `host.` is the same host as `host`.
pub fn same_origin(one: &Url, other: &Url) -> bool {
    let host = |url: &Url| {
        url.host_str()
            .map(|host| host.trim_end_matches('.').to_owned())
    };
    one.scheme() == other.scheme()
        && host(one) == host(other)
        && one.port_or_known_default() == other.port_or_known_default()
}

fn covers_path(prefix: &str, path: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    if prefix.is_empty() {
        return true;
    }
    // Some servers read `%2f..%2f` as a step up, so such a path could be outside of the prefix for the server.
    let lower = path.to_ascii_lowercase();
    if ["%2f", "%5c", "%2e", "%00"]
        .iter()
        .any(|hidden| lower.contains(hidden))
    {
        return false;
    }
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{UrlPrefix, UrlPrefixError};

    #[test]
    fn a_prefix_covers_its_origin_and_what_lies_beneath_its_path() {
        let check = |prefix: &str, url: &str, covered: bool| {
            let prefix = UrlPrefix::parse(prefix).unwrap();
            assert_eq!(
                prefix.covers(&Url::parse(url).unwrap()),
                covered,
                "{prefix} and {url}"
            );
        };
        check(
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080/a?b=c",
            true,
        );
        check("http://127.0.0.1:8080", "http://127.0.0.1:8080", true);
        check("http://127.1:8080/", "http://0x7f000001:8080/", true);
        check("http://127.0.0.1:8080/", "http://127.0.0.1:8081/", false);
        check("http://127.0.0.1:8080/", "https://127.0.0.1:8080/", false);
        check("http://127.0.0.1:8080/", "http://localhost:8080/", false);
        check("https://Example.org/", "https://example.org.:443/x", true);
        check(
            "https://example.org/",
            "https://example.org.evil.test/",
            false,
        );
        check("https://example.org/", "https://sub.example.org/", false);
        check("http://h/api", "http://h/api", true);
        check("http://h/api/", "http://h/api", true);
        check("http://h/api", "http://h/api/v1", true);
        check("http://h/api", "http://h/apix", false);
        check("http://h/api", "http://h/api/../admin", false);
        check("http://h/api", "http://h/api/%2e%2e/admin", false);
        check("http://h/api", "http://h/api/..%2Fadmin", false);
        check("http://h/api", "http://h/api/..%5cadmin", false);
        check("http://h/api", "http://h/API", false);
        check("http://h/", "http://h/a%2fb", true);
    }

    #[test]
    fn what_is_not_a_prefix_is_refused() {
        let check = |text: &str, fits: fn(&UrlPrefixError) -> bool| {
            let error = UrlPrefix::parse(text).unwrap_err();
            assert!(fits(&error), "{text}: {error:?}");
        };
        check("127.0.0.1:8080", |error| {
            matches!(error, UrlPrefixError::NotAUrl { .. })
        });
        check("localhost", |error| {
            matches!(error, UrlPrefixError::NotAUrl { .. })
        });
        check("http://", |error| {
            matches!(error, UrlPrefixError::NotAUrl { .. })
        });
        check("ftp://h/", |error| {
            matches!(error, UrlPrefixError::Scheme { .. })
        });
        check("localhost:8080", |error| {
            matches!(error, UrlPrefixError::Scheme { .. })
        });
        check("http://u:p@h/", |error| {
            matches!(error, UrlPrefixError::TooMuch { .. })
        });
        check("http://h/?q", |error| {
            matches!(error, UrlPrefixError::TooMuch { .. })
        });
        check("http://h/#f", |error| {
            matches!(error, UrlPrefixError::TooMuch { .. })
        });
        check("http://h/*", |error| {
            matches!(error, UrlPrefixError::Pattern { .. })
        });
    }
}
