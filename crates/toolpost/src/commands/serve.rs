//! `toolpost serve`: start the host, say what it allows, run until told to stop.

mod reload;

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolpost_config::{
    A2eCapability, A2eFace, A2eHostFile, ApprovalsConfig, ConfigDuration, HostConfig, Standing,
};
use toolpost_core::{Host, ToolFilter};
use toolpost_model::{Behavior, EffectClass, Principal, Role, RuleOrigin, Visibility};
use toolpost_serve::{Access, Server, ServerBuilder};

use reload::Reloads;

use crate::{
    approving::prompt,
    cli::{FaceArgs, PlaceArgs, PolicyArgs, StdioProtocol},
    environment::{self, Tty},
    exit::{Exit, UsageError},
    hooks,
    settings::{self, Settings},
    terminal::{self, BOLD, DIM, GREEN, RED, Steps, YELLOW, styled},
};

/// How long running calls get to finish after the first signal.
const GRACE: Duration = Duration::from_secs(10);
/// How long a host over pipes takes for its last records: whoever started it waits three seconds in all.
const LAST_MOMENT: Duration = Duration::from_millis(700);

#[derive(Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    face: FaceArgs,
    /// The configuration file of an A2E host, trusted like one given with `--config`
    #[arg(long, value_name = "FILE")]
    a2e_config: Option<PathBuf>,
    /// The person behind the MCP client that started the host may approve calls through it; without this the client
    /// counts as an agent
    #[arg(long, requires = "stdio")]
    operator: bool,
    /// Do not ask on this terminal about calls that need approval
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

pub(crate) async fn run(arguments: ServeArgs) -> anyhow::Result<Exit> {
    let a2e = arguments.a2e_config.as_deref().map(settings::a2e_file).transpose()?;
    let (a2e, layer) = a2e.unzip();
    let layers: Vec<_> = layer.into_iter().collect();
    let resolve = || settings::resolve_over(layers.clone(), &arguments.place, &arguments.policy);
    let mut settings = settings::with_bundles(resolve).await?;
    if let (Some(file), Some(path)) = (&a2e, &arguments.a2e_config) {
        settings.config.plugins = settings::python_plugins(file, path)?;
    }
    let notices =
        a2e.iter().flat_map(|file| &file.notices).map(ToString::to_string).chain(settings.warnings());
    let over_pipes = arguments.talks_over_pipes();
    if over_pipes {
        notices.for_each(|notice| tracing::warn!("{notice}"));
    } else {
        notices.for_each(terminal::warn);
    }
    if let Some(address) = arguments.face.http {
        settings.config.http.listen = address;
    }
    // Before anything is opened: a signal that comes early must find a listener.
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    // Its memory holds tokens and credentials.
    toolpost_sandbox::harden_host();
    let mut builder = Server::builder(settings.config.clone()).native(settings.handover()?);
    if !over_pipes {
        builder = builder.modules(Steps::of_modules());
    }
    if let Some(plugin) =
        a2e.iter().flat_map(|file| &file.plugins).find(|plugin| plugin.capability == A2eCapability::Tools)
    {
        let priority =
            i32::try_from(plugin.priority).unwrap_or(if plugin.priority < 0 { i32::MIN } else { i32::MAX });
        builder = builder.tools_capability(&plugin.name, priority, plugin.exclusive);
    }
    let access = access(&arguments.face, a2e.as_ref())?;
    let builder = builder.access(access.clone());
    if over_pipes {
        let tty = if arguments.no_prompt { None } else { prompt::terminal(&settings.config.approvals) };
        return talk(builder, tty, (&arguments, &settings), [&mut interrupt, &mut terminate]).await;
    }
    if a2e.as_ref().is_some_and(|file| file.face == A2eFace::Stdio) {
        return Err(UsageError(
            "the A2E file is for a host that its agent starts (`transport.type: subprocess`)\n\
             hint: let the agent start it with `toolpost serve --stdio a2e`, or set `transport.type: http`"
                .into(),
        )
        .into());
    }
    let kept = matches!(access, Access::KeptToken);
    environment::raise_file_limit();
    let server = builder.start().await?;
    terminal::keep_out(server.host().redactor());
    settings.keep_last_good();
    let mut reloads = Reloads::begin(&arguments, &settings);
    let tty = if arguments.no_prompt { None } else { prompt::terminal(&settings.config.approvals) };
    let asked = if tty.is_some() { Asked::Here } else { Asked::Elsewhere };
    banner(&server, &settings, kept, asked).await;
    let asking = tty.map(|tty| prompt::spawn(server.host(), tty));
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            () = reloads.due() => reloads.take_up(&server).await,
        }
    }
    if let Some(asking) = asking {
        asking.abort();
    }
    anstream::eprintln!(
        "{}",
        styled(DIM, "stopping: running calls may finish; a second signal ends them now")
    );
    tokio::select! {
        () = server.shutdown(GRACE) => Ok(Exit::Done),
        _ = interrupt.recv() => Ok(Exit::Stopped),
        _ = terminate.recv() => Ok(Exit::Stopped),
    }
}

/// A host that its agent started: messages on the pipes, nothing else, and gone when the agent is.
async fn talk(
    builder: ServerBuilder,
    tty: Option<Tty>,
    (arguments, settings): (&ServeArgs, &Settings),
    [interrupt, terminate]: [&mut Signal; 2],
) -> anyhow::Result<Exit> {
    let server = builder.start_offline().await?;
    terminal::keep_out(server.host().redactor());
    settings.keep_last_good();
    let mut reloads = Reloads::begin(arguments, settings);
    server.host().notices().iter().for_each(|notice| tracing::warn!("{notice}"));
    let asking = tty.map(|tty| prompt::spawn(server.host(), tty));
    {
        let role = if arguments.operator { Role::Operator } else { Role::Agent };
        let mut conversation = std::pin::pin!(converse(&server, arguments.face.stdio, role));
        loop {
            tokio::select! {
                () = &mut conversation => break,
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                () = reloads.due() => reloads.take_up(&server).await,
            }
        }
    }
    if let Some(asking) = asking {
        asking.abort();
    }
    // What still runs is ended; the record says so now, or at the next start.
    let _ = tokio::time::timeout(LAST_MOMENT, server.shutdown(Duration::ZERO)).await;
    Ok(Exit::Done)
}

/// Speaks the protocol that was asked for, until the other end leaves.
pub(crate) async fn converse(server: &Server, protocol: Option<StdioProtocol>, role: Role) {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    match protocol {
        Some(StdioProtocol::Mcp) => server.converse_mcp(role, input, output).await,
        Some(StdioProtocol::A2e) | None => server.converse(input, output).await,
    }
}

/// How callers prove themselves.
pub(crate) fn access(face: &FaceArgs, a2e: Option<&A2eHostFile>) -> anyhow::Result<Access> {
    let configured = a2e.and_then(|file| file.token.as_ref());
    match face {
        FaceArgs { no_token: true, .. } => Ok(Access::Open),
        FaceArgs { token: Some(token), .. } if token.len() < 16 || token.contains(char::is_whitespace) => {
            Err(UsageError("a token needs at least 16 characters and no blanks".into()).into())
        }
        FaceArgs { token: Some(token), .. } => Ok(Access::Token(token.clone())),
        FaceArgs { token_file: Some(path), .. } => Ok(Access::Token(environment::read_token(path)?)),
        FaceArgs { .. } => match configured {
            Some(token) => Ok(Access::Token(token.reveal().to_owned())),
            None => Ok(Access::KeptToken),
        },
    }
}

/// What an operator wants to know before walking away.
async fn banner(server: &Server, settings: &Settings, kept: bool, asked: Asked) {
    let line =
        |name: &str, text: String| anstream::eprintln!("  {}  {text}", styled(BOLD, format!("{name:<10}")));
    let data = settings.place.data_dir.display();
    let token_file = format!("{data}/token");
    anstream::eprintln!(
        "{} {}\n",
        styled(GREEN, "toolpost is ready"),
        styled(DIM, env!("CARGO_PKG_VERSION"))
    );
    let address = server.address().map(|address| address.to_string()).unwrap_or_default();
    line("listening", format!("http://{address}"));
    line("MCP", format!("http://{address}/mcp {}", styled(DIM, "(`toolpost connect` sets clients up)")));
    line("live page", format!("http://{address}/live"));
    line("workspace", settings.place.workspace.display().to_string());
    line("record", data.to_string());
    line(
        "token",
        match (server.token(), kept) {
            (None, _) => styled(YELLOW, "none: everybody on this machine may call"),
            (Some(_), true) => format!("in {token_file}"),
            (Some(_), false) => "the one you gave".to_owned(),
        },
    );
    for file in settings.files.iter().filter(|file| file.standing.is_some()) {
        let standing = match (file.standing, &file.broken) {
            (_, Some(broken)) => styled(RED, &broken.note),
            (Some(Standing::Untrusted), None) => {
                styled(YELLOW, "not trusted: it may only restrict; `toolpost trust` changes that")
            }
            (Some(Standing::Trusted | Standing::LastGood) | None, None) => "trusted".to_owned(),
        };
        line(named(file.origin), format!("{} ({standing})", file.path.display()));
    }
    line("mode", mode(&settings.config));
    line("approvals", approvals(&settings.config.approvals, asked));
    let sandbox = &settings.config.sandbox;
    let required = if sandbox.require { ", and only where all of it can be enforced" } else { "" };
    line(
        "sandbox",
        format!("{}{required}; `toolpost doctor` tells what this machine enforces", sandbox.profile),
    );
    for hook in &settings.config.hooks {
        line("hook", hooks::described(hook));
    }
    line("tools", tools(server.host()).await);
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
    let can_list = surface.find("list_directory").is_some_and(|(_, seen)| seen == Visibility::Loaded);
    let request = if can_list { "tools/list_directory/call --json '{}'" } else { "tools" };
    anstream::eprintln!("\n  try it:\n  curl http://{}/{request}{header}\n", address);
}

/// The word for a file in the banner.
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

/// Where somebody is asked first.
#[derive(Clone, Copy)]
enum Asked {
    Here,
    Elsewhere,
}

fn approvals(config: &ApprovalsConfig, asked: Asked) -> String {
    let within = ConfigDuration::new(config.timeout);
    let who = match asked {
        Asked::Here => "asked on this terminal, and answered here or with `toolpost approvals`",
        Asked::Elsewhere => "answered with `toolpost approvals` from another terminal, or over HTTP",
    };
    format!("{who}; no answer within {within} is a no")
}

fn mode(config: &HostConfig) -> String {
    let of = |wanted: Behavior| {
        let classes =
            EffectClass::ALL.into_iter().filter(|&class| config.mode.behavior(class, None) == wanted);
        classes.map(EffectClass::as_str).collect::<Vec<_>>().join(", ")
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
        let rules: Vec<String> = config.rules.iter().map(|rule| format!("`{rule}`")).collect();
        text.push_str(&format!("\n              rules: {}", rules.join(", ")));
    }
    text.push_str("\n              change with --mode, --allow, --ask, --deny, or in toolpost.yaml");
    text
}

async fn tools(host: &Host) -> String {
    let session = host.default_session(&Principal::agent("agent"));
    let listed = host.list(&session, &ToolFilter::default()).await;
    let names: Vec<&str> = listed.iter().take(8).map(|tool| tool.entry.name()).collect();
    let more = listed.len().saturating_sub(names.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let surface = host.surface(&session);
    let hidden = surface.all().count() - listed.len();
    let hidden =
        if hidden > 0 { format!("; {hidden} hidden, see `toolpost tools --hidden`") } else { String::new() };
    format!("{}{rest}{hidden}", names.join(", "))
}
