//! URL patterns of rules, such as `POST,PUT https://*.example.com/v1/*`.
//!
//! The crate `url` normalizes both sides first, so that case, default ports, dots, spellings of addresses and
//! international names do not matter. An allow is exact: it does not match a path that a server might decode in another
//! way. A deny or an ask is generous: it matches if any decoding of the path matches.

use percent_encoding::percent_decode_str;
use toolpost_model::matches_any;
use url::{Host, Url};

/// A URL pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrlPattern {
    /// Empty for all methods.
    methods: Vec<String>,
    scheme: SchemePattern,
    pub(super) host: HostPattern,
    /// The written port. `None` is the default port of the scheme for an allow, and any port for a deny or an ask.
    port: Option<u16>,
    /// `None` for all paths.
    path: Option<PathOfUrl>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SchemePattern {
    Any,
    /// No scheme is written: `https` for an allow, any scheme for a deny or an ask.
    Unsaid,
    Exactly(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostPattern {
    Any,
    Exactly(String),
    /// All hosts beneath a domain, without the domain itself.
    Beneath(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PathOfUrl {
    /// With `*` for any characters.
    path: String,
    query: Option<String>,
}

/// Why a text is no valid URL pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UrlPatternError {
    #[error(
        "`{0}` is not a request; write `METHOD https://host/path`, with `*` for any characters of the path"
    )]
    Form(String),
    #[error("`{0}` has a `*` in its host; only a leading `*.` is allowed there")]
    Host(String),
    #[error("`{pattern}` is not a URL: {source}")]
    Url {
        pattern: String,
        source: url::ParseError,
    },
}

/// A request that a call would make.
#[derive(Clone, Debug)]
pub(super) struct PlannedUrlRequest {
    url: Url,
    host: String,
    is_name: bool,
    /// `None` if it is unknown.
    method: Option<String>,
    /// The decodings of the path that servers may use, the usual one first.
    readings: Vec<String>,
}

impl UrlPattern {
    pub(super) fn parse(text: &str) -> Result<Self, UrlPatternError> {
        let form = || UrlPatternError::Form(text.to_owned());
        let (methods, rest) = methods_of(text.trim());
        if rest.is_empty() || rest.contains(char::is_whitespace) {
            return Err(form());
        }
        if rest == "*" || rest == "**" {
            return Ok(Self {
                methods,
                scheme: SchemePattern::Any,
                host: HostPattern::Any,
                port: None,
                path: None,
            });
        }
        let (scheme, rest) = match rest.split_once("://") {
            Some(("*", rest)) => (SchemePattern::Any, rest),
            Some((scheme, rest)) => (SchemePattern::Exactly(scheme.to_ascii_lowercase()), rest),
            None => (SchemePattern::Unsaid, rest),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.is_empty() || authority.contains('@') {
            return Err(form());
        }
        let bad = |source| UrlPatternError::Url {
            pattern: text.to_owned(),
            source,
        };
        let asterisk = authority == "*" || authority.starts_with("*:");
        let (plain, beneath) = match authority.strip_prefix("*.") {
            Some(domain) => (domain.to_owned(), true),
            None => (authority.replacen('*', "any", usize::from(asterisk)), false),
        };
        if plain.contains('*') {
            return Err(UrlPatternError::Host(text.to_owned()));
        }
        let written = format!("{}://{plain}{path}", scheme.name());
        let url = Url::parse(&written).map_err(bad)?;
        let host = match (url.host(), beneath) {
            (None, _) => return Err(form()),
            (Some(_), _) if asterisk => HostPattern::Any,
            (Some(Host::Domain(domain)), true) => HostPattern::Beneath(plain_host(domain)),
            (Some(Host::Ipv4(_) | Host::Ipv6(_)), true) => {
                return Err(UrlPatternError::Host(text.to_owned()));
            }
            (Some(host), false) => HostPattern::Exactly(in_one_spelling(&host)),
        };
        let has_port = plain
            .rsplit(']')
            .next()
            .is_some_and(|rest| rest.contains(':'));
        let port = if has_port {
            url.port_or_known_default()
        } else {
            None
        };
        let path = (!path.is_empty()).then(|| PathOfUrl {
            path: unreserved(url.path()),
            query: url.query().map(str::to_owned),
        });
        Ok(Self {
            methods,
            scheme,
            host,
            port,
            path,
        })
    }

    /// Whether an allow matches a request.
    pub(super) fn covers(&self, request: &PlannedUrlRequest) -> bool {
        let url = &request.url;
        let port = match self.port {
            Some(port) => url.port_or_known_default() == Some(port),
            None => url.port().is_none() || self.host == HostPattern::Any,
        };
        let path = match &self.path {
            None => true,
            Some(wanted) if wanted.path == "/*" && wanted.query.is_none() => true,
            Some(wanted) => {
                let query = match &wanted.query {
                    None => true,
                    Some(query) => url.query().is_some_and(|given| matches_any(query, given)),
                };
                request.is_plain() && matches_any(&wanted.path, &request.readings[0]) && query
            }
        };
        let method = || {
            request
                .method
                .as_ref()
                .is_some_and(|method| self.methods.contains(method))
        };
        url.username().is_empty()
            && url.password().is_none()
            && (self.methods.is_empty() || method())
            && (self.scheme == SchemePattern::Any || url.scheme() == self.scheme.name())
            && self.host.fits(request)
            && port
            && path
    }

    /// Whether a deny or an ask matches a request.
    pub(super) fn catches(&self, request: &PlannedUrlRequest) -> bool {
        let method = match &request.method {
            Some(method) => self.methods.is_empty() || self.methods.contains(method),
            None => true,
        };
        method
            && match &self.scheme {
                SchemePattern::Any | SchemePattern::Unsaid => true,
                SchemePattern::Exactly(scheme) => scheme == request.url.scheme(),
            }
            && self.host.fits(request)
            && self
                .port
                .is_none_or(|port| request.url.port_or_known_default() == Some(port))
            && self.path.as_ref().is_none_or(|path| path.catches(request))
    }
}

impl PathOfUrl {
    /// Matches the path, with or without a slash at its end, and everything beneath it.
    fn catches(&self, request: &PlannedUrlRequest) -> bool {
        let query = || match &self.query {
            None => true,
            Some(wanted) => {
                let given = request.url.query().unwrap_or_default();
                matches_any(wanted, given) || matches_any(wanted, &decoded(given))
            }
        };
        let stem = decoded(&self.path);
        let stem = stem
            .strip_suffix("/*")
            .unwrap_or(&stem)
            .trim_end_matches('/');
        let fits = |reading: &String| {
            matches_any(stem, reading.trim_end_matches('/'))
                || matches_any(&format!("{stem}/*"), reading)
        };
        request.readings.iter().any(fits) && query()
    }
}

impl SchemePattern {
    fn name(&self) -> &str {
        match self {
            Self::Any | Self::Unsaid => "https",
            Self::Exactly(scheme) => scheme,
        }
    }
}

impl HostPattern {
    fn fits(&self, request: &PlannedUrlRequest) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(host) => *host == request.host,
            Self::Beneath(domain) => {
                let label = request
                    .host
                    .strip_suffix(domain.as_str())
                    .and_then(|rest| rest.strip_suffix('.'));
                request.is_name && label.is_some_and(|label| !label.is_empty())
            }
        }
    }
}

impl PlannedUrlRequest {
    /// Parses an argument. The default scheme is `https`.
    pub(super) fn parse(given: &str, method: Option<String>) -> Option<Self> {
        let url = match Url::parse(given) {
            Ok(url) if url.is_special() || given.contains("://") => url,
            // Either `host/path`, or `host:port`, which parses as a scheme.
            Ok(_) | Err(_) if !given.contains("://") => {
                Url::parse(&format!("https://{}", given.trim())).ok()?
            }
            Ok(_) | Err(_) => return None,
        };
        let (host, is_name) = match url.host() {
            Some(host) => (in_one_spelling(&host), matches!(host, Host::Domain(_))),
            None => (String::new(), false),
        };
        let mut readings = vec![unreserved(url.path())];
        let mut reading = url.path().to_owned();
        // Some servers decode a path once, and some proxies decode it once more.
        for _ in 0..3 {
            let next = walked(&reading);
            if !readings.contains(&next) {
                readings.push(next);
            }
            reading = decoded(&reading);
        }
        Some(Self {
            url,
            host,
            is_name,
            method: method.map(|method| method.to_ascii_uppercase()),
            readings,
        })
    }

    /// The URL, if its scheme is `file`.
    pub(super) fn file(&self) -> Option<&str> {
        (self.url.scheme() == "file").then_some(self.url.as_str())
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Scheme, host and port as a rule names them. `None` if a rule cannot name them.
    pub(super) fn origin(&self) -> Option<String> {
        let port = self
            .url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let nameable = !self.host.is_empty()
            && self.url.username().is_empty()
            && self.url.password().is_none();
        nameable.then(|| {
            format!(
                "{}://{}{port}",
                self.url.scheme(),
                self.url.host_str().unwrap_or_default()
            )
        })
    }

    /// The path as a rule names it. `None` if a `*` in it would be a wildcard.
    pub(super) fn path(&self) -> Option<&str> {
        let path = self.readings[0].as_str();
        (self.is_plain() && !path.contains('*')).then_some(path)
    }

    /// Whether all servers decode the path in the same way.
    fn is_plain(&self) -> bool {
        let path = &self.readings[0];
        let doubtful = [
            "//", "%2F", "%2f", "%5C", "%5c", "%25", "%00", "/../", "/./", ";",
        ];
        !doubtful.iter().any(|doubt| path.contains(doubt))
    }
}

impl std::fmt::Display for PlannedUrlRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without user, password and query, which may hold secrets.
        let port = self
            .url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let host = self.url.host_str().unwrap_or_default();
        let method = self
            .method
            .as_deref()
            .map(|method| format!("{method} "))
            .unwrap_or_default();
        write!(
            f,
            "{method}{}://{host}{port}{}",
            self.url.scheme(),
            self.url.path()
        )
    }
}

/// Splits `GET,HEAD rest` into the methods and the rest.
fn methods_of(text: &str) -> (Vec<String>, &str) {
    match text.split_once(char::is_whitespace) {
        Some(("*", rest)) => (Vec::new(), rest.trim_start()),
        Some((word, rest)) if word.chars().all(|c| c.is_ascii_uppercase() || c == ',') => {
            let methods = word
                .split(',')
                .filter(|method| !method.is_empty())
                .map(str::to_owned);
            (methods.collect(), rest.trim_start())
        }
        Some(_) | None => (Vec::new(), text),
    }
}

/// Lower case, without the dot at the end, which has no meaning.
fn plain_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// A host in one spelling. An IPv4 address that is mapped to IPv6 is written as IPv4, because it reaches the same host.
fn in_one_spelling(host: &Host<&str>) -> String {
    match host {
        Host::Ipv6(address) => address
            .to_ipv4_mapped()
            .map_or_else(|| address.to_string(), |mapped| mapped.to_string()),
        Host::Ipv4(address) => address.to_string(),
        Host::Domain(name) => plain_host(name),
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Decodes only characters that have the same meaning in both spellings.
fn unreserved(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let code = rest
            .get(at + 1..at + 3)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.map(char::from) {
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') => {
                plain.push(c);
                rest = &rest[at + 3..];
            }
            Some(_) | None => {
                plain.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Decodes and normalizes a path, as a file server would.
fn walked(path: &str) -> String {
    let plain = decoded(path).replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in plain.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{PlannedUrlRequest, UrlPattern};

    fn check(pattern: &str, request: &str, covers: bool, catches: bool) {
        let parsed = UrlPattern::parse(pattern).unwrap_or_else(|error| panic!("{error}"));
        let (method, url) = match request.split_once(' ') {
            Some((method, url)) => (Some(method.to_owned()), url),
            None => (None, request),
        };
        let request_read = PlannedUrlRequest::parse(url, method).unwrap();
        let found = (parsed.covers(&request_read), parsed.catches(&request_read));
        assert_eq!(found, (covers, catches), "{pattern} on {request}");
    }

    #[test]
    fn schemes_hosts_and_ports() {
        check(
            "https://example.com",
            "GET https://example.com/a/b",
            true,
            true,
        );
        check("example.com", "GET https://EXAMPLE.com./a", true, true);
        check("example.com", "GET http://example.com/", false, true);
        check(
            "https://example.com",
            "GET http://example.com/",
            false,
            false,
        );
        check("*://example.com", "GET http://example.com/", true, true);
        check(
            "https://example.com",
            "GET https://example.com:443/",
            true,
            true,
        );
        check(
            "https://example.com",
            "GET https://example.com:8443/",
            false,
            true,
        );
        check(
            "https://example.com:8443",
            "GET https://example.com:8443/",
            true,
            true,
        );
        check(
            "https://example.com:8443",
            "GET https://example.com/",
            false,
            false,
        );
        check("*.example.com", "GET https://a.b.example.com/", true, true);
        check("*.example.com", "GET https://example.com/", false, false);
        check("*.example.com", "GET https://badexample.com/", false, false);
        check(
            "https://example.com",
            "GET https://example.com.evil.org/",
            false,
            false,
        );
        check(
            "https://example.com",
            "GET https://example.com@evil.org/",
            false,
            false,
        );
        check(
            "https://evil.org",
            "GET https://example.com@evil.org/",
            false,
            true,
        );
    }

    #[test]
    fn spellings_of_hosts_are_one() {
        check("http://127.0.0.1", "GET http://127.1/", true, true);
        check("http://127.0.0.1", "GET http://2130706433/", true, true);
        check(
            "http://[::1]:8080/",
            "GET http://[0:0:0:0:0:0:0:1]:8080/",
            true,
            true,
        );
        check("http://[::1]", "GET http://[::1]:8080/", false, true);
        check(
            "https://bücher.example",
            "GET https://xn--bcher-kva.example/",
            true,
            true,
        );
        check(
            "https://xn--bcher-kva.example",
            "GET https://BÜCHER.example/",
            true,
            true,
        );
        check(
            "https://*.bücher.example/*",
            "GET https://a.xn--bcher-kva.example/",
            true,
            true,
        );
    }

    #[test]
    fn paths_and_their_readings() {
        check("https://h/v1/*", "GET https://h/v1/a/b", true, true);
        check("https://h/v1/*", "GET https://h/v1", false, true);
        check("https://h/v1/*", "GET https://h/v10", false, false);
        check("https://h/v1", "GET https://h/v1", true, true);
        check("https://h/v1", "GET https://h/v1/a", false, true);
        check("https://h/v1/*", "GET https://h/v1/../admin", false, false);
        check(
            "https://h/admin/*",
            "GET https://h/v1/../admin/x",
            true,
            true,
        );
        check("https://h/admin/*", "GET https://h/%61dmin/x", true, true);
        check(
            "https://h/admin/*",
            "GET https://h/%2561dmin/x",
            false,
            true,
        );
        check("https://h/admin/*", "GET https://h//admin/x", false, true);
        check(
            "https://h/admin/*",
            "GET https://h/v1/..%2fadmin/x",
            false,
            true,
        );
        check(
            "https://h/v1/*",
            "GET https://h/v1/..%2fadmin/x",
            false,
            true,
        );
        check("https://h/*", "GET https://h/a%2fb", true, true);
        check("https://h/a?key=*", "GET https://h/a?key=1", true, true);
        check("https://h/a?key=*", "GET https://h/a?other=1", false, false);
        check("https://h/a", "GET https://h/a?other=1#part", true, true);
    }

    #[test]
    fn methods_count_where_they_are_known() {
        check("POST https://h/*", "post https://h/a", true, true);
        check("POST https://h/*", "GET https://h/a", false, false);
        check("GET,HEAD https://h/*", "HEAD https://h/a", true, true);
        check("POST https://h/*", "https://h/a", false, true);
        check("POST *", "POST https://anything/", true, true);
        check("*", "https://anything/", true, true);
        check("*", "http://anything:99/", true, true);
        check("https://*/*", "http://anything/", false, false);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in [
            "",
            "git push",
            "git push *",
            "https://",
            "https://a*b.com/",
            "https://me@h/",
            "https://*.1.2.3.4/",
            "http://h:*/",
        ] {
            assert!(UrlPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
