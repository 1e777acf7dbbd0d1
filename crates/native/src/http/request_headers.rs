//! The headers that a caller may set.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolpost_processes::{is_refused_header, shown};

/// The most headers of one request.
const MAX_HEADERS: usize = 64;
/// The most bytes of their names and values together.
const MAX_BYTES: usize = 16 * 1024;

/// Why the headers cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("`{}` is not the name of a header", shown(.name))]
    Name { name: String },
    #[error("the value of `{}` contains a line break or another character that headers cannot have", shown(.name))]
    Value { name: String },
    #[error("the header `{name}` is set by the client itself; leave it out")]
    Refused { name: HeaderName },
    #[error("the header `{name}` is given twice, spelled differently")]
    Twice { name: HeaderName },
    #[error("{count} headers are too many, the limit is {MAX_HEADERS}")]
    TooMany { count: usize },
    #[error("the headers have {bytes} bytes, the limit is {MAX_BYTES}")]
    TooLarge { bytes: usize },
}

/// Parses the caller's headers.
pub(super) fn read(given: &BTreeMap<String, String>) -> Result<HeaderMap, HeaderError> {
    if given.len() > MAX_HEADERS {
        return Err(HeaderError::TooMany { count: given.len() });
    }
    let bytes = given
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > MAX_BYTES {
        return Err(HeaderError::TooLarge { bytes });
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let parsed: HeaderName = name
            .parse()
            .map_err(|_| HeaderError::Name { name: name.clone() })?;
        if is_refused_header(&parsed) {
            return Err(HeaderError::Refused { name: parsed });
        }
        let value =
            HeaderValue::from_str(value).map_err(|_| HeaderError::Value { name: name.clone() })?;
        if headers.insert(parsed.clone(), value).is_some() {
            return Err(HeaderError::Twice { name: parsed });
        }
    }
    Ok(headers)
}

/// Whether the header must not follow a redirect to another origin, because it authorises at this one. Unknown names
/// count if they sound like a key.
pub(super) fn stays_with_its_origin(name: &HeaderName) -> bool {
    const WORDS: [&str; 9] = [
        "auth",
        "cookie",
        "token",
        "key",
        "secret",
        "credential",
        "session",
        "csrf",
        "xsrf",
    ];
    WORDS.iter().any(|word| name.as_str().contains(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{HeaderError, read, stays_with_its_origin};

    fn headers(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn headers_that_frame_a_message_are_refused() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "Connection",
            "Upgrade",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Expect",
            "Proxy-Authorization",
            "proxy-connection",
            "HTTP2-Settings",
        ] {
            let refused = read(&headers(&[(name, "x")]));
            assert!(
                matches!(refused, Err(HeaderError::Refused { .. })),
                "{name}: {refused:?}"
            );
        }
    }

    #[test]
    fn line_breaks_do_not_make_headers() {
        for value in ["a\r\nHost: b", "a\nb", "a\0b", "a\rb"] {
            assert_eq!(
                read(&headers(&[("X-A", value)])),
                Err(HeaderError::Value {
                    name: "X-A".to_owned()
                })
            );
        }
        for name in ["", "a b", "a:b", "a\r\nb", "é"] {
            assert_eq!(
                read(&headers(&[(name, "v")])),
                Err(HeaderError::Name {
                    name: name.to_owned()
                })
            );
        }
        let twice = read(&headers(&[("X-A", "1"), ("x-a", "2")]));
        assert!(matches!(twice, Err(HeaderError::Twice { .. })));
    }

    #[test]
    fn floods_are_refused() {
        let many: Vec<String> = (0..65).map(|n| format!("x-{n}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(
            read(&headers(&many)),
            Err(HeaderError::TooMany { count: 65 })
        );
        let large = "v".repeat(20_000);
        assert_eq!(
            read(&headers(&[("a", &large)])),
            Err(HeaderError::TooLarge { bytes: 20_001 })
        );
    }

    #[test]
    fn keys_stay_with_their_origin() {
        let check = |name: &str, stays: bool| {
            assert_eq!(
                stays_with_its_origin(&name.parse().unwrap()),
                stays,
                "{name}"
            );
        };
        for name in [
            "Authorization",
            "Cookie",
            "X-Api-Key",
            "PRIVATE-TOKEN",
            "X-Auth",
            "x-csrf-token",
        ] {
            check(name, true);
        }
        for name in [
            "Accept",
            "User-Agent",
            "Range",
            "If-None-Match",
            "Content-Type",
        ] {
            check(name, false);
        }
    }
}
