//! `toolpost journal replay`: a recorded session, served as a host.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use toolpost_config::HostConfig;
use toolpost_core::{
    Cassette, Host, RecordKind, Recorder, ReplayMatching, ReplayOptions, ReplayPace, ReplayReport,
};
use toolpost_model::{PrincipalRole, SessionId};
use toolpost_serve::Server;
use toolpost_store::JournalReader;

use crate::{
    cli::{FaceArgs, PlaceArgs},
    commands::serve,
    environment,
    exit::{CliExit, UsageError},
    settings,
    terminal::{self, BOLD, DIM, GREEN, RED, YELLOW, counted, printable, say, styled},
};

const PAGE: usize = 1_000;
/// The word for the session with the latest call.
const LAST: &str = "last";
/// The most sessions that are listed if the requested one is not found, newest first.
const SESSIONS_TOLD: usize = 5;
/// The most unused recorded calls that are listed on the terminal.
const LEFT_TOLD: usize = 10;
/// How long calls that wait for their recorded delay may take at the end.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// A cassette file, the id of a recorded session, or `last` for the session with the latest call
    #[arg(value_name = "SESSION|FILE")]
    what: String,
    /// How a call is matched with a recorded one
    #[arg(long = "match", value_name = "HOW", default_value = "strict")]
    matching: MatchWord,
    /// The delay of the answers
    #[arg(long, value_name = "HOW", default_value = "none")]
    delays: DelayWord,
    /// Fail also if some recorded calls were not made
    #[arg(long)]
    complete: bool,
    /// Write the session to a cassette file, without serving it
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print the fate of the recorded calls as JSON at the end
    #[arg(long, conflicts_with = "stdio")]
    json: bool,
    #[command(flatten)]
    face: FaceArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum MatchWord {
    /// A recorded call of the same tool with the same input; each answers once
    Strict,
    /// Only the next call of the recording
    Ordered,
}

#[derive(Clone, Copy, ValueEnum)]
enum DelayWord {
    /// Answer at once
    None,
    /// Answer after the recorded duration of the call
    Recorded,
}

impl ReplayArgs {
    pub(crate) fn talks_over_pipes(&self) -> bool {
        self.face.stdio.is_some()
    }

    fn options(&self) -> ReplayOptions {
        ReplayOptions {
            matching: match self.matching {
                MatchWord::Strict => ReplayMatching::Strict,
                MatchWord::Ordered => ReplayMatching::Ordered,
            },
            pace: match self.delays {
                DelayWord::None => ReplayPace::AtOnce,
                DelayWord::Recorded => ReplayPace::AsRecorded,
            },
        }
    }
}

pub(crate) async fn run(arguments: &ReplayArgs) -> anyhow::Result<CliExit> {
    let cassette = cassette(arguments)?;
    if let Some(path) = &arguments.save {
        environment::write_cassette(path, &cassette)?;
        anstream::eprintln!(
            "saved {} of {} in {}",
            counted(cassette.calls.len(), "call"),
            counted(cassette.tools.len(), "tool"),
            path.display()
        );
        return Ok(CliExit::Done);
    }
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    // The workspace's settings are left out: the same recording is the same host on every machine.
    let mut config = HostConfig::default();
    if let Some(address) = arguments.face.http {
        config.http.listen = address;
    }
    let recorded = RecordingCounts {
        calls: cassette.calls.len(),
        tools: cassette.tools.len(),
    };
    let builder = Server::builder(config).access(serve::access(&arguments.face, None)?);
    let builder = builder.replay(cassette, arguments.options());
    let server = if arguments.talks_over_pipes() {
        let server = builder.start_offline().await?;
        tokio::select! {
            () = serve::converse(&server, arguments.face.stdio, PrincipalRole::Agent) => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        server
    } else {
        environment::raise_file_limit();
        let server = builder.start().await?;
        banner(&server, arguments, &recorded);
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        server
    };
    let host = server.host().clone();
    server.shutdown(GRACE).await;
    print_replay_report(&host, arguments)
}

struct RecordingCounts {
    calls: usize,
    tools: usize,
}

fn banner(server: &Server, arguments: &ReplayArgs, recorded: &RecordingCounts) {
    let line = |name: &str, text: String| {
        anstream::eprintln!("  {}  {text}", styled(BOLD, format!("{name:<10}")));
    };
    anstream::eprintln!(
        "{} {}\n",
        styled(GREEN, "toolpost replays"),
        styled(DIM, env!("CARGO_PKG_VERSION"))
    );
    line(
        "recording",
        format!(
            "{}: {}, {}",
            printable(&arguments.what),
            counted(recorded.calls, "call"),
            counted(recorded.tools, "tool")
        ),
    );
    let given = arguments.face.token_file.is_some();
    line(
        "token",
        match server.token() {
            None => styled(YELLOW, "none: every program on this machine may call"),
            Some(_) if given => "the one you gave".to_owned(),
            // The token gives access only to a recording, and ends with this process.
            Some(token) => token.to_owned(),
        },
    );
    let address = server
        .address()
        .as_ref()
        .map(SocketAddr::to_string)
        .unwrap_or_default();
    line("listening", format!("http://{address}"));
}

/// Prints the fate of the recorded calls.
fn print_replay_report(host: &Host, arguments: &ReplayArgs) -> anyhow::Result<CliExit> {
    let Some(report) = host.replay_report() else {
        anyhow::bail!("the host served no recording")
    };
    let ReplayReport {
        answered,
        refused,
        left,
    } = &report;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        let refused = if *refused > 0 {
            styled(RED, format!("{refused} not recorded"))
        } else {
            "0 not recorded".into()
        };
        anstream::eprintln!(
            "replayed: {answered} answered, {refused}, {} recorded and not made",
            left.len()
        );
        for one in left.iter().take(LEFT_TOLD) {
            anstream::eprintln!("  call {} of {}", one.call, printable(&one.tool));
        }
        if left.len() > LEFT_TOLD {
            anstream::eprintln!("  and {} more", left.len() - LEFT_TOLD);
        }
    }
    let failed = *refused > 0 || arguments.complete && !left.is_empty();
    Ok(if failed {
        CliExit::Failed
    } else {
        CliExit::Done
    })
}

fn cassette(arguments: &ReplayArgs) -> anyhow::Result<Cassette> {
    let path = Path::new(&arguments.what);
    if environment::is_file(path) {
        return environment::read_cassette(path);
    }
    if arguments.what.contains('/')
        || path
            .extension()
            .is_some_and(|extension| extension == "json")
    {
        return Err(UsageError(format!("the file `{}` does not exist", path.display())).into());
    }
    let reader = super::open(&settings::locate(&arguments.place)?)?;
    let session = match arguments.what.as_str() {
        LAST => match newest_sessions(&reader, 1)?.pop() {
            Some(session) => session,
            None => anyhow::bail!("no call is recorded"),
        },
        id => SessionId::new(id),
    };
    match record_cassette(&reader, Recorder::of_session(session.clone()))? {
        Some(cassette) => Ok(cassette),
        None => {
            let newest = newest_sessions(&reader, SESSIONS_TOLD)?;
            let newest: Vec<String> = newest
                .iter()
                .map(|id| format!("`{}`", printable(id.as_str())))
                .collect();
            let hint = if newest.is_empty() {
                "no call is recorded".to_owned()
            } else {
                format!(
                    "the sessions with the latest calls are {}",
                    newest.join(", ")
                )
            };
            let session = printable(session.as_str());
            Err(UsageError(format!(
                "no recorded session and no file is called `{session}`\nhint: {hint}"
            ))
            .into())
        }
    }
}

/// Feeds every record to a recorder. `None`: no record matched.
pub(crate) fn record_cassette(
    reader: &JournalReader,
    mut recorder: Recorder,
) -> anyhow::Result<Option<Cassette>> {
    let bar = terminal::bar(reader.last_seq()?, "reading");
    let mut after = 0;
    loop {
        let rows = reader.read(after, PAGE)?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        rows.iter().for_each(|row| recorder.take(row));
        bar.set_position(after);
    }
    bar.finish_and_clear();
    Ok(recorder.found().then(|| recorder.finish()))
}

/// The sessions with the latest calls, newest first.
fn newest_sessions(reader: &JournalReader, count: usize) -> anyhow::Result<Vec<SessionId>> {
    let mut found: Vec<SessionId> = Vec::new();
    let mut before = reader.last_seq()?;
    while before > 0 && found.len() < count {
        let after = before.saturating_sub(PAGE as u64);
        let rows = reader.read(after, usize::try_from(before - after).unwrap_or(PAGE))?;
        let ended = rows
            .into_iter()
            .rev()
            .filter(|row| row.record.kind == RecordKind::Ended);
        for session in ended.filter_map(|row| row.record.session_id) {
            if found.len() < count && !found.contains(&session) {
                found.push(session);
            }
        }
        before = after;
    }
    Ok(found)
}
