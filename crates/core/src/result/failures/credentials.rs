//! Endings of calls whose arguments name a credential that they do not get.

use serde_json::json;
use toolpost_model::{ErrorClass, Outcome, Recoverability};

use super::HostFailure;
use crate::result::CallEnding;

pub(crate) fn credential_missing(at: &str, name: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::SetupRequired,
        format!("at {at}: there is no credential `{name}`"),
    )
    .code("credential_missing")
    .hint(format!(
        "an operator can add it to the host's configuration, under `network.credentials.{name}`"
    ))
    .recoverable(Recoverability::Operator)
    .details(json!({ "at": at, "credential": name }))
    .ends()
}

pub(crate) fn credential_not_granted(at: &str, name: &str, tool: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::PermissionDenied,
        format!("at {at}: the credential `{name}` is not for `{tool}`"),
    )
    .outcome(Outcome::Denied)
    .code("credential_not_granted")
    .hint(format!(
        "an operator can list the tool in `network.credentials.{name}.tools`"
    ))
    .recoverable(Recoverability::Operator)
    .details(json!({ "at": at, "credential": name }))
    .ends()
}

/// A command, path or URL cannot be decided on before it is known.
pub(crate) fn credential_out_of_place(at: &str, name: &str) -> CallEnding {
    let message = format!(
        "at {at}: rules look at this argument, so the credential `{name}` cannot stand here"
    );
    HostFailure::new(ErrorClass::InvalidArguments, message)
        .code("credential_out_of_place")
        .details(json!({ "at": at, "credential": name }))
        .retry(|retry| retry.change_arguments = true)
        .ends()
}

/// The tool has a way of its own to credentials, which is bound to where they may go.
pub(crate) fn credential_by_name(at: &str, name: &str, tool: &str) -> CallEnding {
    let message =
        format!("at {at}: `{tool}` takes no references; it adds the credential `{name}` itself");
    HostFailure::new(ErrorClass::InvalidArguments, message)
        .code("credential_by_name")
        .hint(format!(
            "name it in the argument `credential`: \"{name}\", for the URLs it is meant for"
        ))
        .details(json!({ "at": at, "credential": name }))
        .retry(|retry| retry.change_arguments = true)
        .ends()
}
