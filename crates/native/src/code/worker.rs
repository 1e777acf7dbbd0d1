//! The process that runs code: this program again, started as `<program> __code-worker` with an empty environment and
//! one end of a socket as its standard input.
//!
//! Before it reads a byte it gives up files, network and new processes for good. After that, the code can only compute
//! and send requests over the socket. A step that fails is reported and ends the process: a worker that is locked down
//! only in part never reads code.

mod clock;
mod files;
mod gauge;
mod outlet;
mod run;
mod value;

use std::{ffi::OsString, os::unix::net::UnixStream, process};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    stdio::stdin,
};

use self::{gauge::MemoryGauge, outlet::CodeHostConnection};
use super::frame::{CodeHostFrame, CodeWorkerFrame};

/// The argument that starts a program as a worker.
pub(super) const ARGUMENT: &str = "__code-worker";
/// Stack for deeply nested code. Unused pages cost nothing.
const STACK_BYTES: u64 = 64 << 20;
/// How much more memory than the run's limit the process may have. The run reaches its own limit first, which ends it
/// with a traceback; the limit of the process kills the worker.
const HEADROOM_BYTES: u64 = STACK_BYTES + (32 << 20);

/// Becomes a worker, and never returns, if this process was started as one. Call it first in `main`, before there are
/// threads.
pub fn code_worker_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        let memory = arguments.next().as_ref().and_then(bytes).unwrap_or(0);
        work(memory);
    }
}

fn bytes(text: &OsString) -> Option<u64> {
    text.to_str()?.parse().ok()
}

fn work(memory: u64) -> ! {
    let Ok(socket) = stdin().try_clone_to_owned() else {
        process::exit(1)
    };
    let mut outlet = CodeHostConnection::new(UnixStream::from(socket), MemoryGauge::new());
    raise_stack_limit();
    match toolpost_sandbox::lock_down(memory.saturating_add(HEADROOM_BYTES)) {
        // Without Landlock the system call filter alone prevents the opening of files.
        Ok(_) => outlet.send(&CodeWorkerFrame::Ready),
        Err(error) => {
            outlet.send(&CodeWorkerFrame::Unfit {
                reason: error.to_string(),
            });
            process::exit(1);
        }
    }
    loop {
        match outlet.receive() {
            CodeHostFrame::Run(order) => {
                let ending = run::run(&mut outlet, *order);
                let unprinted = outlet.unprinted();
                let worn = outlet.is_worn(memory);
                outlet.send(&CodeWorkerFrame::Ended {
                    ending,
                    unprinted,
                    worn,
                });
            }
            // The answer to a call that the previous run did not wait for.
            CodeHostFrame::Answer { .. } => {}
        }
    }
}

/// If this fails, deep recursion ends the worker instead of the run.
fn raise_stack_limit() {
    let limit = getrlimit(Resource::Stack);
    let current = limit
        .maximum
        .map_or(STACK_BYTES, |most| most.min(STACK_BYTES));
    let _ = setrlimit(
        Resource::Stack,
        Rlimit {
            current: Some(current),
            maximum: limit.maximum,
        },
    );
}
