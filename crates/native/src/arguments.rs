//! Reads the arguments of a call for the native tools, without copying them: content may be megabytes, and three stages
//! look at it.

use serde::Deserialize;
use toolpost_model::{CallInput, InputRefusal, ToolFailure};

/// The arguments of a call that was checked, where a misfit means that the caller left the check out.
pub(super) fn read_arguments<'a, A: Deserialize<'a>>(
    input: &'a CallInput,
) -> Result<A, ToolFailure> {
    A::deserialize(input.arguments().value())
        .map_err(|error| ToolFailure::invalid(error.to_string()))
}

/// The same for `check`, where a misfit is a refusal.
pub(super) fn checked_arguments<'a, A: Deserialize<'a>>(
    input: &'a CallInput,
) -> Result<A, InputRefusal> {
    A::deserialize(input.arguments().value())
        .map_err(|error| InputRefusal::invalid("", error.to_string()))
}
