//! The terminal the program was started from, whatever its standard streams are.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    time::Duration,
};

use rustix::{
    fs::OFlags,
    process::getpgrp,
    termios::{QueueSelector, tcflush, tcgetpgrp},
};
use tokio::io::{Interest, unix::AsyncFd};

/// The longest line that is taken.
const MAX_LINE: usize = 64 << 10;
/// How often a program in the background looks whether it was brought to the front.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The controlling terminal, read without holding up a thread.
pub(crate) struct Tty {
    // Opened anew: switching one's own descriptor does not touch those of whoever else uses the terminal.
    file: AsyncFd<File>,
    typed: Vec<u8>,
}

/// What came from the terminal.
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-D on an empty line.
    Nothing,
}

impl Tty {
    /// The terminal, where there is one. Must be called within a runtime.
    pub(crate) fn open() -> Option<Self> {
        let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).ok()?;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty").ok()?;
        Some(Self { file: AsyncFd::new(file).ok()?, typed: Vec::new() })
    }

    /// Writes all of a text.
    pub(crate) async fn say(&self, text: &str) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = self.file.async_io(Interest::WRITABLE, |mut file| file.write(rest)).await?;
            rest = &rest[written..];
        }
        Ok(())
    }

    /// Forgets what was typed before: it cannot have been meant for what is asked now.
    pub(crate) fn forget_typed(&mut self) {
        self.typed.clear();
        // One that cannot be flushed gives its error when it is read.
        let _ = tcflush(self.file.get_ref(), QueueSelector::IFlush);
    }

    /// The next line. May be dropped and asked again without losing anything.
    pub(crate) async fn line(&mut self) -> io::Result<Typed> {
        loop {
            if let Some(end) = self.typed.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.typed.drain(..=end).collect();
                return Ok(Typed::Line(String::from_utf8_lossy(&line).trim().to_owned()));
            }
            let mut ready = self.file.readable().await?;
            // Reading in the background would stop the whole program.
            if !is_in_front(self.file.get_ref()) {
                drop(ready);
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
            let mut piece = [0; 4_096];
            match ready.try_io(|file| file.get_ref().read(&mut piece)) {
                Ok(Ok(0)) => return Ok(Typed::Nothing),
                Ok(Ok(length)) => self.typed.extend_from_slice(&piece[..length]),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                // It was not ready after all.
                Err(_) => {}
            }
            if self.typed.len() > MAX_LINE {
                self.typed.clear();
            }
        }
    }
}

fn is_in_front(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}
