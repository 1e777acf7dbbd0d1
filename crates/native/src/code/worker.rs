//! The process that runs code: this program again, started as `<program> __code-worker`, with an empty environment
//! and one end of a socket as its standard input.
//!
//! Before it reads a byte it gives up files, network and new processes for good. What the code can do then is
//! compute, and ask over the socket.

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

/// The argument that makes a program a worker.
pub(super) const ARGUMENT: &str = "__code-worker";
/// Room for deeply nested code; pages that are not used cost nothing.
const STACK_BYTES: u64 = 64 << 20;
/// How much more than the run's own limit the process may have, so that a run meets its own first: that one ends with
/// a traceback, the process's with a corpse.
const HEADROOM_BYTES: u64 = STACK_BYTES + (32 << 20);

/// Becomes a worker, and never returns, where this process was started as one. To be called first in `main`, before
/// there are threads.
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
        // Without Landlock the filter alone keeps files closed, which it does.
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
            // The answer to a call that the run before did not wait for.
            CodeHostFrame::Answer { .. } => {}
        }
    }
}

/// Where this fails, deep recursion ends the worker instead of the run.
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
