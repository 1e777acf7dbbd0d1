//! `toolpost serve`: starts the host, prints its permissions, and runs until it is stopped.

mod pipes;
mod reload;
mod startup;

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use toolpost_config::{
    A2eFace, A2eHostFile, ApprovalsConfig, ConfigDuration, HostConfig, LayerTrust,
};
use toolpost_core::{Host, ToolFilter};
use toolpost_model::{
    Behavior, EffectClass, HiddenReason, PermissionMode, Principal, PrincipalRole, RuleOrigin,
    Visibility,
};
use toolpost_modules::{MessageStanding, message_standing};
use toolpost_serve::{CallerAuthentication, Server};

use pipes::EndSignals;
use reload::ConfigReloads;
use startup::StartupSettings;

use crate::{
    approving::prompt,
    authorities,
    cli::{FaceArgs, PolicyArgs, SettingsArgs, StdioProtocol},
    environment,
    exit::{CliExit, UsageError},
    hooks,
    settings::CommandSettings,
    terminal::{self, BOLD, DIM, GREEN, ProgressSteps, RED, YELLOW, styled},
};

/// How long running calls may take to finish after the first signal.
const GRACE: Duration = Duration::from_secs(10);
/// The same with relays: their agents have no tools until the next host starts.
const GRACE_WITH_JOINED: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    face: FaceArgs,
    /// Let the MCP client that started the host approve calls as an operator; by default the client counts as an agent
    #[arg(long, requires = "stdio")]
    operator: bool,
    /// Do not prompt on this terminal about calls that need approval
    #[arg(long)]
    no_prompt: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

impl ServeArgs {
    pub(crate) fn talks_over_pipes(&self) -> bool {
        self.face.stdio.is_some()
    }
}

pub(crate) async fn run(arguments: ServeArgs) -> anyhow::Result<CliExit> {
    let startup = StartupSettings::read(&arguments).await?;
    let over_pipes = arguments.talks_over_pipes();
    if over_pipes {
        startup
            .notices()
            .for_each(|notice| tracing::warn!("{notice}"));
    } else {
        startup.notices().for_each(terminal::warn);
    }
    // Before anything is opened: an early signal must find its handler.
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    // Its memory holds tokens and credentials.
    toolpost_sandbox::harden_host();
    if over_pipes {
        return pipes::serve_stdio(
            &arguments,
            startup,
            EndSignals {
                interrupt,
                terminate,
            },
        )
        .await;
    }
    let StartupSettings { settings, access } = &startup;
    if settings
        .a2e_host
        .as_ref()
        .is_some_and(|file| file.face == A2eFace::Stdio)
    {
        return Err(UsageError(
            "the A2E file is for a host that its agent starts (`transport.type: subprocess`)\n\
             hint: let the agent start it with `toolpost serve --stdio a2e`, or set `transport.type: http`"
                .into(),
        )
        .into());
    }
    let kept = matches!(access, CallerAuthentication::KeptToken);
    environment::raise_file_limit();
    let server = startup
        .builder()?
        .modules(ProgressSteps::of_modules())
        .start()
        .await?;
    terminal::set_host_redactor(server.host().redactor());
    settings.keep_last_good();
    let mut reloads = ConfigReloads::begin(&arguments, settings);
    let tty = if arguments.no_prompt {
        None
    } else {
        prompt::terminal(&settings.config.approvals)
    };
    let asked = if tty.is_some() {
        ApprovalPromptLocation::Here
    } else {
        ApprovalPromptLocation::Elsewhere
    };
    banner(&server, settings, kept, asked).await;
    let asking = tty.map(|tty| prompt::spawn(server.host(), tty));
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            () = reloads.due() => reloads.apply_changes(&server).await,
        }
    }
    if let Some(asking) = asking {
        asking.abort();
    }
    anstream::eprintln!(
        "{}",
        styled(
            DIM,
            "stopping: running calls may finish; a second signal ends them now"
        )
    );
    let grace = if server.joined_agents() > 0 {
        GRACE_WITH_JOINED
    } else {
        GRACE
    };
    tokio::select! {
        () = server.shutdown(grace) => Ok(CliExit::Done),
        _ = interrupt.recv() => Ok(CliExit::Stopped),
        _ = terminate.recv() => Ok(CliExit::Stopped),
    }
}

/// Serves the requested protocol until the peer disconnects.
pub(crate) async fn converse(
    server: &Server,
    protocol: Option<StdioProtocol>,
    role: PrincipalRole,
) {
    let input = std::io::stdin();
    let output = std::io::stdout();
    match protocol {
        Some(StdioProtocol::Mcp) => server.converse_mcp(role, input, output).await,
        Some(StdioProtocol::A2e) | None => server.converse(input, output).await,
    }
}

/// The authentication of callers.
pub(crate) fn access(
    face: &FaceArgs,
    a2e: Option<&A2eHostFile>,
) -> anyhow::Result<CallerAuthentication> {
    let configured = a2e.and_then(|file| file.token.as_ref());
    match face {
        FaceArgs { no_token: true, .. } => Ok(CallerAuthentication::Open),
        FaceArgs {
            token_file: Some(path),
            ..
        } => Ok(CallerAuthentication::Token(environment::read_token(path)?)),
        FaceArgs { .. } => match configured {
            Some(token) => Ok(CallerAuthentication::Token(token.reveal().to_owned())),
            None => Ok(CallerAuthentication::KeptToken),
        },
    }
}

/// The facts that an operator checks before leaving the host alone.
async fn banner(
    server: &Server,
    settings: &CommandSettings,
    kept: bool,
    asked: ApprovalPromptLocation,
) {
    let line = |name: &str, text: String| {
        anstream::eprintln!("  {}  {text}", styled(BOLD, format!("{name:<10}")));
    };
    let data = settings.place.data_dir.display();
    let token_file = format!("{data}/token");
    anstream::eprintln!(
        "{} {}\n",
        styled(GREEN, "toolpost is ready"),
        styled(DIM, env!("CARGO_PKG_VERSION"))
    );
    let address = server
        .address()
        .map(|address| address.to_string())
        .unwrap_or_default();
    line("listening", format!("http://{address}"));
    line(
        "MCP",
        format!(
            "http://{address}/mcp {}",
            styled(DIM, "(`toolpost connect` prints the setup of clients)")
        ),
    );
    line(
        "A2E",
        format!(
            "http://{address} {}",
            styled(DIM, "(`toolpost connect a2e` prints a client)")
        ),
    );
    line("live page", format!("http://{address}/live"));
    line("workspace", settings.place.workspace.display().to_string());
    line("record", data.to_string());
    line(
        "token",
        match (server.token(), kept) {
            (None, _) => styled(YELLOW, "none: every program on this machine may call"),
            (Some(_), true) => format!("in {token_file}"),
            (Some(_), false) => "the one you gave".to_owned(),
        },
    );
    for file in settings.files.iter().filter(|file| file.standing.is_some()) {
        let standing = match (file.standing, &file.broken) {
            (_, Some(broken)) => styled(RED, &broken.note),
            (Some(LayerTrust::Untrusted), None) => styled(
                YELLOW,
                "not trusted: only its restrictions apply; run `toolpost trust` to change that",
            ),
            (Some(LayerTrust::Trusted | LayerTrust::LastGood) | None, None) => "trusted".to_owned(),
        };
        line(
            named(file.origin),
            format!("{} ({standing})", file.path.display()),
        );
    }
    line("mode", mode(&settings.config));
    line("approvals", approvals(&settings.config.approvals, asked));
    let sandbox = &settings.config.sandbox;
    let required = if sandbox.require {
        ", required in full"
    } else {
        ""
    };
    line(
        "sandbox",
        format!(
            "{}{required}; `toolpost doctor` shows what this machine enforces",
            sandbox.profile
        ),
    );
    for hook in &settings.config.hooks {
        line("hook", hooks::described(hook));
    }
    for authority in &settings.config.authorities {
        line("authority", authorities::described(authority));
    }
    line("tools", tools(server.host()).await);
    for text in plugins(server, &settings.config) {
        line("plugin", text);
    }
    for notice in server.host().notices() {
        terminal::warn(notice);
    }
    let header = match (server.token(), kept) {
        (None, _) => String::new(),
        (Some(_), true) => format!(" \\\n    -H \"Authorization: Bearer $(cat '{token_file}')\""),
        (Some(_), false) => " \\\n    -H \"Authorization: Bearer $TOKEN\"".to_owned(),
    };
    let session = server.host().default_session(&Principal::agent("agent"));
    let surface = server.host().surface(&session);
    let can_list = surface
        .find("list_directory")
        .is_some_and(|(_, seen)| seen == Visibility::Loaded);
    let request = if can_list {
        "tools/list_directory/call --json '{}'"
    } else {
        "tools"
    };
    anstream::eprintln!("\n  try it:\n  curl http://{}/{request}{header}\n", address);
}

/// The name of a file's origin in the banner.
fn named(origin: RuleOrigin) -> &'static str {
    match origin {
        RuleOrigin::Cli => "config",
        RuleOrigin::Policy
        | RuleOrigin::Session
        | RuleOrigin::Local
        | RuleOrigin::Project
        | RuleOrigin::User
        | RuleOrigin::Builtin => origin.as_str(),
    }
}

#[derive(Clone, Copy)]
enum ApprovalPromptLocation {
    Here,
    Elsewhere,
}

fn approvals(config: &ApprovalsConfig, asked: ApprovalPromptLocation) -> String {
    let within = ConfigDuration::new(config.timeout);
    let answers = match asked {
        ApprovalPromptLocation::Here => {
            "asked on this terminal; answer here or with `toolpost approvals`"
        }
        ApprovalPromptLocation::Elsewhere => {
            "answer with `toolpost approvals` in another terminal, or over HTTP"
        }
    };
    format!("{answers}; rejected without an answer within {within}")
}

fn mode(config: &HostConfig) -> String {
    let of = |wanted: Behavior| {
        let classes = EffectClass::ALL
            .into_iter()
            .filter(|&class| config.mode.behavior(class, None) == wanted);
        classes
            .map(EffectClass::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!("{} (runs: {}", config.mode, of(Behavior::Allow));
    for (behavior, word) in [(Behavior::Ask, "asks"), (Behavior::Deny, "denies")] {
        let classes = of(behavior);
        if !classes.is_empty() {
            text.push_str(&format!("; {word}: {classes}"));
        }
    }
    text.push(')');
    if !config.rules.is_empty() {
        let rules: Vec<String> = config
            .rules
            .iter()
            .map(|rule| format!("`{rule}`"))
            .collect();
        text.push_str(&format!("\n              rules: {}", rules.join(", ")));
    }
    text.push_str(
        "\n              change with --mode, --allow, --ask, --deny, or in toolpost.yaml",
    );
    text
}

/// The plugins of an A2E host file. Plugins with messages that need an approval get the flag that would allow them.
fn plugins(server: &Server, config: &HostConfig) -> Vec<String> {
    let acts = |kind: &String| {
        let name = kind.strip_suffix("/req").unwrap_or(kind);
        message_standing(name) != MessageStanding::Allowed
    };
    let told = server.plugins().iter().map(|plugin| {
        let mut text = format!("{} ({})", plugin.name, plugin.capability);
        let acting: Vec<&String> = plugin.messages.iter().filter(|kind| acts(kind)).collect();
        if let (Some(first), false) = (acting.first(), config.mode == PermissionMode::Bypass) {
            let family = first.split_once('/').map_or(first.as_str(), |(family, _)| family);
            let pattern =
                if first.contains('/') { format!("a2e.{family}/*") } else { format!("a2e.{first}*") };
            let rest = styled(
                DIM,
                format!(
                    "mode and rules decide its requests with outside effects; allow them with --allow '{pattern}'"
                ),
            );
            text.push_str(&format!("; {rest}"));
        }
        text
    });
    told.collect()
}

async fn tools(host: &Host) -> String {
    let session = host.default_session(&Principal::agent("agent"));
    let listed = host.list(&session, &ToolFilter::default()).await;
    let names: Vec<&str> = listed
        .iter()
        .take(8)
        .map(|tool| tool.entry.name())
        .collect();
    let more = listed.len().saturating_sub(names.len());
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let surface = host.surface(&session);
    let is_hidden = |visibility: Visibility| match visibility {
        Visibility::Loaded | Visibility::Unlisted | Visibility::Blocked(HiddenReason::Internal) => {
            false
        }
        Visibility::Deferred | Visibility::Blocked(_) => true,
    };
    let hidden = surface
        .all()
        .filter(|(_, visibility)| is_hidden(*visibility))
        .count();
    let hidden = if hidden > 0 {
        format!("; {hidden} hidden from agents, see `toolpost tools --hidden`")
    } else {
        String::new()
    };
    format!("{}{rest}{hidden}", names.join(", "))
}
