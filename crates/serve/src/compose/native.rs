//! Builds the native tools of a configuration.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolpost_config::{
    CommandConfig, CredentialConfig, HostConfig, NetworkConfig, ParameterConfig, ParameterKind,
};
use toolpost_core::CredentialGrant;
use toolpost_model::{ResourceAccess, Secret, ToolSet};
use toolpost_native::{
    CodeSettings, CommandDeclaration, CommandError, CommandOutputFormat, CommandParameter,
    CommandParameterType, NativeParts, SpoolDirectory, native_source,
};
use toolpost_processes::{
    ChildEnvironment, ChildSettings, Credential, CredentialHeader, CredentialHeaderError,
    HostEnvironment, NetworkSettings, PathProtection, PrivateTarget, ProtectionPatternError,
    UrlPrefix, UrlPrefixError, Workspace, WorkspaceError,
};
use toolpost_sandbox::{Launcher, ProcessLimits};
use toolpost_store::DataDir;

use super::McpHandover;

/// The reason why the native tools of a configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// A root cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A protected path is not a valid pattern.
    #[error(transparent)]
    Protect(#[from] ProtectionPatternError),
    /// A URL of the network section is not valid.
    #[error(transparent)]
    Url(#[from] UrlPrefixError),
    /// The header of a credential is not valid.
    #[error(transparent)]
    Header(#[from] CredentialHeaderError),
    /// The program that starts the host gave no value for a credential.
    #[error("the credential `{0}` has no value: the program that starts the host must provide it")]
    CredentialWithoutValue(String),
    /// A declared command is not valid.
    #[error("{place}: {source}")]
    Command {
        /// File and line of its entry.
        place: String,
        /// The problem.
        #[source]
        source: CommandError,
    },
    /// The output of commands cannot be stored.
    #[error("output of commands cannot be kept in the data directory: {0}")]
    Spool(#[source] io::Error),
}

/// The inputs of native tools besides the configuration.
#[derive(Default)]
pub struct NativeHandover {
    /// A binary whose `main` first calls `toolpost_sandbox::launch_if_asked` and
    /// `toolpost_native::code_worker_if_asked`, usually this one. Without it no process is started.
    pub program: Option<PathBuf>,
    /// The values of the configured credentials.
    pub credentials: Vec<(String, Secret)>,
    /// Secret values in the host's environment, with their kind. They are redacted everywhere.
    pub secrets: Vec<(String, Secret)>,
    /// Files that define the permissions of this host. Tools ask before they change one.
    pub own_files: Vec<PathBuf>,
    /// The inputs of MCP servers besides the configuration.
    pub mcp: McpHandover,
}

/// The credentials that calls may name, with the tools that may use them.
pub(super) fn grants(
    known: &[CredentialConfig],
    values: &[(String, Secret)],
) -> Vec<CredentialGrant> {
    let grant = |credential: &CredentialConfig| {
        let (_, value) = values.iter().find(|(name, _)| *name == credential.name)?;
        let name = credential.name.clone();
        let value = value.clone();
        let tools = credential.tools.clone();
        Some(CredentialGrant { name, value, tools })
    };
    known.iter().filter_map(grant).collect()
}

/// The native tools for the folder `root`.
pub(super) fn tools(
    config: &HostConfig,
    root: &Path,
    data_dir: Option<&DataDir>,
    handover: NativeHandover,
) -> Result<ToolSet, NativeError> {
    let workspace = Arc::new(workspace(config, root, handover.own_files)?);
    let launcher = handover.program.clone().map(Launcher::new);
    if let (Some(launcher), Some(_)) = (launcher.clone(), data_dir) {
        // The sandbox tier is measured in a thread beside the start, so that the first command does not wait for it. A
        // host that only looks at its tools has no data directory and skips this.
        std::thread::spawn(move || launcher.tier());
    }
    let spool = data_dir
        .map(DataDir::spool)
        .transpose()
        .map_err(NativeError::Spool)?;
    let parts = NativeParts {
        launcher,
        children: children(config, &workspace, data_dir),
        spool: spool.map_or_else(SpoolDirectory::in_memory, SpoolDirectory::from),
        network: network(&config.network, &handover.credentials)?,
        code: CodeSettings {
            tools: config.code.tools.clone(),
            memory_bytes: config.code.memory,
            calls: usize::try_from(config.code.calls).unwrap_or(usize::MAX),
            python3: config.code.python3,
            ..CodeSettings::default()
        },
        commands: config
            .commands
            .iter()
            .map(|command| declared(command, config))
            .collect(),
        program: handover.program,
        workspace,
    };
    native_source(parts).map_err(|source| {
        let of = config
            .commands
            .iter()
            .find(|command| command.name == source.command);
        NativeError::Command {
            place: of.map(|command| command.place.clone()).unwrap_or_default(),
            source,
        }
    })
}

pub(super) fn workspace(
    config: &HostConfig,
    root: &Path,
    own_files: Vec<PathBuf>,
) -> Result<Workspace, NativeError> {
    let mut workspace = Workspace::open(root)?;
    for root in &config.roots {
        workspace = workspace.with_root(&root.path, root.access)?;
    }
    let protect = &config.protect;
    let mut protection = if protect.defaults {
        PathProtection::standard()
    } else {
        PathProtection::none()
    };
    if !protect.git {
        protection = protection.without_repositories();
    }
    protection = protection.with(&protect.paths)?;
    for file in own_files {
        protection = protection.with_file(file);
    }
    Ok(workspace.with_protection(protection))
}

pub(super) fn children(
    config: &HostConfig,
    workspace: &Workspace,
    data_dir: Option<&DataDir>,
) -> ChildSettings {
    let sandbox = &config.sandbox;
    let host = HostEnvironment {
        variables: config.environment.variables.clone(),
        home: config.environment.home.clone(),
    };
    let written = workspace
        .roots()
        .filter(|(_, access)| *access == ResourceAccess::Write);
    let writable: Vec<PathBuf> = written.map(|(path, _)| path.to_owned()).collect();
    ChildSettings {
        profile: sandbox.profile,
        limits: ProcessLimits {
            memory_bytes: sandbox.memory,
            processes: sandbox.processes,
            file_bytes: sandbox.file_size,
            open_files: sandbox.open_files,
            tmp_bytes: sandbox.tmp,
            cpu: None,
        },
        required: sandbox.require,
        readable: sandbox.readable.clone(),
        environment: ChildEnvironment::new(&host, &sandbox.environment, &writable),
        masked: data_dir
            .map(|data| data.path().to_owned())
            .into_iter()
            .collect(),
        lifetime: sandbox.lifetime,
        background: config.limits.shares.divide(config.limits.processes as u64),
    }
}

pub(super) fn network(
    network: &NetworkConfig,
    values: &[(String, Secret)],
) -> Result<NetworkSettings, NativeError> {
    let credential = |credential: &CredentialConfig| {
        let value = values.iter().find(|(name, _)| *name == credential.name);
        let (_, value) =
            value.ok_or_else(|| NativeError::CredentialWithoutValue(credential.name.clone()))?;
        let header = match &credential.scheme {
            Some(scheme) => format!("{}: {scheme}", credential.header),
            None => credential.header.clone(),
        };
        Ok::<_, NativeError>(Credential {
            name: credential.name.clone(),
            value: value.clone(),
            header: CredentialHeader::parse(&header)?,
            urls: credential
                .urls
                .iter()
                .map(|url| UrlPrefix::parse(url))
                .collect::<Result<_, _>>()?,
        })
    };
    Ok(NetworkSettings {
        private: network
            .private
            .iter()
            .map(|url| PrivateTarget::parse(url))
            .collect::<Result<_, _>>()?,
        credentials: network
            .credentials
            .iter()
            .map(credential)
            .collect::<Result<_, _>>()?,
        max_body_bytes: network.max_body,
        ..NetworkSettings::default()
    })
}

fn declared(command: &CommandConfig, config: &HostConfig) -> CommandDeclaration {
    let named = &config.environment.variables;
    let variables = command
        .environment
        .iter()
        .filter_map(|name| named.get_key_value(name));
    CommandDeclaration {
        name: command.name.clone(),
        description: command.description.clone(),
        argv: command.argv.iter().map(ToString::to_string).collect(),
        parameters: command.parameters.iter().map(parameter).collect(),
        stdin: command.stdin.as_ref().map(ToString::to_string),
        working_directory: command
            .working_directory
            .as_ref()
            .map(|folder| folder.display().to_string()),
        profile: command.profile,
        class: command.class,
        environment: variables
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        output: match command.output {
            toolpost_config::CommandOutput::Text => CommandOutputFormat::Text,
            toolpost_config::CommandOutput::Json => CommandOutputFormat::Json,
            toolpost_config::CommandOutput::Lines => CommandOutputFormat::Lines,
        },
        success_codes: command.success_codes.clone(),
        max_output: command
            .max_output
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
    }
}

fn parameter(parameter: &ParameterConfig) -> (String, CommandParameter) {
    let kind = match &parameter.kind {
        ParameterKind::String { pattern } => CommandParameterType::Text {
            pattern: pattern.clone(),
        },
        ParameterKind::Integer { minimum, maximum } => CommandParameterType::Integer {
            minimum: *minimum,
            maximum: *maximum,
        },
        ParameterKind::Number { minimum, maximum } => CommandParameterType::Number {
            minimum: minimum.clone(),
            maximum: maximum.clone(),
        },
        ParameterKind::Boolean => CommandParameterType::Boolean,
        ParameterKind::Path => CommandParameterType::Path,
        ParameterKind::Enum(values) => CommandParameterType::Choice(values.clone()),
    };
    let made = CommandParameter {
        kind,
        description: parameter.description.clone().unwrap_or_default(),
        required: parameter.required,
        default: parameter.default.clone(),
        allow_dash: parameter.allow_dash,
    };
    (parameter.name.clone(), made)
}
