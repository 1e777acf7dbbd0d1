//! Hooks of modules: the handlers' answers, their effect on a call, and the registry that runs the handlers.

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
