//! The terminal the program was started from, whatever its standard streams are.

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

/// The longest line that is taken.
const MAX_LINE: usize = 64 << 10;
/// How often a terminal with a question on it is looked at. Nobody types so fast that this would show.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The controlling terminal, read and written without ever waiting for it: a terminal that is stopped must not stop
/// the host.
pub(crate) struct ControllingTerminal {
    // Opened anew: switching one's own descriptor does not touch those of whoever else uses the terminal.
    file: File,
    typed: Vec<u8>,
}

/// What came from the terminal.
pub(crate) enum TerminalInput {
    /// A line, without its end.
    Line(String),
    /// Ctrl-D on an empty line.
    Nothing,
}

impl ControllingTerminal {
    /// The terminal, where there is one and this program's own words are shown on it: what is asked there would
    /// otherwise land in the middle of another program's screen.
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

    /// Writes all of a text.
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

    /// Forgets what was typed before: it cannot have been meant for what is asked now.
    pub(crate) fn discard_typed_input(&mut self) {
        self.typed.clear();
        // One that cannot be flushed gives its error when it is read.
        let _ = tcflush(&self.file, QueueSelector::IFlush);
    }

    /// The next line. May be dropped and asked again without losing anything.
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
            // Reading in the background would stop the whole program.
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

/// Waits a little where the terminal was only not ready.
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
