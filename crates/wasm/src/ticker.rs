//! A thread that advances the engine's epoch while calls run. A host can stop a guest that computes and never waits
//! only by the epoch.

use std::{io, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex};
use wasmtime::Engine;

/// How long a guest computes before the epoch callback runs and it yields.
const TICK: Duration = Duration::from_millis(10);
/// Ticks without a call before the thread sleeps, so that a call shortly after another does not have to wake it.
const PATIENCE: u32 = 10;

/// The handle of the thread. The thread sleeps while no call runs, and ends when this is dropped.
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

    /// Keeps the epoch advancing until the returned value is dropped.
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

/// The epoch advances while this exists.
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
