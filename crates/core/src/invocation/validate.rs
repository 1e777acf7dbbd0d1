//! Layer 4, validate: the conditions that arguments meet before any I/O. The model's own, a hook's and those of a person who
//! approves a call pass the same checks; only the words for a fault differ.

use toolpost_model::{CallInput, InputRefusal, Stage};

use super::{PipelineCall, ResolvedTool, resolve::show};
use crate::{
    call::{StageExit, lost_its_way},
    catalog::{CatalogEntry, SchemaError, SchemaViolation},
    execution::credentials,
    host::HostInner,
    result::{self, CallEnding},
};

/// Checks the values before any I/O.
pub(crate) fn validate(host: &HostInner, call: &mut PipelineCall) -> StageExit {
    let (Some(resolved), Some(input)) = (&call.findings.resolved, &call.inputs.call) else {
        return lost_its_way();
    };
    let Err(fault) = check_arguments(host, resolved, input) else {
        return StageExit::Next(Stage::Observe);
    };
    // The record may show what was wrong, but not what was secret.
    if !matches!(fault, ArgumentFault::BrokenSchema(_)) {
        show(call);
    }
    StageExit::End(fault.into())
}

/// How many bytes of arguments a tool takes.
pub(crate) struct ArgumentLimit {
    pub(crate) bytes: usize,
    /// From the tool's own settings, not the host's.
    pub(crate) is_own: bool,
}

impl ArgumentLimit {
    pub(crate) fn of(host: &HostInner, entry: &CatalogEntry) -> Self {
        let own = entry.settings.input.argument_bytes;
        Self {
            bytes: own.unwrap_or(host.limits.argument_bytes),
            is_own: own.is_some(),
        }
    }

    /// The setting that holds the limit.
    pub(crate) fn setting(&self, entry: &CatalogEntry) -> String {
        if self.is_own {
            entry.id().setting_key("argument_bytes")
        } else {
            "limits.argument_bytes".to_owned()
        }
    }
}

/// Why a tool cannot be called with its arguments.
pub(crate) enum ArgumentFault {
    Credential(CallEnding),
    Violations(Vec<SchemaViolation>),
    BrokenSchema(SchemaError),
    Refused(InputRefusal),
}

/// Checks references to credentials, the schema and the tool's own conditions, in this order.
pub(crate) fn check_arguments(
    host: &HostInner,
    resolved: &ResolvedTool,
    input: &CallInput,
) -> Result<(), ArgumentFault> {
    host.credentials
        .check(&resolved.entry, input.arguments().value())
        .map_err(ArgumentFault::Credential)?;
    let input = credentials::with_words(input);
    let found = resolved
        .entry
        .input()
        .violations(input.arguments().value())
        .map_err(ArgumentFault::BrokenSchema)?;
    if !found.is_empty() {
        return Err(ArgumentFault::Violations(found));
    }
    resolved
        .source
        .check(resolved.entry.id(), &input)
        .map_err(ArgumentFault::Refused)
}

impl From<ArgumentFault> for CallEnding {
    fn from(fault: ArgumentFault) -> Self {
        match fault {
            ArgumentFault::Credential(ending) => ending,
            ArgumentFault::Violations(found) => result::violations(&found),
            ArgumentFault::BrokenSchema(error) => result::broken_schema(&error),
            ArgumentFault::Refused(refusal) => result::refused(&refusal),
        }
    }
}
