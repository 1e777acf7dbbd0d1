//! The cancellation of a session. The holder of the switch triggers it; modules observe it.

use std::sync::Arc;

use parking_lot::Mutex;

type CancellationCallback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct ModuleCancellationState {
    is_canceled: bool,
    callbacks: Vec<CancellationCallback>,
}

/// The observable side of a cancellation.
#[derive(Clone, Default)]
pub struct ModuleCancellation(Arc<Mutex<ModuleCancellationState>>);

/// Triggers a cancellation.
#[derive(Clone)]
pub struct CancelSwitch(ModuleCancellation);

impl ModuleCancellation {
    /// Whether the session was canceled.
    pub fn is_canceled(&self) -> bool {
        self.0.lock().is_canceled
    }

    /// Calls back on cancellation, or at once if it has happened.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock();
        if !state.is_canceled {
            state.callbacks.push(Box::new(callback));
            return;
        }
        drop(state);
        callback();
    }
}

impl CancelSwitch {
    /// A switch and its cancellation.
    pub fn new() -> (Self, ModuleCancellation) {
        let cancellation = ModuleCancellation::default();
        (Self(cancellation.clone()), cancellation)
    }

    /// Cancels the session. A second call has no effect.
    pub fn cancel(&self) {
        // The callbacks run after the lock is released. A callback may itself ask whether the session is canceled or
        // register another callback, and the lock is not reentrant. Taking them out also keeps a second cancellation
        // from running them again.
        let callbacks = {
            let mut state = self.0.0.lock();
            state.is_canceled = true;
            std::mem::take(&mut state.callbacks)
        };
        callbacks.into_iter().for_each(|callback| callback());
    }
}
