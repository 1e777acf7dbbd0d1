//! Hooks of modules: what a handler answers, what that means for a call, and the registry that asks the handlers.

mod answer;
mod gathering;
mod reading;
mod registry;
mod wants;

pub use answer::{
    ApprovalDefault, ContextInjection, ContextRole, HookAction, HookApprovalQuestion, HookResult,
    MessageLevel, UnfitAnswer,
};
pub use gathering::HookResultCollector;
pub use registry::{HookFailure, HookHandler, HookRegistration, HookRegistry, RegisteredHandler};
pub use wants::HookDemands;
