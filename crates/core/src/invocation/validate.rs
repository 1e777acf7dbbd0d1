//! Layer 4, validate: the checks of arguments before any I/O. Arguments of the model, of hooks and of operators pass
//! the same checks; only the error messages differ.

use toolpost_model::{CallInput, InputRefusal, Stage};

use super::{PipelineCall, ResolvedTool, resolve::show};
use crate::{
    call::{StageExit, lost_its_way},
    catalog::{CatalogEntry, SchemaError, SchemaViolation},
    execution::credentials,
    host::HostInner,
    result::{self, CallEnding},
};

/// Checks the arguments before any I/O.
pub(crate) fn validate(host: &HostInner, call: &mut PipelineCall) -> StageExit {
    let (Some(resolved), Some(input)) = (&call.findings.resolved, &call.inputs.call) else {
        return lost_its_way();
    };
    let Err(fault) = check_arguments(host, resolved, input) else {
        return StageExit::Next(Stage::Observe);
    };
    // Fills the observable input, so that the record can show the invalid arguments without their secrets.
    if !matches!(fault, ArgumentFault::BrokenSchema(_)) {
        show(call);
    }
    StageExit::End(fault.into())
}

/// The largest arguments of a tool.
pub(crate) struct ArgumentLimit {
    pub(crate) bytes: usize,
    /// Whether the limit is the tool's own setting.
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

/// Why the arguments are invalid.
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
