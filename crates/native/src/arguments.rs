//! Reads the arguments of a call for the native tools without copying them: content may have megabytes, and three
//! stages read it.

use serde::Deserialize;
use toolpost_model::{CallInput, InputRefusal, ToolFailure};

/// The arguments of a call that `check` has accepted. An error means that the caller skipped `check`.
pub(super) fn read_arguments<'a, A: Deserialize<'a>>(
    input: &'a CallInput,
) -> Result<A, ToolFailure> {
    A::deserialize(input.arguments().value())
        .map_err(|error| ToolFailure::invalid(error.to_string()))
}

/// The arguments for `check`, where an error is a refusal.
pub(super) fn checked_arguments<'a, A: Deserialize<'a>>(
    input: &'a CallInput,
) -> Result<A, InputRefusal> {
    A::deserialize(input.arguments().value())
        .map_err(|error| InputRefusal::invalid("", error.to_string()))
}
