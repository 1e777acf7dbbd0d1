//! Endings of calls that name a credential and may not use it.

use serde_json::json;
use toolpost_model::{ErrorClass, Recoverability};

use super::HostFailure;
use crate::result::CallEnding;

/// `at` is the place of the reference among the arguments.
fn refused(class: ErrorClass, code: &'static str, at: &str, name: &str, why: &str) -> HostFailure {
    HostFailure::new(class, format!("at {at}: {why}"))
        .code(code)
        .details(json!({ "at": at, "credential": name }))
}

pub(crate) fn credential_missing(at: &str, name: &str) -> CallEnding {
    let why = format!("there is no credential `{name}`");
    refused(
        ErrorClass::SetupRequired,
        "credential_missing",
        at,
        name,
        &why,
    )
    .hint(format!(
        "an operator can add it to the host's configuration, under `network.credentials.{name}`"
    ))
    .recoverable(Recoverability::Operator)
    .ends()
}

pub(crate) fn credential_not_granted(at: &str, name: &str, tool: &str) -> CallEnding {
    let why = format!("the credential `{name}` is not for `{tool}`");
    refused(
        ErrorClass::PermissionDenied,
        "credential_not_granted",
        at,
        name,
        &why,
    )
    .denied()
    .hint(format!(
        "an operator can list the tool in `network.credentials.{name}.tools`"
    ))
    .ends()
}

/// A command, path or URL cannot be decided on while a part of it is unknown.
pub(crate) fn credential_out_of_place(at: &str, name: &str) -> CallEnding {
    let why = format!("rules check this argument, so it cannot hold the credential `{name}`");
    refused(
        ErrorClass::InvalidArguments,
        "credential_out_of_place",
        at,
        name,
        &why,
    )
    .with_other_arguments()
    .ends()
}

/// The tool has its own parameter for credentials, which is bound to their allowed destinations.
pub(crate) fn credential_by_name(at: &str, name: &str, tool: &str) -> CallEnding {
    let why =
        format!("`{tool}` does not accept references; it adds the credential `{name}` itself");
    refused(
        ErrorClass::InvalidArguments,
        "credential_by_name",
        at,
        name,
        &why,
    )
    .hint(format!(
        "name it in the argument `credential`: \"{name}\", for the URLs it is meant for"
    ))
    .with_other_arguments()
    .ends()
}
