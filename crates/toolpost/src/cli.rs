//! The command line as typed.

use std::{fmt, net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use toolpost_model::{PermissionMode, SandboxProfile};

use crate::commands::{
    a2a::A2aArgs, approvals::ApprovalsArgs, artifacts::ArtifactsArgs, call::CallArgs,
    capture::CaptureArgs, completions::CompletionsArgs, connect::ConnectArgs, doctor::DoctorArgs,
    explain::ExplainArgs, journal::JournalArgs, modules::ModulesArgs, new::NewArgs,
    reference::ReferenceArgs, serve::ServeArgs, tools::ToolsArgs, trust::TrustArgs,
    validate::ValidateArgs, watch::WatchArgs,
};

/// One binary between AI agents and the tools that they can call.
#[derive(Parser)]
#[command(
    name = "toolpost",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the host and serve its tools over HTTP, MCP and A2E
    Serve(ServeArgs),
    /// Print the setup that lets an MCP client find the host
    Connect(ConnectArgs),
    /// List or search the tools
    Tools(ToolsArgs),
    /// Call a tool
    Call(CallArgs),
    /// Explain what would happen to a call, or what happened to a recorded one
    Explain(ExplainArgs),
    /// Watch calls live, as cards on the terminal
    Watch(WatchArgs),
    /// List and answer the approvals that wait for an operator
    Approvals(ApprovalsArgs),
    /// Read and check the record of every call
    Journal(JournalArgs),
    /// Read results that were too large to be shown
    Artifacts(ArtifactsArgs),
    /// Run an agent against a recording host, and save the recording in a file
    Capture(CaptureArgs),
    /// List, fetch, update and remove the modules of mount plans
    Modules(ModulesArgs),
    /// Read tool events of other agents
    A2a(A2aArgs),
    /// Trust the workspace's `toolpost.yaml` as it is now
    Trust(TrustArgs),
    /// Check that everything is in place
    Doctor(DoctorArgs),
    /// Create a tool of your own, as an Amplifier module
    New(NewArgs),
    /// Check that a module fulfils Amplifier's contract
    Validate(ValidateArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print generated reference texts
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

/// The workspace and its data directory.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PlaceArgs {
    /// The folder that tools may work in; by default the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The folder of the journal, the token and the list of trusted files; by default a folder per workspace under
    /// `$XDG_STATE_HOME/toolpost`
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A trusted configuration file, which overrides the workspace's and the user's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The same for commands that read all configuration files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The policy, which overrides everything else; by default `/etc/toolpost/policy.yaml` if it exists
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

impl SettingsArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.place.workspace.is_some()
            || self.place.data_dir.is_some()
            || self.place.config.is_some()
            || self.policy.is_some()
    }
}

/// Permissions, sandbox and modules.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// The default when no rule matches: plan, default, edits, sandboxed, never-ask, bypass
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<PermissionMode>,
    /// Allow calls: a tool, `shell(cargo test *)`, `fs.write(src/**)`, `net(https://example.com/*)`, `class:write`; may
    /// be repeated
    #[arg(long, value_name = "CALLS")]
    pub(crate) allow: Vec<String>,
    /// Ask about calls; may be repeated
    #[arg(long, value_name = "CALLS")]
    pub(crate) ask: Vec<String>,
    /// Deny calls; may be repeated
    #[arg(long, value_name = "CALLS")]
    pub(crate) deny: Vec<String>,
    /// Delegate calls to an authority of the configuration, such as `opa shell(git push *)`; may be repeated
    #[arg(long, value_name = "AUTHORITY CALLS")]
    pub(crate) delegate: Vec<String>,
    #[command(flatten)]
    pub(crate) confines: ConfineArgs,
    #[command(flatten)]
    pub(crate) modules: ModuleArgs,
}

impl PolicyArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.mode.is_none()
            && self.allow.is_empty()
            && self.ask.is_empty()
            && self.deny.is_empty()
            && self.delegate.is_empty()
            && self.confines.is_empty()
            && self.modules.mount_plan.is_empty()
            && self.modules.a2e_config.is_none()
            && self.modules.a2e_import_path.is_empty()
            && self.modules.mcp_config.is_empty()
            && self.modules.replace_native.is_empty()
    }
}

/// The limits of tools and the processes that they start.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfineArgs {
    /// A further folder that tools may read and change; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// A further folder that tools may only read; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) read_root: Vec<PathBuf>,
    /// The sandbox profile of processes: read-only, workspace-write, network, none
    #[arg(long, value_name = "PROFILE", value_parser = profile)]
    pub(crate) sandbox: Option<SandboxProfile>,
    /// Start no process if this machine cannot provide the complete sandbox
    #[arg(long)]
    pub(crate) require_sandbox: bool,
    /// Let tools reach URLs with this prefix even if the address is private: `http://127.0.0.1:8080/`; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) allow_private: Vec<String>,
}

impl ConfineArgs {
    fn is_empty(&self) -> bool {
        self.root.is_empty()
            && self.read_root.is_empty()
            && self.sandbox.is_none()
            && !self.require_sandbox
            && self.allow_private.is_empty()
    }
}

/// The modules, and the folder of fetched ones.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ModuleArgs {
    /// A mount plan or bundle with tools and hooks to mount; may be repeated, and later ones override earlier ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mount_plan: Vec<PathBuf>,
    /// A list of MCP servers in the format of other programs, such as `.mcp.json`; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// The file of an A2E host, with its plugins; trusted like a file given with `--config`
    #[arg(long, value_name = "FILE")]
    pub(crate) a2e_config: Option<PathBuf>,
    /// A further folder to search for plugins and their imports, beside the A2E file's own; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) a2e_import_path: Vec<PathBuf>,
    /// Serve a plan's tool in place of the native tool with this name; may be repeated, `all` for every name that a
    /// plan mounts
    #[arg(long, value_name = "NAME")]
    pub(crate) replace_native: Vec<String>,
    /// The folder of fetched modules and their packages; by default `$XDG_CACHE_HOME/toolpost`
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

/// A profile by its name.
fn profile(text: &str) -> Result<SandboxProfile, UnknownProfile> {
    let all = [
        SandboxProfile::ReadOnly,
        SandboxProfile::WorkspaceWrite,
        SandboxProfile::Network,
        SandboxProfile::None,
    ];
    all.into_iter()
        .find(|profile| profile.as_str() == text)
        .ok_or(UnknownProfile)
}

/// The value of `--sandbox` is no profile.
#[derive(Debug)]
struct UnknownProfile;

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the profiles are read-only, workspace-write, network and none")
    }
}

impl std::error::Error for UnknownProfile {}

/// A protocol for standard input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdioProtocol {
    /// A2E, one message per line
    A2e,
    /// MCP, one message per line
    Mcp,
}

/// The address to listen on, and the authentication of callers.
#[derive(Args, Clone, Debug)]
pub(crate) struct FaceArgs {
    /// Serve the program that started the host over standard input and output, and listen on no port
    #[arg(long, value_name = "PROTOCOL", conflicts_with_all = ["http", "token_file", "no_token"])]
    pub(crate) stdio: Option<StdioProtocol>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,
    /// A file with the token that callers must send; by default the host creates one
    #[arg(long, value_name = "FILE", conflicts_with = "no_token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept every local caller without a token; only on loopback
    #[arg(long)]
    pub(crate) no_token: bool,
}
