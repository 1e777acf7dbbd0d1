//! The terminal that the program was started from, independent of the standard streams.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal as _, Read, Write},
    os::unix::fs::OpenOptionsExt,
    time::Duration,
};

use rustix::{
    fs::OFlags,
    process::getpgrp,
    termios::{QueueSelector, tcflush, tcgetpgrp},
};

/// The longest line that is read.
const MAX_LINE: usize = 64 << 10;
/// The polling interval of a terminal with a question. Typing is slower than this.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The controlling terminal, in non-blocking mode: a stopped terminal must not stop the host.
pub(crate) struct ControllingTerminal {
    // Opened anew: a change of this descriptor's mode does not affect other users of the terminal.
    file: File,
    typed: Vec<u8>,
}

/// Input from the terminal.
pub(crate) enum TerminalInput {
    /// A line, without its end.
    Line(String),
    /// Ctrl-D on an empty line.
    Nothing,
}

impl ControllingTerminal {
    /// The terminal, if there is one and stderr is shown on it: a prompt would otherwise appear in the middle of
    /// another program's screen.
    pub(crate) fn open() -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).ok()?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open("/dev/tty")
            .ok()?;
        Some(Self {
            file,
            typed: Vec::new(),
        })
    }

    /// Writes a whole text.
    pub(crate) async fn write_text(&self, text: &str) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match (&self.file).write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) => wait_until_ready(error).await?,
            }
        }
        Ok(())
    }

    /// Drops input that was typed before the question was shown: it cannot be an answer to it.
    pub(crate) fn discard_typed_input(&mut self) {
        self.typed.clear();
        // If the flush fails, the next read reports the error.
        let _ = tcflush(&self.file, QueueSelector::IFlush);
    }

    /// The next line. Dropping this future loses nothing.
    pub(crate) async fn read_line(&mut self) -> io::Result<TerminalInput> {
        loop {
            if let Some(end) = self.typed.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.typed.drain(..=end).collect();
                return Ok(TerminalInput::Line(
                    String::from_utf8_lossy(&line).trim().to_owned(),
                ));
            }
            if self.typed.len() > MAX_LINE {
                self.typed.clear();
            }
            // The kernel answers a read from a background process with a signal that stops the whole process, so the
            // host would hang until the user brings it to the foreground.
            if !is_in_front(&self.file) {
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
            let mut piece = [0; 4_096];
            match (&self.file).read(&mut piece) {
                Ok(0) => return Ok(TerminalInput::Nothing),
                Ok(length) => self.typed.extend_from_slice(&piece[..length]),
                Err(error) => wait_until_ready(error).await?,
            }
        }
    }
}

/// Waits a little if the terminal was only not ready.
async fn wait_until_ready(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => {
            tokio::time::sleep(LOOK_AGAIN).await;
            Ok(())
        }
        _ => Err(error),
    }
}

fn is_in_front(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}
