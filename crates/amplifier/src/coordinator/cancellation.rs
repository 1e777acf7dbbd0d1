//! Being told to stop. Whoever holds the switch can say so; modules can only look, or be called.

use std::sync::Arc;

use parking_lot::Mutex;

type CancellationCallback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct ModuleCancellationState {
    is_canceled: bool,
    callbacks: Vec<CancellationCallback>,
}

/// Whether somebody said stop.
#[derive(Clone, Default)]
pub struct ModuleCancellation(Arc<Mutex<ModuleCancellationState>>);

/// Says stop.
#[derive(Clone)]
pub struct CancelSwitch(ModuleCancellation);

impl ModuleCancellation {
    /// Whether somebody did.
    pub fn is_canceled(&self) -> bool {
        self.0.lock().is_canceled
    }

    /// Calls back when somebody does; at once where somebody has.
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
    /// A switch, and what it switches.
    pub fn new() -> (Self, ModuleCancellation) {
        let cancellation = ModuleCancellation::default();
        (Self(cancellation.clone()), cancellation)
    }

    /// Says stop. Said twice, it changes nothing.
    pub fn cancel(&self) {
        let callbacks = {
            let mut state = self.0.0.lock();
            state.is_canceled = true;
            std::mem::take(&mut state.callbacks)
        };
        callbacks.into_iter().for_each(|callback| callback());
    }
}
