//! `toolpost capture -- COMMAND`: runs an agent against a recording host, and saves the recording in a file.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use toolpost_core::{Cassette, Recorder};
use toolpost_serve::{CallerAuthentication, Server};
use toolpost_store::{DataDir, JournalReader};

use super::journal::replay;
use crate::{
    approving::prompt,
    cli::{PolicyArgs, SettingsArgs},
    environment::{self, RunningAgent},
    exit::CliExit,
    settings, terminal,
};

/// How long running calls may take to finish after the end of the command.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct CaptureArgs {
    /// The cassette file, which is either complete or unchanged
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The agent's command; TOOLPOST_URL and TOOLPOST_TOKEN are the address and the token of the host
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(arguments: CaptureArgs) -> anyhow::Result<CliExit> {
    let mut settings = settings::resolve(&arguments.settings, &arguments.policy)?;
    settings.warnings().for_each(terminal::warn);
    // Before anything is opened: an early signal must find its handler.
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    toolpost_sandbox::harden_host();
    // Trust and rules come from the workspace's own data directory; the record is a new one.
    let record = environment::create_temporary_data_dir()?;
    settings.config.data_dir = Some(record.path().to_owned());
    settings.config.http.listen = ([127, 0, 0, 1], 0).into();
    let server = Server::builder(settings.config.clone()).native(settings.handover()?);
    let server = server
        .access(CallerAuthentication::KeptToken)
        .start()
        .await?;
    server.host().notices().iter().for_each(terminal::warn);
    let asking =
        prompt::terminal(&settings.config.approvals).map(|tty| prompt::spawn(server.host(), tty));
    let url = server
        .address()
        .map(|address| format!("http://{address}"))
        .unwrap_or_default();
    let token = server.token().unwrap_or_default().to_owned();
    let mut agent = RunningAgent::start(
        &arguments.command,
        [("TOOLPOST_URL", &url), ("TOOLPOST_TOKEN", &token)],
    )?;
    let code = loop {
        tokio::select! {
            code = agent.end() => break code?,
            // A terminal sends Ctrl-C to all processes in the foreground, so the agent has the signal already and
            // reacts to it in its own way. SIGTERM reaches this process alone and is passed on.
            _ = interrupt.recv() => {}
            _ = terminate.recv() => agent.send_stop_signal(),
        }
    };
    if let Some(asking) = asking {
        asking.abort();
    }
    server.shutdown(GRACE).await;
    let path = DataDir::at(record.path())?.journal_path();
    let reader = JournalReader::open(&path).context("the recording cannot be read")?;
    let cassette =
        replay::record_cassette(&reader, Recorder::of_all())?.unwrap_or_else(|| Cassette::of([]));
    environment::write_cassette(&arguments.output, &cassette)?;
    let calls = cassette.calls.len();
    let file = arguments.output.display();
    if calls == 0 {
        terminal::warn(format_args!(
            "the command called no tool, so {file} holds no call"
        ));
    } else {
        anstream::eprintln!("recorded {} in {file}", terminal::counted(calls, "call"));
    }
    Ok(CliExit::Of(code))
}
