//! Errors of an HTTP exchange.

use std::{error::Error as _, time::Duration};

use toolpost_model::{ErrorClass, ToolFailure};

use super::{client::ClientError, target::TargetRefusal};

/// Why there is no complete response.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HttpError {
    #[error(transparent)]
    Refused(#[from] TargetRefusal),
    #[error("after a redirect: {0}")]
    Redirected(Box<HttpError>),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("`{host}` cannot be reached: {}", told(.source))]
    Connect {
        host: String,
        source: reqwest::Error,
    },
    #[error("the exchange with `{host}` broke off: {}", told(.source))]
    Broken {
        host: String,
        source: reqwest::Error,
    },
    #[error("the answer of `{host}` was cut off after {received} bytes: {}", told(.source))]
    CutOff {
        host: String,
        received: u64,
        source: reqwest::Error,
    },
    #[error("`{host}` did not answer in full within {} s ({received} bytes of the body arrived)", .after.as_secs_f32())]
    Deadline {
        host: String,
        after: Duration,
        received: u64,
    },
    #[error("more than {limit} redirects; the last one led to `{to}`")]
    TooManyRedirects { limit: usize, to: String },
    #[error("the redirects form a loop, back to `{to}`")]
    RedirectLoop { to: String },
    #[error("`{from}` redirects to `{to}`, which is not encrypted")]
    Downgrade { from: String, to: String },
    #[error("`{from}` redirects to `{to}`, which rules deny to this call")]
    Kept { from: String, to: String },
    #[error("the redirect of `{from}` is invalid: its `Location` is not a URL")]
    BadLocation { from: String },
    #[error("the body is larger than {limit} bytes; nothing was saved")]
    TooLarge { limit: u64 },
}

/// The client's message with its causes, without the URL, which the message already contains.
fn told(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        // The message of some layers of the client is only `client error`, or repeats the one beneath.
        if !text.starts_with("client error") && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        source = inner.source();
    }
    match parts.is_empty() {
        true => "no reason was given".to_owned(),
        false => parts.join(": "),
    }
}

impl HttpError {
    /// An error of sending. If the address check refused, its error is among the causes.
    pub fn sending(host: String, error: reqwest::Error) -> Self {
        let source = error.without_url();
        if let Some(refusal) = refusal_in(&source) {
            return Self::Refused(refusal);
        }
        match source.is_connect() {
            true => Self::Connect { host, source },
            false => Self::Broken { host, source },
        }
    }

    /// The error as the failure of a call.
    pub fn into_failure(self) -> ToolFailure {
        let failure = ToolFailure::of(self.class(), self.to_string());
        match self {
            Self::Refused(refusal) => refusal.into_failure().untouched(),
            // The request before the redirect may have changed something.
            Self::Redirected(error) => ToolFailure {
                message: failure.message,
                untouched: None,
                ..error.into_failure()
            },
            Self::Client(ClientError::Tls(_)) => failure
                .code("no_certificates")
                .hint("install the system's certificates (package `ca-certificates`)")
                .untouched(),
            Self::Client(ClientError::Client(_)) => failure.code("client_setup").untouched(),
            Self::Connect { .. } => failure.code("cannot_connect").untouched(),
            Self::Broken { .. } => failure.code("broken_exchange"),
            Self::CutOff { .. } => failure.code("cut_off"),
            Self::Deadline { .. } => failure
                .code("timeout")
                .hint("give a longer `timeout_seconds`, or ask for less"),
            Self::TooManyRedirects { .. } => failure.code("too_many_redirects"),
            Self::RedirectLoop { .. } => failure.code("redirect_loop"),
            Self::Downgrade { .. } => failure
                .code("downgrade")
                .hint("request the unencrypted URL itself to accept that"),
            Self::Kept { .. } => failure
                .code("kept_by_rule")
                .hint("request that URL in a call of its own"),
            Self::BadLocation { .. } => failure.code("bad_redirect"),
            Self::TooLarge { .. } => failure
                .code("too_large")
                .hint("`max_bytes` can be raised up to the operator's limit"),
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Redirected(error) => error.class(),
            Self::Client(_) => ErrorClass::SetupRequired,
            Self::Connect { .. } | Self::Broken { .. } | Self::CutOff { .. } => {
                ErrorClass::DependencyUnavailable
            }
            Self::Deadline { .. } => ErrorClass::Timeout,
            Self::TooManyRedirects { .. }
            | Self::RedirectLoop { .. }
            | Self::Downgrade { .. }
            | Self::BadLocation { .. } => ErrorClass::ExecutionFailed,
            Self::Kept { .. } => ErrorClass::PermissionDenied,
            Self::TooLarge { .. } => ErrorClass::ResultTooLarge,
        }
    }
}

fn refusal_in(error: &reqwest::Error) -> Option<TargetRefusal> {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(refusal) = inner.downcast_ref::<TargetRefusal>() {
            return Some(refusal.clone());
        }
        source = inner.source();
    }
    None
}
