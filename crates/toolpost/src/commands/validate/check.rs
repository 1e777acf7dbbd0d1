//! The checks by name. The first nine are Amplifier's, in its order; the others are missing in its validator.

use serde::{Deserialize, Serialize};

use super::report::CheckSeverity;

/// A check. Reports list the checks in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckName {
    /// There is a module that can be loaded.
    ModuleImportable,
    /// It has a `mount`.
    MountExists,
    /// `mount` is async and takes a coordinator and a configuration.
    MountSignature,
    /// If there is an `on_session_ready`, it is async and takes a coordinator.
    OnSessionReadyAsync,
    /// Mounting brings tools.
    ProtocolCompliance,
    /// A tool has a name.
    ToolName,
    /// A tool has a description.
    ToolDescription,
    /// A tool has a schema.
    ToolInputSchema,
    /// A tool has an async `execute` that takes the input.
    ToolExecute,
    /// `amplifier.toml` can be read and fits the files.
    Manifest,
    /// The package's metadata names `mount` as an entry point.
    EntryPoint,
    /// The declared type of the module.
    ModuleType,
    /// A tool is mounted under its own name.
    MountName,
    /// The schema is a JSON Schema for an object.
    InputSchemaValid,
    /// The module has a logger.
    Logging,
    /// The module declares the events that it emits.
    ObservabilityEvents,
    /// A call without arguments ends with a result.
    EmptyInput,
    /// A call with arguments of wrong types ends with a result.
    WrongTypes,
    /// `execute` returns a ToolResult.
    ResultType,
    /// A failure has a message.
    ErrorHandling,
    /// The tool accepts arguments that fit its schema, and refuses others.
    SchemaHonesty,
    /// A call with arguments that fit the schema succeeds. Reported only if it does not.
    ValidCall,
    /// The module prints nothing.
    PrintNoise,
    /// A call ends at its deadline.
    Deadline,
    /// A canceled call ends, and the module can serve further calls.
    Cancel,
}

impl CheckName {
    /// The name in reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ModuleImportable => "module_importable",
            Self::MountExists => "mount_exists",
            Self::MountSignature => "mount_signature",
            Self::OnSessionReadyAsync => "on_session_ready_async",
            Self::ProtocolCompliance => "protocol_compliance",
            Self::ToolName => "tool_name",
            Self::ToolDescription => "tool_description",
            Self::ToolInputSchema => "tool_input_schema",
            Self::ToolExecute => "tool_execute",
            Self::Manifest => "manifest",
            Self::EntryPoint => "entry_point",
            Self::ModuleType => "module_type",
            Self::MountName => "mount_name",
            Self::InputSchemaValid => "input_schema_valid",
            Self::Logging => "logging",
            Self::ObservabilityEvents => "observability_events",
            Self::EmptyInput => "empty_input",
            Self::WrongTypes => "wrong_types",
            Self::ResultType => "result_type",
            Self::ErrorHandling => "error_handling",
            Self::SchemaHonesty => "schema_honesty",
            Self::ValidCall => "valid_call",
            Self::PrintNoise => "print_noise",
            Self::Deadline => "deadline",
            Self::Cancel => "cancel",
        }
    }

    /// The severity of its failure.
    pub(crate) fn weight(self) -> CheckSeverity {
        match self {
            Self::ModuleImportable
            | Self::MountExists
            | Self::MountSignature
            | Self::OnSessionReadyAsync
            | Self::ProtocolCompliance
            | Self::ToolName
            | Self::ToolExecute
            | Self::Manifest
            | Self::EntryPoint
            | Self::ModuleType
            | Self::InputSchemaValid
            | Self::EmptyInput
            | Self::ResultType => CheckSeverity::Error,
            Self::ToolDescription
            | Self::ToolInputSchema
            | Self::MountName
            | Self::Logging
            | Self::ObservabilityEvents
            | Self::WrongTypes
            | Self::ErrorHandling
            | Self::SchemaHonesty
            | Self::ValidCall
            | Self::PrintNoise
            | Self::Deadline
            | Self::Cancel => CheckSeverity::Warning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_the_one_in_json() {
        let first_and_last = [
            CheckName::ModuleImportable,
            CheckName::OnSessionReadyAsync,
            CheckName::Cancel,
        ];
        for name in first_and_last {
            assert_eq!(serde_json::to_value(name).unwrap(), name.as_str());
        }
    }
}
