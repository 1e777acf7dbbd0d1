//! Over a pair of pipes: one message a line, one session a process.
//!
//! Both pipes have a thread of their own. A peer that stops reading blocks the thread that writes and nothing else.

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

/// Lines that may wait to be handled.
const ROOM: usize = 1_024;
/// About how much is written at once.
const BATCH: usize = 64 << 10;
/// How long a peer may leave thousands of messages unread before it counts as gone.
const UNREAD: Duration = Duration::from_secs(60);
/// How long running calls get once the peer has closed its end: it waits three seconds for the process to go.
const LAST_CALLS: Duration = Duration::from_millis(1_500);

/// A line of input.
pub(crate) enum InputLine {
    Whole(Vec<u8>),
    /// Longer than the limit; this is how it began.
    TooLong(Vec<u8>),
}

/// Talks until the input ends or the peer says goodbye, then lets what runs finish for a moment.
pub(crate) async fn converse(
    face: &Arc<A2eServerFace>,
    door: &Arc<RequestAuthenticator>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    // Nothing but the agent ends it: the host of these pipes ends with them.
    let leaving = CancellationToken::new();
    converse_joined(face, door, None, &leaving, input, output).await;
}

/// The same for an agent whose process joined this host. `session` is the one that it had with an earlier host.
/// When this host leaves, the session stays open on record, and the agent goes on with it at the next host.
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
        // A peer that does not read is not heard either, until it does.
        let next = async {
            match tokio::time::timeout(UNREAD, conversation.outbox.room()).await {
                Ok(()) => to_handle.recv().await,
                // Whoever floods and does not read in all this time is gone, or as good as.
                Err(_) => None,
            }
        };
        let line = tokio::select! {
            biased;
            line = next => line,
            // The session is over, or nobody reads.
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
    if leaving.is_cancelled() {
        conversation.end();
    } else {
        conversation.hang_up();
    }
    // Canceled calls still get their answers, in what is left of the peer's patience.
    let _ = tokio::time::timeout(Duration::from_millis(500), written).await;
}

/// Hands on the lines of an input, each up to a length, until it ends or nobody takes them.
pub(crate) fn read_lines(mut input: impl BufRead, limit: usize, lines: &mpsc::Sender<InputLine>) {
    loop {
        let mut line = Vec::new();
        // One byte more than the limit tells a line that is too long from one that fits.
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

/// Reads to the end of a line without keeping it.
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

/// Writes what the outbox has, in a thread. Resolves when all is written or nobody reads any more.
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
