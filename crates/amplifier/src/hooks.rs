//! Hooks of modules: what a handler answers, what that means for a call, and the registry that asks the handlers.

mod answer;
mod reading;
mod wants;

pub use answer::{
    Approval, ApprovalDefault, ContextInjection, ContextRole, HookAction, HookResult, MessageLevel,
    UnfitAnswer,
};
pub use wants::Wants;
