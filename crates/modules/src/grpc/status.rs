//! Converts a failed gRPC call into a failure for the caller. A status from the service is the service's answer. A
//! status that was made on this side, because the connection broke, means that the outcome is unknown.

use std::error::Error as _;

use serde_json::json;
use tonic::{Code, Status};
use toolpost_model::{ErrorClass, ToolFailure};

use super::connection::RpcError;

/// The most that is repeated of a service's message.
const LONGEST: usize = 4 * 1024;
/// tonic's message for an answer over the limit, which it reports like a status of the service.
const TOO_LARGE: &str = "message length too large";

pub(super) fn failure(error: &RpcError, service: &str) -> ToolFailure {
    let RpcError { status, unsent } = error;
    let failure = match (made_here(status), status.code()) {
        (true, _) => broken(status, service, *unsent),
        (false, Code::OutOfRange) if status.message().contains(TOO_LARGE) => ToolFailure::of(
            ErrorClass::ResultTooLarge,
            format!(
                "the answer of {service} is over the limit: {}",
                said(status)
            ),
        )
        .code("answer_too_large")
        .hint("ask for less at a time; the call may have taken effect"),
        (false, code) => {
            let (class, name, hint) = meaning(code);
            let text = said(status);
            let words = if text.is_empty() {
                code.description()
            } else {
                text.as_str()
            };
            let failure = ToolFailure::of(
                class,
                format!("{service} answered {}: {words}", wire_name(code)),
            );
            let failure = failure.code(name);
            match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
    };
    ToolFailure {
        details: Some(json!({ "grpc_status": wire_name(status.code()) })),
        ..failure
    }
}

/// Only a status that was made on this side has a cause: the service's status arrives as two headers.
fn made_here(status: &Status) -> bool {
    status.source().is_some()
}

fn broken(status: &Status, service: &str, unsent: bool) -> ToolFailure {
    let mut why = said(status);
    let mut cause = status.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !why.contains(&text) {
            why = format!("{why}: {text}");
        }
        cause = error.source();
    }
    match unsent {
        true => {
            let message =
                format!("the connection to {service} was lost before the call was sent: {why}");
            ToolFailure::of(ErrorClass::DependencyUnavailable, message)
                .code("not_sent")
                .untouched()
        }
        false => {
            let message = format!(
                "the connection to {service} broke during the call, which may have taken effect: {why}"
            );
            ToolFailure::of(ErrorClass::DependencyUnavailable, message).code("connection_lost")
        }
    }
}

fn said(status: &Status) -> String {
    shortened(status.message())
}

/// Text from the service, cut to a readable length.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

/// The host's meaning of a gRPC status: the error class, a finer code, and a hint.
fn meaning(code: Code) -> (ErrorClass, &'static str, Option<&'static str>) {
    let own = ErrorClass::ExecutionFailed;
    match code {
        Code::DeadlineExceeded => (ErrorClass::Timeout, "grpc_deadline_exceeded", None),
        Code::InvalidArgument => (ErrorClass::InvalidArguments, "grpc_invalid_argument", None),
        Code::OutOfRange => (ErrorClass::InvalidArguments, "grpc_out_of_range", None),
        Code::ResourceExhausted => (ErrorClass::RateLimited, "grpc_resource_exhausted", None),
        Code::Unavailable => (ErrorClass::DependencyUnavailable, "grpc_unavailable", None),
        Code::Unimplemented => (
            ErrorClass::SetupRequired,
            "grpc_unimplemented",
            Some("the endpoint must serve `amplifier.module.ToolService`"),
        ),
        // The service authenticates its callers itself. Rules of this host have nothing to do with it.
        Code::Unauthenticated => (ErrorClass::SetupRequired, "grpc_unauthenticated", None),
        Code::PermissionDenied => (own, "grpc_permission_denied", None),
        // This host did not cancel the call: a call that it cancels gets no status.
        Code::Cancelled => (own, "grpc_cancelled", None),
        Code::Ok | Code::Unknown => (own, "grpc_unknown", None),
        Code::NotFound => (own, "grpc_not_found", None),
        Code::AlreadyExists => (own, "grpc_already_exists", None),
        Code::FailedPrecondition => (own, "grpc_failed_precondition", None),
        Code::Aborted => (own, "grpc_aborted", None),
        Code::Internal => (own, "grpc_internal", None),
        Code::DataLoss => (own, "grpc_data_loss", None),
    }
}

/// The code as gRPC's documents and logs spell it.
pub(super) fn wire_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
