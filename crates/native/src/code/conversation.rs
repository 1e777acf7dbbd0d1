//! The host's side of one run: sends the code, answers what it asks, hears its end.
//!
//! The other end is hostile once it ran code. Whatever it sends is bounded and checked; what does not fit ends the
//! run, and whoever called here ends the process.

use std::io;

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use super::{
    frame::{
        CodeHostFrame, CodeRequestAnswer, CodeRunEnd, CodeWorkerFrame, FrameError, ORDER_BYTES,
        PythonException, REPORT_BYTES, RunOrder, decode, encode,
    },
    inner_calls::InnerCalls,
};

/// How much is read at once, at least.
const READ_BYTES: usize = 8 << 10;

/// Answers that wait to be sent. Whoever asks on without reading them is not listened to until it has taken some.
const UNSENT_BYTES: usize = ORDER_BYTES + (1 << 20);

/// One end of a socket, with what came and what is to go.
pub(super) struct CodeWorkerConnection {
    stream: UnixStream,
    incoming: BytesMut,
    outgoing: BytesMut,
    /// The process has said that it is ready.
    greeted: bool,
}

/// Why a conversation ended before the code did.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodeConversationError {
    #[error("the process that ran the code ended")]
    Gone,
    #[error("the wire to the process that ran the code broke")]
    Io(#[source] io::Error),
    #[error("the process that ran the code sent {0}")]
    Frame(#[source] FrameError),
    #[error("the process that ran the code sent {0}")]
    Nonsense(&'static str),
    #[error("the process that should run the code cannot be confined: {0}")]
    Unfit(String),
}

/// One run as the host sees it.
pub(super) struct CodeRunConversation {
    pub(super) calls: InnerCalls,
    pub(super) printed: String,
    /// Printed bytes that were not kept.
    pub(super) unprinted: u64,
    /// The process should not be used again.
    pub(super) worn: bool,
    printed_bytes: usize,
}

impl CodeWorkerConnection {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            greeted: false,
        }
    }

    /// Waits until the process says that it is locked down. At once where it has said so before.
    pub(super) async fn ready(&mut self) -> Result<(), CodeConversationError> {
        if self.greeted {
            return Ok(());
        }
        match self.next().await? {
            CodeWorkerFrame::Ready => self.greeted = true,
            CodeWorkerFrame::Unfit { reason } => return Err(CodeConversationError::Unfit(reason)),
            CodeWorkerFrame::Printed { .. }
            | CodeWorkerFrame::Lookup { .. }
            | CodeWorkerFrame::Call { .. }
            | CodeWorkerFrame::Ended { .. } => {
                return Err(CodeConversationError::Nonsense(
                    "something else before it said that it is ready",
                ));
            }
        }
        Ok(())
    }

    /// Answers a request. A result that is too large for the wire is a failed call.
    fn answer(&mut self, id: u32, answer: CodeRequestAnswer) -> Result<(), CodeConversationError> {
        let sent = self.queue(&CodeHostFrame::Answer { id, answer });
        let sent = match sent {
            Err(FrameError::TooLong { size, limit }) => {
                let message =
                    format!("the result has {size} bytes, and code is given {limit} at most");
                let answer = CodeRequestAnswer::Raise {
                    kind: PythonException::Value,
                    message,
                };
                self.queue(&CodeHostFrame::Answer { id, answer })
            }
            other => other,
        };
        sent.map_err(CodeConversationError::Frame)
    }

    /// Puts a frame where [`Self::next`] sends it from.
    fn queue(&mut self, order: &CodeHostFrame) -> Result<(), FrameError> {
        self.outgoing
            .extend_from_slice(&encode(order, ORDER_BYTES)?);
        Ok(())
    }

    /// The next frame. Sends meanwhile: were it to send first, two ends that both have much to say would wait for
    /// one another. Can be dropped and called again without a loss.
    async fn next(&mut self) -> Result<CodeWorkerFrame, CodeConversationError> {
        loop {
            let listens = self.outgoing.len() <= UNSENT_BYTES;
            if listens
                && let Some((report, taken)) =
                    decode(&self.incoming, REPORT_BYTES).map_err(CodeConversationError::Frame)?
            {
                let _ = self.incoming.split_to(taken);
                return Ok(report);
            }
            self.incoming.reserve(READ_BYTES);
            let (mut reader, mut writer) = self.stream.split();
            tokio::select! {
                read = reader.read_buf(&mut self.incoming), if listens => match read {
                    Ok(0) => return Err(CodeConversationError::Gone),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(CodeConversationError::Gone),
                    Err(error) => return Err(CodeConversationError::Io(error)),
                },
                written = writer.write_buf(&mut self.outgoing), if !self.outgoing.is_empty() => {
                    // It hears nothing any more. What it said before it left is still to be read.
                    if written.is_err() {
                        self.outgoing.clear();
                    }
                }
            }
        }
    }
}

impl CodeRunConversation {
    pub(super) fn new(calls: InnerCalls, printed_bytes: usize) -> Self {
        Self {
            calls,
            printed: String::new(),
            unprinted: 0,
            worn: false,
            printed_bytes,
        }
    }

    /// Runs the code to its end. What it printed and called until then stays here if this is dropped.
    pub(super) async fn run(
        &mut self,
        wire: &mut CodeWorkerConnection,
        order: RunOrder,
    ) -> Result<CodeRunEnd, CodeConversationError> {
        wire.ready().await?;
        wire.queue(&CodeHostFrame::Run(Box::new(order)))
            .map_err(CodeConversationError::Frame)?;
        loop {
            let report = tokio::select! {
                // Calls that wait are held whole, so nobody is listened to who could make more of them.
                report = wire.next(), if self.calls.has_room() => report?,
                (id, answer) = self.calls.done() => {
                    wire.answer(id, answer)?;
                    continue;
                }
            };
            let answered = match report {
                CodeWorkerFrame::Printed { text } => {
                    self.print(&text)?;
                    None
                }
                CodeWorkerFrame::Lookup { id, name } => Some((id, self.calls.look_up(name))),
                CodeWorkerFrame::Call {
                    id,
                    function,
                    positional,
                    keywords,
                } => self
                    .calls
                    .begin(id, &function, positional, keywords)
                    .map(|answer| (id, answer)),
                CodeWorkerFrame::Ended {
                    ending,
                    unprinted,
                    worn,
                } => {
                    (self.unprinted, self.worn) = (unprinted, worn);
                    return Ok(ending);
                }
                CodeWorkerFrame::Ready | CodeWorkerFrame::Unfit { .. } => {
                    return Err(CodeConversationError::Nonsense(
                        "its greeting a second time",
                    ));
                }
            };
            if let Some((id, answer)) = answered {
                wire.answer(id, answer)?;
            }
        }
    }

    fn print(&mut self, text: &str) -> Result<(), CodeConversationError> {
        if self.printed.len() + text.len() > self.printed_bytes {
            return Err(CodeConversationError::Nonsense(
                "more printed text than it may",
            ));
        }
        self.printed.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
