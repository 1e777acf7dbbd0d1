//! The pulse that lets a host stop a guest which computes and never waits: it moves the engine's epoch on, while calls run.

use std::{io, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex};
use wasmtime::Engine;

/// How long a guest may compute before it lets others run and is looked at.
const TICK: Duration = Duration::from_millis(10);
/// Ticks without a call before the thread sleeps: calls that follow one another need not wake it each time.
const PATIENCE: u32 = 10;

/// The thread that ticks. It sleeps while nothing runs, and ends with this.
pub(crate) struct EpochTicker(Arc<TickerSignal>);

struct TickerSignal {
    state: Mutex<TickerState>,
    wake: Condvar,
}

#[derive(Default)]
struct TickerState {
    running: usize,
    asleep: bool,
    ended: bool,
}

impl EpochTicker {
    pub(crate) fn start(engine: &Engine) -> io::Result<Self> {
        let shared = Arc::new(TickerSignal {
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let engine = engine.clone();
        thread::Builder::new()
            .name("wasm-ticker".to_owned())
            .spawn(move || of_thread.tick(&engine))?;
        Ok(Self(shared))
    }

    /// Ticks at least until the answer is dropped.
    pub(crate) fn run(&self) -> EpochTicking {
        let mut state = self.0.state.lock();
        state.running += 1;
        if state.asleep {
            self.0.wake.notify_one();
        }
        drop(state);
        EpochTicking(Arc::clone(&self.0))
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.wake.notify_one();
    }
}

/// While this lives, the epoch moves.
pub(crate) struct EpochTicking(Arc<TickerSignal>);

impl Drop for EpochTicking {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
    }
}

impl TickerSignal {
    fn tick(&self, engine: &Engine) {
        let mut idle = 0;
        loop {
            let mut state = self.state.lock();
            idle = if state.running == 0 { idle + 1 } else { 0 };
            while state.running == 0 && idle > PATIENCE && !state.ended {
                state.asleep = true;
                self.wake.wait(&mut state);
            }
            state.asleep = false;
            if state.ended {
                return;
            }
            drop(state);
            thread::sleep(TICK);
            engine.increment_epoch();
        }
    }
}
