//! The address of a service. Amplifier's two loaders expect two different spellings of it, and a manifest cannot serve
//! both. This host accepts either.

use std::fmt;

use tonic::codegen::http::{
    Uri,
    uri::{Authority, Scheme},
};

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GrpcEndpoint {
    /// In the form for name lookup, without brackets.
    host: String,
    port: u16,
    authority: Authority,
}

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndpointError {
    #[error("the endpoint `{0}` is neither `host:port` nor `http://host:port`")]
    Form(String),
    #[error("the endpoint `{0}` has no port")]
    NoPort(String),
    #[error(
        "the endpoint `{0}` requires TLS, which this host does not support for gRPC services\nhint: use \
         `http://host:port` of a local service, or of a local proxy that connects to the other machine with TLS"
    )]
    Tls(String),
    #[error("the endpoint `{0}` holds a user name or a password")]
    Credentials(String),
    #[error("the endpoint has a path, and gRPC has none: write `http://{0}`")]
    Path(String),
}

impl GrpcEndpoint {
    pub(super) fn parse(written: &str) -> Result<Self, EndpointError> {
        let given = || written.chars().take(200).collect::<String>();
        let text = written.trim();
        if text.is_empty() || text.starts_with("unix:") {
            return Err(EndpointError::Form(given()));
        }
        let spelled = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = spelled.parse().map_err(|_| EndpointError::Form(given()))?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err(EndpointError::Tls(given()));
        }
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(EndpointError::Form(given()));
        }
        let authority = uri
            .authority()
            .cloned()
            .ok_or_else(|| EndpointError::Form(given()))?;
        if authority.as_str().contains('@') {
            let shown = authority
                .as_str()
                .rsplit('@')
                .next()
                .unwrap_or_default()
                .to_owned();
            return Err(EndpointError::Credentials(format!("…@{shown}")));
        }
        if uri
            .path_and_query()
            .is_some_and(|path| path.as_str() != "/")
        {
            return Err(EndpointError::Path(authority.to_string()));
        }
        let port = authority
            .port_u16()
            .ok_or_else(|| EndpointError::NoPort(given()))?;
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(EndpointError::Form(given()));
        }
        Ok(Self {
            host,
            port,
            authority,
        })
    }

    /// A port of this machine.
    pub(super) fn local(port: u16) -> Result<Self, EndpointError> {
        Self::parse(&format!("127.0.0.1:{port}"))
    }

    pub(super) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The first part of every method's address.
    pub(super) fn origin(&self) -> Uri {
        // The authority was part of a URI, so building it cannot fail; the default names no other host either.
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.authority.clone())
            .path_and_query("/")
            .build()
            .unwrap_or_default()
    }
}

impl fmt::Display for GrpcEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.authority.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{EndpointError, GrpcEndpoint};

    #[test]
    fn both_spellings_are_the_same_endpoint() {
        for (written, address) in [
            ("localhost:50051", ("localhost", 50051)),
            ("http://localhost:50051", ("localhost", 50051)),
            (" http://localhost:50051/ ", ("localhost", 50051)),
            ("127.0.0.1:1", ("127.0.0.1", 1)),
            ("[::1]:50051", ("::1", 50051)),
            ("http://[::1]:50051", ("::1", 50051)),
        ] {
            let endpoint = GrpcEndpoint::parse(written).unwrap();
            assert_eq!(endpoint.address(), address, "{written}");
            assert!(
                endpoint.origin().to_string().starts_with("http://"),
                "{}",
                endpoint.origin()
            );
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused_by_name() {
        let given = |text: &str| text.to_owned();
        for (written, expected) in [
            ("", EndpointError::Form(given(""))),
            (
                "unix:/run/tool.sock",
                EndpointError::Form(given("unix:/run/tool.sock")),
            ),
            ("ftp://host:1", EndpointError::Form(given("ftp://host:1"))),
            ("host name:1", EndpointError::Form(given("host name:1"))),
            ("localhost", EndpointError::NoPort(given("localhost"))),
            (
                "http://localhost",
                EndpointError::NoPort(given("http://localhost")),
            ),
            (
                "https://tools.example:443",
                EndpointError::Tls(given("https://tools.example:443")),
            ),
            (
                "http://me:word@host:1",
                EndpointError::Credentials(given("…@host:1")),
            ),
            ("http://host:1/tools", EndpointError::Path(given("host:1"))),
        ] {
            assert_eq!(GrpcEndpoint::parse(written), Err(expected), "{written}");
        }
    }
}
