//! Hooks of modules: what a handler answers, what that means for a call, and the registry that asks the handlers.

mod answer;
mod gathering;
mod reading;
mod registry;
mod wants;

pub use answer::{
    Approval, ApprovalDefault, ContextInjection, ContextRole, HookAction, HookResult, MessageLevel,
    UnfitAnswer,
};
pub use gathering::Gathering;
pub use registry::{Handler, HookFailure, HookHandler, HookRegistry, Registration};
pub use wants::Wants;
