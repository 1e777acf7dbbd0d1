//! The JSON Schema of the file, for editors and for the reference.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use toolpost_model::ToolPattern;

use crate::{
    ByteSize, CommandConfig, CommandOutput, ConfigDuration, ConfigFile, CredentialConfig,
    HostConfig, McpEra, McpNaming, McpNewTools, McpServerConfig, McpShare, McpStart, ParameterType,
    Percentage, RootAccess,
};

/// JSON Schema 2020-12 of `toolpost.yaml`, with the defaults in force.
pub fn config_schema() -> Value {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ConfigFile>();
    let mut schema = schema.to_value();
    schema["title"] = json!("toolpost.yaml");
    let config = HostConfig::default();
    let all = defaults(&config)
        .into_iter()
        .chain(native_defaults(&config))
        .chain(module_defaults(&config))
        .chain(mcp_defaults());
    for (pointer, default) in all {
        let property = schema.pointer_mut(&pointer).and_then(Value::as_object_mut);
        if let Some(property) = property {
            property.insert("default".to_owned(), default);
        }
    }
    schema
}

/// The default of each key with one, by the path of its property.
///
/// Taken from [`HostConfig`] rather than written into attributes, so that they cannot disagree.
fn defaults(config: &HostConfig) -> Vec<(String, Value)> {
    let HostConfig {
        mode,
        approvals,
        http,
        limits,
        retention,
        discovery,
        a2e,
        a2a,
        mcp,
        ..
    } = config;
    let time = |duration| json!(ConfigDuration::new(duration).to_string());
    let percent = |percent| json!(Percentage::new(percent).to_string());
    let size = |bytes: usize| json!(ByteSize::new(bytes as u64).to_string());
    let rows = [
        ("", "mode", json!(mode.as_str())),
        ("", "forbid_bypass", json!(config.forbid_bypass)),
        ("ToolEntry", "enabled", json!(true)),
        ("ToolEntry", "hidden", json!(false)),
        ("SourceEntry", "hidden", json!(false)),
        (
            "RuleTable",
            "remember",
            json!(toolpost_model::RememberOffer::default()),
        ),
        (
            "TokenEntry",
            "role",
            json!(toolpost_model::PrincipalRole::default()),
        ),
        ("HttpSection", "listen", json!(http.listen.to_string())),
        ("HttpSection", "allowed_hosts", json!(http.allowed_hosts)),
        (
            "HttpSection",
            "allowed_origins",
            json!(http.allowed_origins),
        ),
        ("HttpSection", "body_limit", size(http.body_limit)),
        ("HttpSection", "patience", time(http.patience)),
        ("ApprovalsSection", "timeout", time(approvals.timeout)),
        ("ApprovalsSection", "grant_for", time(approvals.grant_for)),
        ("ApprovalsSection", "waiting", json!(approvals.waiting)),
        ("ApprovalsSection", "prompt", json!(approvals.prompt)),
        ("LimitsSection", "concurrency", json!(limits.concurrency)),
        (
            "LimitsSection",
            "session_concurrency",
            json!(limits.session_concurrency),
        ),
        ("LimitsSection", "queue", json!(limits.queue)),
        ("LimitsSection", "share", percent(limits.shares.share)),
        (
            "LimitsSection",
            "operator_reserve",
            percent(limits.shares.operator_reserve),
        ),
        ("LimitsSection", "streams", json!(limits.streams)),
        ("LimitsSection", "processes", json!(limits.processes)),
        ("LimitsSection", "deadline", time(limits.deadline)),
        (
            "LimitsSection",
            "deadline_ceiling",
            time(limits.deadline_ceiling),
        ),
        ("LimitsSection", "inline_chars", json!(limits.inline_chars)),
        ("LimitsSection", "sessions", json!(limits.sessions)),
        ("LimitsSection", "session_idle", time(limits.session_idle)),
        (
            "LimitsSection",
            "journal",
            json!(ByteSize::new(limits.journal).to_string()),
        ),
        (
            "LimitsSection",
            "artifacts",
            json!(ByteSize::new(limits.artifacts).to_string()),
        ),
        (
            "LimitsSection",
            "artifact",
            json!(ByteSize::new(limits.artifact).to_string()),
        ),
        (
            "LimitsSection",
            "argument_bytes",
            size(limits.argument_bytes),
        ),
        ("RetentionSection", "artifacts", time(retention.artifacts)),
        (
            "DiscoverySection",
            "require_shown",
            json!(discovery.require_shown),
        ),
        (
            "A2eSection",
            "require_negotiated",
            json!(a2e.require_negotiated),
        ),
        (
            "AuditSection",
            "max_bytes",
            json!(ByteSize::new(a2e.audit.max_bytes).to_string()),
        ),
        (
            "AuditSection",
            "backup_count",
            json!(a2e.audit.backup_count),
        ),
        ("McpSection", "approval_wait", time(mcp.approval_wait)),
        ("A2aSection", "enabled", json!(a2a.enabled)),
        ("A2aSection", "events", json!(a2a.events)),
        ("A2aSection", "name", json!(a2a.name)),
        ("A2aSection", "description", json!(a2a.description)),
    ];
    placed(rows)
}

/// The same for the sections of native tools.
fn native_defaults(config: &HostConfig) -> Vec<(String, Value)> {
    let HostConfig {
        protect,
        sandbox,
        network,
        code,
        ..
    } = config;
    let size = |bytes| json!(ByteSize::new(bytes).to_string());
    let rows = [
        ("RootEntry", "access", json!(RootAccess::default().as_str())),
        ("ProtectSection", "defaults", json!(protect.defaults)),
        ("ProtectSection", "git", json!(protect.git)),
        ("ProtectSection", "paths", json!(protect.paths)),
        ("SandboxSection", "profile", json!(sandbox.profile)),
        ("SandboxSection", "require", json!(sandbox.require)),
        ("SandboxSection", "readable", json!(sandbox.readable)),
        ("SandboxSection", "environment", json!(sandbox.environment)),
        ("SandboxSection", "memory", size(sandbox.memory)),
        ("SandboxSection", "processes", json!(sandbox.processes)),
        ("SandboxSection", "tmp", size(sandbox.tmp)),
        ("SandboxSection", "file_size", size(sandbox.file_size)),
        ("SandboxSection", "open_files", json!(sandbox.open_files)),
        (
            "SandboxSection",
            "lifetime",
            json!(ConfigDuration::new(sandbox.lifetime).to_string()),
        ),
        ("NetworkSection", "private", json!(network.private)),
        ("NetworkSection", "max_body", size(network.max_body)),
        ("CredentialEntry", "header", json!(CredentialConfig::HEADER)),
        (
            "CodeSection",
            "tools",
            json!(
                code.tools
                    .iter()
                    .map(ToolPattern::as_str)
                    .collect::<Vec<_>>()
            ),
        ),
        ("CodeSection", "memory", size(code.memory)),
        ("CodeSection", "calls", json!(code.calls)),
        ("CodeSection", "python3", json!(code.python3)),
        ("CommandEntry", "class", json!(CommandConfig::CLASS)),
        ("CommandEntry", "environment", json!([])),
        (
            "CommandEntry",
            "output",
            json!(CommandOutput::default().as_str()),
        ),
        (
            "CommandEntry",
            "success_codes",
            json!(CommandConfig::SUCCESS),
        ),
        ("ParameterEntry", "allow_dash", json!(false)),
        (
            "ParameterEntry",
            "type",
            json!(ParameterType::default().as_str()),
        ),
    ];
    placed(rows)
}

/// The same for the section of modules.
fn module_defaults(config: &HostConfig) -> Vec<(String, Value)> {
    let amplifier = &config.amplifier;
    let rows = [
        ("", "include", json!([])),
        ("AmplifierSection", "isolation", json!(amplifier.isolation)),
        ("AmplifierSection", "core", json!(amplifier.core)),
        ("AmplifierSection", "install", json!(amplifier.install)),
        ("AmplifierSection", "pass", json!(amplifier.pass)),
        (
            "AmplifierSection",
            "fetch_pass",
            json!(amplifier.fetch_pass),
        ),
        ("AmplifierSection", "readable", json!(amplifier.readable)),
        ("AmplifierSection", "writable", json!(amplifier.writable)),
        (
            "AmplifierSection",
            "post_on_failure",
            json!(amplifier.post_on_failure),
        ),
        ("WasmEntry", "directories", json!([])),
        ("WasmEntry", "network", json!(false)),
    ];
    placed(rows)
}

/// The same for MCP servers.
fn mcp_defaults() -> Vec<(String, Value)> {
    let rows = [
        ("McpServerEntry", "disabled", json!(false)),
        ("McpServerEntry", "required", json!(false)),
        ("McpServerEntry", "era", json!(McpEra::default())),
        ("McpServerEntry", "naming", json!(McpNaming::default())),
        ("McpServerEntry", "share", json!(McpShare::default())),
        ("McpServerEntry", "start", json!(McpStart::default())),
        ("McpServerEntry", "new_tools", json!(McpNewTools::default())),
        (
            "McpServerEntry",
            "connect_timeout",
            json!(ConfigDuration::new(McpServerConfig::CONNECT_TIMEOUT).to_string()),
        ),
        (
            "McpServerEntry",
            "max_message",
            json!(ByteSize::new(McpServerConfig::MAX_MESSAGE).to_string()),
        ),
    ];
    placed(rows)
}

/// Rows of table, key and default, by the path of the property.
fn placed<const N: usize>(rows: [(&str, &str, Value); N]) -> Vec<(String, Value)> {
    let pointer = |table: &str, key: &str| match table {
        "" => format!("/properties/{key}"),
        table => format!("/$defs/{table}/properties/{key}"),
    };
    rows.into_iter()
        .map(|(table, key, default)| (pointer(table, key), default))
        .collect()
}
