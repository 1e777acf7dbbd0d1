//! The worker's end of the socket. It buffers printed text and measures memory, because the interpreter calls it every
//! few hundred instructions.

use std::{
    borrow::Cow,
    io::{Read, Write},
    os::unix::net::UnixStream,
    process,
    time::{Duration, Instant},
};

use monty_types::{MontyException, PrintWriter, PrintWriterCallback};

use super::gauge::MemoryGauge;
use crate::code::frame::{
    CodeHostFrame, CodeWorkerFrame, ORDER_BYTES, REPORT_BYTES, decode, encode,
};

/// Printed text is sent when this much is buffered …
const PRINTED_AT_ONCE: usize = 8 << 10;
/// … or when it was buffered for this long, so that the output of a run that is killed is not lost.
const PRINTED_WAITS: Duration = Duration::from_millis(20);
/// How many calls of the interpreter pass between two measurements: some thousand instructions.
const LOOKS: u32 = 16;

/// The connection to the host. If it breaks, the host is gone and the worker exits.
pub(super) struct CodeHostConnection {
    socket: UnixStream,
    incoming: Vec<u8>,
    printed: String,
    /// How many bytes may still be printed.
    room: usize,
    unprinted: u64,
    printed_since: Option<Instant>,
    gauge: MemoryGauge,
    looks: u32,
}

impl CodeHostConnection {
    pub(super) fn new(socket: UnixStream, gauge: MemoryGauge) -> Self {
        Self {
            socket,
            incoming: Vec::new(),
            printed: String::new(),
            room: 0,
            unprinted: 0,
            printed_since: None,
            gauge,
            looks: 0,
        }
    }

    /// Resets the state for a new run.
    pub(super) fn begin(&mut self, printed_bytes: usize) {
        self.printed.clear();
        self.room = printed_bytes;
        self.unprinted = 0;
        self.printed_since = None;
        self.gauge.begin();
    }

    /// Printed bytes that were not sent.
    pub(super) fn unprinted(&self) -> u64 {
        self.unprinted
    }

    /// Whether earlier runs hold a considerable part of the memory of the next one.
    pub(super) fn is_worn(&self, memory: u64) -> bool {
        self.gauge.grown() as u64 > memory / 8
    }

    /// The interpreter's output.
    pub(super) fn printer(&mut self) -> PrintWriter<'_> {
        PrintWriter::Callback(self)
    }

    /// Sends the buffered output, then `report`.
    pub(super) fn send(&mut self, report: &CodeWorkerFrame) {
        self.flush();
        self.write(report);
    }

    /// Waits for a frame of the host.
    pub(super) fn receive(&mut self) -> CodeHostFrame {
        loop {
            match decode(&self.incoming, ORDER_BYTES) {
                Ok(Some((order, taken))) => {
                    self.incoming.drain(..taken);
                    return order;
                }
                Ok(None) => self.fill(),
                Err(_) => process::exit(1),
            }
        }
    }

    fn fill(&mut self) {
        let mut chunk = [0; 64 << 10];
        match self.socket.read(&mut chunk) {
            Ok(0) | Err(_) => process::exit(0),
            Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
        }
    }

    fn flush(&mut self) {
        if !self.printed.is_empty() {
            let text = std::mem::take(&mut self.printed);
            self.write(&CodeWorkerFrame::Printed { text });
        }
        self.printed_since = None;
    }

    fn write(&mut self, report: &CodeWorkerFrame) {
        let sent = encode(report, REPORT_BYTES)
            .ok()
            .map(|frame| self.socket.write_all(&frame));
        if !matches!(sent, Some(Ok(()))) {
            process::exit(1);
        }
    }

    fn print(&mut self, text: &str) {
        let fits = text.len().min(self.room);
        let end = text.floor_char_boundary(fits);
        self.unprinted += (text.len() - end) as u64;
        // After a gap, later text must not follow as if the output were complete.
        self.room = if end < text.len() { 0 } else { self.room - end };
        if end == 0 {
            return;
        }
        self.printed.push_str(&text[..end]);
        self.printed_since.get_or_insert_with(Instant::now);
        if self.printed.len() >= PRINTED_AT_ONCE {
            self.flush();
        }
    }
}

impl PrintWriterCallback for CodeHostConnection {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.print(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.print(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn poll_flush(&mut self) -> Result<(), MontyException> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS) {
            self.gauge.look();
            if self
                .printed_since
                .is_some_and(|since| since.elapsed() > PRINTED_WAITS)
            {
                self.flush();
            }
        }
        Ok(())
    }
}
