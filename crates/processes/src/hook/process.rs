//! A hook's process from its start to its end.

use std::{pin::pin, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe::{Receiver, Sender},
    time::timeout,
};
use toolpost_core::HookError;
use toolpost_sandbox::{CommandExit, SandboxedProcess};

/// The most bytes of either stream. Hooks answer with a small object.
pub(crate) const MOST: usize = 64 * 1024;
/// How long to read after the program has ended. A child of it may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(250);

/// The exit and output of a program.
pub(crate) struct HookProcessOutput {
    pub(crate) ended: CommandExit,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs the program to its end, and kills all its remaining processes. Dropping this future kills them, too, which is
/// how a time limit ends a program.
pub(crate) async fn run(
    process: &mut SandboxedProcess,
    input: Vec<u8>,
) -> Result<HookProcessOutput, HookError> {
    let stdout = HookOutputBuffer::default();
    let stderr = HookOutputBuffer::default();
    let work = {
        let stdin = process.take_stdin();
        let out = process.take_stdout();
        let err = process.take_stderr();
        async {
            // Writing the input may never end, because a program need not read it. Only its output decides.
            tokio::join!(feed(stdin, &input), stdout.read(out), stderr.read(err));
        }
    };
    let mut work = pin!(work);
    let mut is_over = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = process.wait() => break ended,
            () = stdout.overflow.notified() => break process.kill().await,
            () = stderr.overflow.notified() => break process.kill().await,
            () = &mut work, if !is_over => is_over = true,
        }
    };
    if !is_over {
        is_over = timeout(DRAIN, &mut work).await.is_ok();
    }
    process.kill().await;
    if !is_over {
        // No process holds the pipes any more, so the rest of the output is there now.
        let _ = timeout(DRAIN, work).await;
    }
    Ok(HookProcessOutput {
        ended,
        stdout: stdout.taken("standard output")?,
        stderr: stderr.taken("standard error")?,
    })
}

async fn feed(stdin: Option<Sender>, input: &[u8]) {
    if let Some(mut pipe) = stdin {
        // A program closes the pipe when it has read enough.
        let _ = pipe.write_all(input).await;
    }
}

/// The output of one stream so far.
#[derive(Default)]
struct HookOutputBuffer {
    bytes: Mutex<Vec<u8>>,
    overflow: tokio::sync::Notify,
}

impl HookOutputBuffer {
    async fn read(&self, pipe: Option<Receiver>) {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let Some(length) = pipe
                .read(&mut buffer)
                .await
                .ok()
                .filter(|length| *length > 0)
            else {
                return;
            };
            let mut bytes = self.bytes.lock();
            bytes.extend_from_slice(&buffer[..length]);
            if bytes.len() > MOST {
                self.overflow.notify_one();
                return;
            }
        }
    }

    fn taken(&self, name: &str) -> Result<Vec<u8>, HookError> {
        let bytes = std::mem::take(&mut *self.bytes.lock());
        if bytes.len() > MOST {
            return Err(HookError(format!(
                "it wrote more than {} KiB to {name}",
                MOST / 1024
            )));
        }
        Ok(bytes)
    }
}
