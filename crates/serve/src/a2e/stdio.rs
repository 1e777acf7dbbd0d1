//! A2E over a pair of pipes: one message a line, one session a process.
//!
//! Each pipe has its own thread. A peer that stops reading blocks only the writing thread.

use std::{
    io::{BufRead, BufReader, Read, Write},
    sync::Arc,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolpost_a2e::codec::{MessageFraming, ReaderSide, decode};
use toolpost_model::SessionId;
use uuid::Uuid;

use super::{
    A2eServerFace,
    conversation::{A2eConversation, ConversationTransport},
    http::HEAD,
    wire::{self, too_large},
};
use crate::auth::RequestAuthenticator;

/// The most lines that wait to be handled.
const ROOM: usize = 1_024;
/// The approximate size of one write.
const BATCH: usize = 64 << 10;
/// The time after which a peer with thousands of unread messages counts as gone.
const UNREAD: Duration = Duration::from_secs(60);
/// The time that running calls get after the peer has closed its end. The peer waits three seconds for the process to
/// exit.
const LAST_CALLS: Duration = Duration::from_millis(1_500);

pub(crate) enum InputLine {
    Whole(Vec<u8>),
    /// The beginning of a line that is longer than the limit.
    TooLong(Vec<u8>),
}

/// Serves the agent until the input ends or the agent sends `shutdown`, then lets running calls finish for a moment.
pub(crate) async fn converse(
    face: &Arc<A2eServerFace>,
    door: &Arc<RequestAuthenticator>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    // Only the agent can end this conversation: the host of these pipes ends with them.
    let leaving = CancellationToken::new();
    converse_joined(face, door, None, &leaving, input, output).await;
}

/// Serves an agent through a relay that joined this host. `session` is the agent's session with an earlier host. When
/// this host shuts down, the session stays open on record, and the agent continues it with the next host.
pub(crate) async fn converse_joined(
    face: &Arc<A2eServerFace>,
    door: &Arc<RequestAuthenticator>,
    session: Option<String>,
    leaving: &CancellationToken,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    let transport = if session.is_some() {
        ConversationTransport::Rejoined
    } else {
        ConversationTransport::Stdio
    };
    let id = session.unwrap_or_else(|| Uuid::new_v4().simple().to_string());
    let session = SessionId::new(format!("a2e-{id}"));
    let conversation = A2eConversation::new(face, transport, door, id, session);
    conversation.watch_list();
    let limit = face.settings.message_limit;
    let (lines, mut to_handle) = mpsc::channel(ROOM);
    std::thread::spawn(move || {
        read_lines(BufReader::with_capacity(64 << 10, input), limit, &lines);
    });
    let written = write_lines(Arc::clone(&conversation), output);
    tokio::pin!(written);
    loop {
        // Backpressure: the input of a peer that does not read is not read either.
        let next = async {
            match tokio::time::timeout(UNREAD, conversation.outbox.room()).await {
                Ok(()) => to_handle.recv().await,
                // A peer that sends messages and reads nothing in this time counts as gone.
                Err(_) => None,
            }
        };
        let line = tokio::select! {
            biased;
            line = next => line,
            // The session is over, or the output is closed.
            _ = &mut written => return conversation.hang_up(),
        };
        match line {
            None => break,
            Some(InputLine::Whole(line)) => {
                conversation.receive(decode(&line, ReaderSide::Host)).await
            }
            Some(InputLine::TooLong(head)) => {
                conversation.receive(Err(too_large(&head, limit))).await
            }
        };
    }
    let _ = tokio::time::timeout(LAST_CALLS, conversation.outbox.settled()).await;
    // When this host leaves, the agent does not: `end` only stops this conversation and leaves the session open on
    // record, and the relay resumes it at the next host. `hang_up` would close the session.
    if leaving.is_cancelled() {
        conversation.end();
    } else {
        conversation.hang_up();
    }
    // Canceled calls still get their answers in the time that the peer leaves.
    let _ = tokio::time::timeout(Duration::from_millis(500), written).await;
}

/// Passes on the lines of an input, each up to a limit, until the input or the receiver ends.
pub(crate) fn read_lines(mut input: impl BufRead, limit: usize, lines: &mpsc::Sender<InputLine>) {
    loop {
        let mut line = Vec::new();
        // One byte beyond the limit distinguishes a line that is too long from one that fits.
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        match input.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = if line.len() > limit && line.last() != Some(&b'\n') {
            if skip_line(&mut input).is_err() {
                return;
            }
            line.truncate(HEAD);
            line.shrink_to_fit();
            InputLine::TooLong(line)
        } else if line.trim_ascii().is_empty() {
            continue;
        } else {
            InputLine::Whole(line)
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Writes the items of the outbox in a thread. Resolves when everything is written or the output is closed.
fn write_lines(
    conversation: Arc<A2eConversation>,
    mut output: impl Write + Send + 'static,
) -> oneshot::Receiver<()> {
    let (done, written) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        let reader = conversation.outbox.attach(None).reader;
        let mut text = Vec::new();
        while let Some(batch) = runtime.block_on(conversation.outbox.take(reader, BATCH)) {
            text.clear();
            for (_, item) in &batch {
                wire::write(&mut text, item, MessageFraming::Line);
            }
            if output
                .write_all(&text)
                .and_then(|()| output.flush())
                .is_err()
            {
                break;
            }
        }
        let _ = done.send(());
    });
    written
}
