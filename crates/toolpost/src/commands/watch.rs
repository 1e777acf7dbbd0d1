//! `toolpost watch`: calls as they happen, from a running host or a URL.

mod board;
mod card;
mod connection;
mod frames;
mod heard;
mod live;
mod preview;
mod row;
mod screen;
mod stream;
mod target;
mod view;

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval},
};
use toolpost_a2a::Receiver;

use self::{
    heard::{ROOM, StreamLinkStatus, WatchInputMessage},
    live::{OpenCallTracker, UnknownStream},
    stream::StreamReconnectPolicy,
    view::WatchView,
};
use crate::{cli::PlaceArgs, exit::CliExit};

/// The interval of the frames, and of the spinner.
const FRAME: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// The URL of a host or of a stream; by default the host that runs on the workspace
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// The session to watch; by default every session of the running host, and the caller's own at a URL
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A file with the token for a URL; by default TOOLPOST_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The start of the output; by default the current moment
    #[arg(long, value_name = "WHERE", value_enum)]
    from: Option<WatchStartPoint>,
    /// End when the stream ends or breaks, instead of reconnecting
    #[arg(long)]
    once: bool,
    /// Print each change of a call as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WatchStartPoint {
    /// With all past events
    Start,
    /// With new events only
    Now,
}

impl WatchStartPoint {
    fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Now => "now",
        }
    }
}

pub(crate) async fn run(arguments: &WatchArgs) -> anyhow::Result<CliExit> {
    let address = target::find_address(arguments).await?;
    let view = WatchView::choose(arguments.json, address.name());
    let (to, heard) = mpsc::channel(ROOM);
    let again = if arguments.once {
        StreamReconnectPolicy::No
    } else {
        StreamReconnectPolicy::Yes
    };
    tokio::spawn(stream::read(address, again, to));
    watch(view, heard).await
}

/// Shows events until the streams end or the user stops it.
async fn watch(
    mut view: WatchView,
    mut heard: mpsc::Receiver<WatchInputMessage>,
) -> anyhow::Result<CliExit> {
    let mut interrupt = signal(SignalKind::interrupt()).context("signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("signals")?;
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut receiver = Receiver::default();
    let mut live = OpenCallTracker::default();
    let mut doubt = UnknownStream::default();
    let end = loop {
        tokio::select! {
            biased;
            _ = interrupt.recv() => break Ok(()),
            _ = terminate.recv() => break Ok(()),
            _ = hang_up.recv() => break Ok(()),
            _ = frames.tick() => {
                view.lost(&live.lost(Instant::now()), &receiver);
                view.tick(&receiver);
            }
            told = heard.recv() => match told {
                Some(WatchInputMessage::Json(text)) => match receiver.receive_line(&text) {
                    Ok(changes) => {
                        doubt.accept_text(&text, &receiver);
                        view.show(&changes, &mut receiver);
                    }
                    Err(error) => match doubt.unreadable() {
                        Ok(()) => view.note(&format!("an event is left out: {error}")),
                        Err(error) => break Err(error),
                    },
                },
                Some(WatchInputMessage::Note(note)) => view.note(&note),
                Some(WatchInputMessage::Unproven(name)) => doubt.begin(name, &receiver),
                Some(WatchInputMessage::Opening(opening)) => {
                    live.opened(&opening, &receiver, Instant::now());
                    view.waiting(live.waiting(), None, &receiver);
                }
                Some(WatchInputMessage::Approval(approval)) => {
                    let new = live.asked(&approval);
                    view.waiting(live.waiting(), new, &receiver);
                }
                Some(WatchInputMessage::Link(link)) => {
                    if let StreamLinkStatus::Lost { .. } = link {
                        live.broken();
                    }
                    view.link(&link);
                }
                Some(WatchInputMessage::End(end)) => break end.and_then(|()| doubt.end()),
                None => break Ok(()),
            },
        }
    };
    view.end(&receiver);
    end.map(|()| CliExit::Done)
}
