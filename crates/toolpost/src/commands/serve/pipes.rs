//! A host for the agent that started it, with messages over pipes. It ends with its agent.
//!
//! If a host runs in the folder already, this process becomes a relay and passes its agent's messages on. When that
//! host ends, one of the relays takes its place, and the others connect to it.

use std::{
    future::Future,
    io::IsTerminal as _,
    path::Path,
    time::{Duration, Instant},
};

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolpost_model::PrincipalRole;
use toolpost_serve::{
    HostConnection, JoinError, RelayEnd, Server, StartError, StdioFace, StdioRelay, join_host,
};
use toolpost_store::{DataDir, DataDirError};

use super::{ServeArgs, converse, reload::ConfigReloads, startup::StartupSettings};
use crate::{approving::prompt, cli::StdioProtocol, exit::CliExit, terminal};

/// How long a host over pipes takes for its last records: the program that started it waits three seconds in all.
const LAST_MOMENT: Duration = Duration::from_millis(700);
/// How long this process tries to join a host that holds the data directory: the host may be starting, or a command
/// may hold the directory for one call.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between these attempts.
const TRIED_EVERY: Duration = Duration::from_millis(25);
/// How long a host may take to reload a file that was just changed.
const READ_AGAIN_WITHIN: Duration = Duration::from_secs(1);
/// How long an agent is refused before the next search for a host.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// The signals that end a host.
pub(super) struct EndSignals {
    pub(super) interrupt: Signal,
    pub(super) terminate: Signal,
}

impl EndSignals {
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Serves the agent that started this process, as the host of its folder or as a relay to the running one.
pub(super) async fn serve_stdio(
    arguments: &ServeArgs,
    startup: StartupSettings,
    mut signals: EndSignals,
) -> anyhow::Result<CliExit> {
    let role = if arguments.operator {
        PrincipalRole::Operator
    } else {
        PrincipalRole::Agent
    };
    match startup.builder()?.start_offline().await {
        Ok(server) => {
            let conversation = converse(&server, arguments.face.stdio, role);
            host(&server, arguments, &startup, &mut signals, conversation).await;
            end(server).await;
            Ok(CliExit::Done)
        }
        Err(StartError::DataDir(DataDirError::InUse { .. })) => {
            let face = match arguments.face.stdio {
                Some(StdioProtocol::Mcp) => StdioFace::Mcp,
                Some(StdioProtocol::A2e) | None => StdioFace::A2e,
            };
            let guest = JoiningStdioProcess {
                arguments,
                startup,
                face,
                role,
            };
            guest.stay(&mut signals).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Runs a host until its own agent disconnects or a signal ends it.
async fn host(
    server: &Server,
    arguments: &ServeArgs,
    startup: &StartupSettings,
    signals: &mut EndSignals,
    conversation: impl Future<Output = ()>,
) {
    let settings = &startup.settings;
    terminal::set_host_redactor(server.host().redactor());
    settings.keep_last_good();
    let mut reloads = ConfigReloads::begin(arguments, settings);
    server
        .host()
        .notices()
        .iter()
        .for_each(|notice| tracing::warn!("{notice}"));
    let tty = if arguments.no_prompt {
        None
    } else {
        prompt::terminal(&settings.config.approvals)
    };
    let asking = tty.map(|tty| prompt::spawn(server.host(), tty));
    let mut conversation = std::pin::pin!(conversation);
    loop {
        tokio::select! {
            () = &mut conversation => break,
            () = signals.recv() => break,
            () = reloads.due() => reloads.apply_changes(server).await,
        }
    }
    if let Some(asking) = asking {
        asking.abort();
    }
}

/// Cancels running calls. Their ends are recorded now, or by recovery at the next start.
async fn end(server: Server) {
    let _ = tokio::time::timeout(LAST_MOMENT, server.shutdown(Duration::ZERO)).await;
}

/// A process in a folder that has a host already.
struct JoiningStdioProcess<'a> {
    arguments: &'a ServeArgs,
    startup: StartupSettings,
    face: StdioFace,
    role: PrincipalRole,
}

enum FoundHost {
    /// Another process is the host, and this one is connected to it.
    Other(HostConnection),
    /// The data directory was free, and this process is the host now.
    This(Box<Server>),
    /// No host accepts this agent.
    Refused(String),
    /// The agent disconnected meanwhile.
    Unneeded,
}

impl JoiningStdioProcess<'_> {
    /// Relays the agent's messages to one host after another, until the agent disconnects or a signal arrives.
    async fn stay(mut self, signals: &mut EndSignals) -> anyhow::Result<CliExit> {
        // Without a terminal this signal makes hosts reload their files; it must not end a relay.
        let _hangup = if std::io::stderr().is_terminal() {
            None
        } else {
            signal(SignalKind::hangup()).ok()
        };
        let limit = self.startup.settings.config.http.body_limit;
        let mut relay = StdioRelay::start(self.face, limit, std::io::stdin(), std::io::stdout());
        let mut problem = None;
        loop {
            let found = tokio::select! {
                found = self.find_host(&relay) => found,
                () = signals.recv() => break,
            };
            if !matches!(found, FoundHost::Refused(_)) {
                problem = None;
            }
            let left = match found {
                FoundHost::Unneeded => break,
                FoundHost::This(server) => {
                    self.take_over(*server, &mut relay, signals).await;
                    break;
                }
                FoundHost::Other(connection) => {
                    tokio::select! {
                        end = relay.carry(connection) => end,
                        () = signals.recv() => break,
                    }
                }
                FoundHost::Refused(reason) => {
                    if problem.as_ref() != Some(&reason) {
                        tracing::error!("{reason}");
                    }
                    let refused = relay.refuse(&reason, REFUSED_FOR);
                    problem = Some(reason.clone());
                    tokio::select! {
                        end = refused => end,
                        () = signals.recv() => break,
                    }
                }
            };
            if left == RelayEnd::AgentLeft {
                break;
            }
            self.read_again().await;
        }
        relay.finish().await;
        match problem {
            None => Ok(CliExit::Done),
            Some(reason) => Err(anyhow::anyhow!(reason)),
        }
    }

    /// The files may have changed since this process started. If they cannot be read, the settings from the start
    /// apply.
    async fn read_again(&mut self) {
        match StartupSettings::read(self.arguments).await {
            Ok(startup) => self.startup = startup,
            Err(error) => tracing::warn!("the configuration cannot be reloaded: {error:#}"),
        }
    }

    /// Takes the lock if it is free, otherwise connects to its holder.
    async fn find_host(&self, relay: &StdioRelay) -> FoundHost {
        match self.look_for_host(relay).await {
            Ok(found) => found,
            Err(error) => FoundHost::Refused(format!("{error:#}")),
        }
    }

    async fn look_for_host(&self, relay: &StdioRelay) -> anyhow::Result<FoundHost> {
        let data_dir: &Path = &self.startup.settings.place.data_dir;
        let ticket = self.startup.builder()?.join_ticket(self.face, self.role);
        let session = relay.session();
        let since = Instant::now();
        loop {
            // This check only saves a start that would fail. The lock inside `start_offline` decides: when a host
            // ends, all its relays get here at once, one of them gets the lock, and the others see `InUse` and connect
            // to the winner. A relay that trusted the check alone could start a second host on the same journal.
            if DataDir::running_pid(data_dir).is_none() {
                match self.startup.builder()?.start_offline().await {
                    Ok(server) => return Ok(FoundHost::This(Box::new(server))),
                    Err(StartError::DataDir(DataDirError::InUse { .. })) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            match join_host(data_dir, &ticket, session.as_deref()).await {
                Ok(connection) => return Ok(FoundHost::Other(connection)),
                Err(JoinError::NotReady) if since.elapsed() < PATIENCE => {}
                // After a change of a file, the host and this process may have read different versions of it: the host
                // reloads only after a moment of quiet. So differing settings are a refusal only if they last.
                Err(JoinError::SettingsDiffer(_)) if since.elapsed() < READ_AGAIN_WITHIN => {}
                Err(error) => return Err(error.into()),
            }
            if relay.has_left() {
                return Ok(FoundHost::Unneeded);
            }
            tokio::time::sleep(TRIED_EVERY).await;
        }
    }

    /// The last host has ended and this process is the next one, for its own agent and for relays.
    async fn take_over(&self, server: Server, relay: &mut StdioRelay, signals: &mut EndSignals) {
        tracing::info!("the host of this folder has ended; this process replaces it");
        let connection = server.connect_stdio(self.face, self.role, relay.session());
        let conversation = async {
            relay.carry(connection).await;
        };
        host(
            &server,
            self.arguments,
            &self.startup,
            signals,
            conversation,
        )
        .await;
        end(server).await;
    }
}
