//! Toolpost's configuration, from `toolpost.yaml` to the settings a host runs with.
//!
//! [`ConfigFile`] is the file as written and [`HostConfig`] the settings as used. Between them are [`ParsedConfig`], a
//! checked file with its line numbers, and [`ConfigLayer`], which adds the trust in the file. An embedder without a
//! file builds a [`HostConfig`] with struct update syntax and needs nothing else from here.
//!
//! ```
//! use toolpost_config::{ConfigFile, ConfigLayer, HostConfig, LayerTrust};
//! use toolpost_model::{PermissionMode, RuleOrigin};
//!
//! let parsed = ConfigFile::parse("mode: plan\nrules:\n  - allow read_file\n", "toolpost.yaml")?;
//! let layer = ConfigLayer::new(parsed, LayerTrust::Untrusted, RuleOrigin::Project);
//! let (config, notices) = HostConfig::resolve(&[layer])?;
//! assert_eq!(config.mode, PermissionMode::Plan);
//! assert_eq!(notices[0].place, "toolpost.yaml:3");
//! # Ok::<(), toolpost_config::ConfigErrors>(())
//! ```
//!
//! [`A2eHostFile`] turns an A2E host's own YAML file into a [`ParsedConfig`].
//!
//! [`McpServersFile`] reads a list of MCP servers that other programs share.
//!
//! [`PlanReader`] reads mount plans for the layers that include them.
//!
//! Input is a string; only [`read_config`] and [`PlanReader`] open files. There is no environment and no home
//! directory here, so `~` in a path is refused, not guessed at.
#![warn(missing_docs)]

mod a2e_host;
mod check;
mod config_file;
mod duration;
mod error;
mod file;
mod host_config;
mod jsonc;
mod layer;
mod located;
mod mcp_entry;
mod mcp_file;
mod merge;
mod nearest;
mod parsed;
mod percentage;
mod plans;
mod profiles;
mod reading;
mod reference;
mod resolve;
mod rule_entry;
mod scalar;
mod schema;
mod several;
mod size;
mod snippet;
mod tool_settings;
mod yaml;

pub use a2e_host::{A2eFace, A2eHostFile, A2ePlugin, A2ePluginClass};
pub use config_file::{
    A2aSection, A2eSection, AmplifierSection, ApprovalsSection, ArgumentKinds, AuditSection,
    AuthorityEntry, CodeSection, CommandEntry, CommandOutput, ConfigFile, CredentialEntry,
    DiscoverySection, HookEntry, HttpSection, IncludeEntry, JournalRetentionSection, LimitsSection,
    McpSection, McpServerEntry, McpToolsEntry, McpValue, NetworkSection, ParameterEntry,
    ParameterType, ProtectSection, ResultKeeping, RetentionSection, RootAccess, RootEntry,
    SandboxSection, SourceEntry, SourceTrustLevel, TokenEntry, ToolEntry, WasmEntry,
};
pub use duration::{ConfigDuration, DurationError};
pub use error::{ConfigError, ConfigErrors};
pub use file::read_config;
pub use host_config::{
    A2aConfig, A2aEvents, A2eConfig, AmplifierConfig, AmplifierCore, ApprovalsConfig, AuditConfig,
    AuthorityConfig, AuthorityReachConfig, ChildVariables, CodeConfig, CommandConfig,
    CommandTemplateConfig, CredentialConfig, CredentialSource, DiscoveryConfig, HookConfig,
    HostConfig, HttpConfig, JournalRetention, LimitsConfig, McpConfig, McpEra, McpNaming,
    McpNewTools, McpPiece, McpReach, McpServerConfig, McpShare, McpStart, McpText, McpTextError,
    McpUnresolved, McpUnusable, McpValues, ModuleInstall, ModuleIsolation, NativeReplacement,
    NativeToolsChoice, NetworkConfig, ParameterConfig, ParameterKind, PluginConfig, ProtectConfig,
    ResolvedMcpText, RetentionConfig, RootConfig, SandboxConfig, SourceConfig, TemplatePieceConfig,
    TokenConfig, ToolIndex, ToolTable, WasmConfig,
};
pub use layer::{ConfigLayer, ConfigNotice, LayerTrust};
pub use located::{FilePosition, LocatedValue};
pub use mcp_entry::is_reserved_name;
pub use mcp_file::McpServersFile;
pub use parsed::ParsedConfig;
pub use percentage::{Percentage, PercentageError};
pub use plans::{FetchedBundle, LoadedPlan, PlanReader};

pub use reference::{config_example, config_reference};
pub use rule_entry::{RuleEntry, RuleTable};
pub use scalar::ConfigScalar;
pub use schema::config_schema;
pub use several::OneOrMany;
pub use size::{ByteSize, SizeError};
