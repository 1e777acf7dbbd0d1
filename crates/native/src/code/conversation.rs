//! The host's side of one run: sends the code, answers its requests, and reads its end.
//!
//! The process is hostile once it has run code. All its frames are bounded and checked. A frame that does not fit ends
//! the run, and the caller of this module ends the process.

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

/// The least room for a read.
const READ_BYTES: usize = 8 << 10;

/// The most unsent answers. If a process sends requests without reading the answers, the host stops reading its
/// requests until it has taken some.
const UNSENT_BYTES: usize = ORDER_BYTES + (1 << 20);

/// The host's end of a socket, with received and unsent bytes.
pub(super) struct CodeWorkerConnection {
    stream: UnixStream,
    incoming: BytesMut,
    outgoing: BytesMut,
    /// Whether the process has reported that it is ready.
    greeted: bool,
}

/// Why a run ended before its code did.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodeConversationError {
    #[error("the code worker ended")]
    Gone,
    #[error("the connection to the code worker broke")]
    Io(#[source] io::Error),
    #[error("the code worker sent {0}")]
    Frame(#[source] FrameError),
    #[error("the code worker sent {0}")]
    Nonsense(&'static str),
    #[error("the code worker cannot be confined: {0}")]
    Unfit(String),
}

/// One run, as the host sees it.
pub(super) struct CodeRunConversation {
    pub(super) calls: InnerCalls,
    pub(super) printed: String,
    /// Printed bytes that were not kept.
    pub(super) unprinted: u64,
    /// Whether the process should not be used again.
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

    /// Waits until the process reports that it is locked down, unless it already has.
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
                    "another message before its greeting",
                ));
            }
        }
        Ok(())
    }

    /// Answers a request. A result that is too large for a frame becomes a failed call.
    fn answer(&mut self, id: u32, answer: CodeRequestAnswer) -> Result<(), CodeConversationError> {
        let sent = self.queue(&CodeHostFrame::Answer { id, answer });
        let sent = match sent {
            Err(FrameError::TooLong { size, limit }) => {
                let message = format!("the result has {size} bytes, the limit for code is {limit}");
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

    /// Queues a frame, which [`Self::next`] sends.
    fn queue(&mut self, order: &CodeHostFrame) -> Result<(), FrameError> {
        self.outgoing
            .extend_from_slice(&encode(order, ORDER_BYTES)?);
        Ok(())
    }

    /// The next frame. It sends queued frames at the same time as it reads. If the host finished sending first, two
    /// ends with full socket buffers would wait for each other for ever. The future can be dropped and the method
    /// called again: received and unsent bytes are in `self`, and `run` drops the future whenever a call ends first.
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
                    // The process reads no more. Its last frames may still be in the socket.
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

    /// Runs the code to its end. If the future is dropped, the output and the calls up to then stay in `self`.
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
                // Waiting calls are held in memory with their arguments, so the host does not read further requests
                // while too many wait.
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
                    return Err(CodeConversationError::Nonsense("its greeting twice"));
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
                "more printed text than allowed",
            ));
        }
        self.printed.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
