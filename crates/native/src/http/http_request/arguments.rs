//! The arguments of a request, and the request that is built from them. No I/O.

use std::collections::BTreeMap;

use reqwest::{
    Method, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolpost_model::{ErrorClass, InputRefusal, ToolFailure};
use toolpost_processes::{Credential, HttpTarget, PrivateTarget, TargetRefusal, shown};

use crate::http::request_headers::{self, HeaderError};

/// The largest body of a request.
const BODY_BYTES: usize = 8 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Where to, beginning with `http://` or `https://`.
    pub(super) url: String,
    /// The method.
    #[serde(default)]
    pub(super) method: RequestMethod,
    /// Headers to send. `Host`, `Content-Length` and others that belong to the connection are set by the client.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Parameters added to the URL; a list gives one for each item.
    #[serde(default)]
    query: BTreeMap<String, HttpParameterValue>,
    /// A body to send as JSON: any value.
    #[serde(default, deserialize_with = "present")]
    json: Option<Value>,
    /// A body to send as a form.
    #[serde(default)]
    form: Option<BTreeMap<String, HttpParameterValue>>,
    /// A body to send as it is; say what it is in a `Content-Type` header.
    #[serde(default)]
    body: Option<String>,
    /// The name of a credential that the operator has set up for this URL.
    #[serde(default)]
    #[schemars(extend("x-sensitive" = false))]
    credential: Option<String>,
    /// Follow redirects.
    #[serde(default = "yes")]
    pub(super) follow_redirects: bool,
    /// Most bytes of the body to show, or to save.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) max_bytes: Option<u64>,
    /// How long everything may take.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 1, max = 300))]
    pub(super) timeout_seconds: u64,
    /// A workspace file to put the body into instead of showing it. It is replaced if it exists, and missing
    /// directories are made.
    #[serde(default)]
    pub(super) save_to: Option<String>,
}

fn yes() -> bool {
    true
}

fn default_seconds() -> u64 {
    30
}

/// `"json": null` is a body; a missing `json` is none.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// A method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum RequestMethod {
    /// Read.
    #[default]
    Get,
    /// Read the headers only.
    Head,
    /// Do what the target does.
    Post,
    /// Put the body there.
    Put,
    /// Change parts.
    Patch,
    /// Remove.
    Delete,
    /// Ask what is possible.
    Options,
}

impl RequestMethod {
    pub(super) fn of_http(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Head => Method::HEAD,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
            Self::Options => Method::OPTIONS,
        }
    }

    /// Whether the method changes nothing, according to the standard.
    pub(super) fn is_safe(self) -> bool {
        self.of_http().is_safe()
    }
}

/// A parameter of a query or form.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Parameter")]
enum HttpParameterValue {
    One(HttpParameterScalar),
    Several(Vec<HttpParameterScalar>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Scalar")]
enum HttpParameterScalar {
    Text(String),
    Bool(bool),
    Number(serde_json::Number),
}

impl HttpParameterScalar {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Bool(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
        }
    }
}

/// One pair per value.
fn pairs(
    parameters: &BTreeMap<String, HttpParameterValue>,
) -> impl Iterator<Item = (&str, String)> {
    parameters.iter().flat_map(|(name, parameter)| {
        let values = match parameter {
            HttpParameterValue::One(value) => std::slice::from_ref(value),
            HttpParameterValue::Several(values) => values,
        };
        values
            .iter()
            .map(move |value| (name.as_str(), value.text()))
    })
}

/// Why a request cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpRequestError {
    #[error("{0}")]
    Target(TargetRefusal),
    #[error(transparent)]
    Headers(#[from] HeaderError),
    #[error("give the body as one of `json`, `form` or `body`, not several")]
    SeveralBodies,
    #[error("a {method} request has no body; leave `{argument}` out or choose another `method`")]
    BodyNotExpected {
        method: Method,
        argument: &'static str,
    },
    #[error("the body has {bytes} bytes, the limit is {BODY_BYTES}")]
    BodyTooLarge { bytes: usize },
    #[error("`max_bytes` must be at least 1")]
    NoBytes,
    #[error("there is no credential `{}`; {}", shown(.name), listed(.known))]
    UnknownCredential { name: String, known: Vec<String> },
    #[error("the credential `{name}` may not be sent to `{url}`; it is for {}", listed(.for_urls))]
    CredentialNotForUrl {
        name: String,
        url: String,
        for_urls: Vec<String>,
    },
    #[error("the credential sets the header `{name}`; leave it out of `headers`")]
    CredentialHeaderGiven { name: HeaderName },
    #[error("the value of the credential `{name}` cannot be sent in a header")]
    BadSecret { name: String },
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "no credentials are configured".to_owned(),
        names => format!("`{}`", names.join("`, `")),
    }
}

impl HttpRequestError {
    pub(super) fn bad_secret(name: &str) -> Self {
        Self::BadSecret {
            name: name.to_owned(),
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Target(refusal) => refusal.class(),
            Self::CredentialNotForUrl { .. } => ErrorClass::SandboxViolation,
            Self::BadSecret { .. } => ErrorClass::SetupRequired,
            Self::Headers(_)
            | Self::SeveralBodies
            | Self::BodyNotExpected { .. }
            | Self::BodyTooLarge { .. }
            | Self::NoBytes
            | Self::UnknownCredential { .. }
            | Self::CredentialHeaderGiven { .. } => ErrorClass::InvalidArguments,
        }
    }

    pub(super) fn into_refusal(self) -> InputRefusal {
        let at = match &self {
            Self::Target(_) => "/url",
            Self::Headers(_) | Self::CredentialHeaderGiven { .. } => "/headers",
            Self::SeveralBodies | Self::BodyTooLarge { .. } | Self::BodyNotExpected { .. } => "",
            Self::NoBytes => "/max_bytes",
            Self::UnknownCredential { .. }
            | Self::CredentialNotForUrl { .. }
            | Self::BadSecret { .. } => "/credential",
        };
        match self {
            Self::Target(refusal) => refusal.into_refusal(),
            other => InputRefusal {
                class: other.class(),
                at: at.to_owned(),
                message: other.to_string(),
            },
        }
    }

    pub(super) fn into_failure(self) -> ToolFailure {
        match self {
            Self::Target(refusal) => refusal.into_failure().untouched(),
            other => ToolFailure::of(other.class(), other.to_string()).untouched(),
        }
    }
}

impl Arguments {
    /// The target of the request, with its query.
    pub(super) fn target(&self, private: &[PrivateTarget]) -> Result<HttpTarget, HttpRequestError> {
        let target = HttpTarget::parse(&self.url, private).map_err(HttpRequestError::Target)?;
        if self.query.is_empty() {
            return Ok(target);
        }
        let mut url: Url = target.url;
        url.query_pairs_mut().extend_pairs(pairs(&self.query));
        HttpTarget::of(url, private).map_err(HttpRequestError::Target)
    }

    pub(super) fn headers(&self) -> Result<HeaderMap, HttpRequestError> {
        Ok(request_headers::read(&self.headers)?)
    }

    /// The body, with the header for its type.
    pub(super) fn body(
        &self,
        headers: &mut HeaderMap,
    ) -> Result<Option<Vec<u8>>, HttpRequestError> {
        if self.max_bytes == Some(0) {
            return Err(HttpRequestError::NoBytes);
        }
        let json = self
            .json
            .as_ref()
            .map(|value| ("json", "application/json", value.to_string()));
        let form = self.form.as_ref().map(|form| {
            let encoded = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(pairs(form))
                .finish();
            ("form", "application/x-www-form-urlencoded", encoded)
        });
        let body = self
            .body
            .clone()
            .map(|body| ("body", "text/plain; charset=utf-8", body));
        let mut given = [json, form, body].into_iter().flatten();
        let Some((argument, media_type, content)) = given.next() else {
            return Ok(None);
        };
        if given.next().is_some() {
            return Err(HttpRequestError::SeveralBodies);
        }
        if matches!(self.method, RequestMethod::Get | RequestMethod::Head) {
            return Err(HttpRequestError::BodyNotExpected {
                method: self.method.of_http(),
                argument,
            });
        }
        if content.len() > BODY_BYTES {
            return Err(HttpRequestError::BodyTooLarge {
                bytes: content.len(),
            });
        }
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(media_type));
        Ok(Some(content.into_bytes()))
    }

    /// The credential that the call names, if it may be used for the target.
    pub(super) fn credential<'c>(
        &self,
        target: &HttpTarget,
        credentials: &'c [Credential],
    ) -> Result<Option<&'c Credential>, HttpRequestError> {
        let Some(name) = &self.credential else {
            return Ok(None);
        };
        let Some(found) = credentials
            .iter()
            .find(|credential| credential.name == *name)
        else {
            let known = credentials
                .iter()
                .map(|credential| credential.name.clone())
                .collect();
            return Err(HttpRequestError::UnknownCredential {
                name: name.clone(),
                known,
            });
        };
        match found.urls.iter().any(|prefix| prefix.covers(&target.url)) {
            true => Ok(Some(found)),
            false => Err(HttpRequestError::CredentialNotForUrl {
                name: name.clone(),
                url: target.url.to_string(),
                for_urls: found.urls.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    /// The limit on bytes: the caller's, or `usual`, but at most `most`.
    pub(super) fn limit(&self, usual: u64, most: u64) -> u64 {
        self.max_bytes.unwrap_or(usual).min(most)
    }
}
