//! Messages over the pipes of a program: one per line, and no line longer than the operator allows. A line that is too
//! long ends the connection, because it may have been an answer, and its call would wait for ever. A line that is not
//! a message is counted.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe::{Receiver, Sender},
    sync::Mutex,
};

use super::{UpstreamWire, message::UpstreamMessage};

/// How much is read at a time.
const PIECE: usize = 16 << 10;

/// The input of a program. Empty once it is closed.
pub(super) struct ProgramInput(Arc<Mutex<Option<Sender>>>);

impl ProgramInput {
    pub(super) fn new(writing: Sender) -> Self {
        Self(Arc::new(Mutex::new(Some(writing))))
    }

    /// Writes a whole line, even if the future is dropped in the middle: the rest of a line that does not fit into the
    /// pipe at once is written by a task of its own. Half a line would join with the next message and spoil it.
    /// `begin` is called before the first byte.
    pub(super) async fn write(&self, mut line: Vec<u8>, begin: impl FnOnce()) -> io::Result<()> {
        line.push(b'\n');
        let mut input = Arc::clone(&self.0).lock_owned().await;
        let closed = || io::Error::new(io::ErrorKind::NotConnected, "its input is closed");
        begin();
        let written = match input.as_ref().ok_or_else(closed)?.try_write(&line) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        if written == line.len() {
            return Ok(());
        }
        let rest = tokio::spawn(async move {
            let input = input.as_mut().ok_or_else(closed)?;
            input.write_all(&line[written..]).await
        });
        rest.await.map_err(io::Error::other)?
    }

    pub(super) async fn close(&self) {
        drop(self.0.lock().await.take());
    }
}

/// Reads the program's output until it ends or a line is too long.
pub(super) async fn read(mut reading: Receiver, longest: usize, wire: Arc<UpstreamWire>) {
    let mut buffer = BytesMut::new();
    // How much of the buffer was searched for the end of a line.
    let mut searched = 0;
    loop {
        let end = buffer[searched..].iter().position(|byte| *byte == b'\n');
        if let Some(end) = end {
            let line = buffer.split_to(searched + end + 1).freeze();
            searched = 0;
            take_line(&line, &wire);
            continue;
        }
        searched = buffer.len();
        if searched > longest {
            let why = format!("it wrote a message of more than {longest} bytes");
            return wire.desk.end(&why);
        }
        buffer.reserve(PIECE);
        if !matches!(reading.read_buf(&mut buffer).await, Ok(length) if length > 0) {
            return;
        }
    }
}

fn take_line(line: &Bytes, wire: &Arc<UpstreamWire>) {
    let line = line.trim_ascii();
    if line.is_empty() {
        return;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return wire.desk.nuisance("lines that are not JSON");
    };
    match UpstreamMessage::read(message) {
        Some(message) => wire.route(message, None),
        None => wire.desk.nuisance("JSON that is not a message"),
    }
}
