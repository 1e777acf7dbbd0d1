//! The failure of a component: its cause as a fault, for callers and for the operator.

use toolpost_model::{ErrorClass, ResultContent, ToolFailure};
use wasmtime::{Store, Trap};
use wasmtime_wasi::I32Exit;

use crate::{
    guest::{GuestContext, HANDED_OVER},
    supervision::GuestStopReason,
};

const TOO_LARGE: &str = "wasm_too_large";
const MORE_MEMORY: &str = "the operator can raise the limit: `amplifier.wasm.<module>.memory`";

/// A fault of an instance. The instance is not used again after one.
#[derive(Debug)]
pub(crate) enum InstanceFault {
    /// The host stopped it.
    Stopped(GuestStopReason),
    /// It trapped or misused the interface.
    Broken(GuestFailure),
    /// It refused its configuration.
    Configuration(String),
    /// A function has another type than the world declares.
    Misfit {
        function: &'static str,
        error: wasmtime::Error,
    },
    /// A resource that the operator granted is not available.
    Outside(wasmtime::Error),
}

/// The failure of a guest, with the end of its standard error.
#[derive(Debug)]
pub(crate) struct GuestFailure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
    pub(crate) said: String,
}

impl From<GuestStopReason> for InstanceFault {
    fn from(stopped: GuestStopReason) -> Self {
        Self::Stopped(stopped)
    }
}

impl InstanceFault {
    pub(crate) fn outside(error: wasmtime::Error) -> Self {
        Self::Outside(error)
    }

    /// Maps an error of the engine to a fault. The store holds the reason if the host refused memory or stopped the
    /// guest.
    pub(crate) fn inside(error: &wasmtime::Error, store: &mut Store<GuestContext>) -> Self {
        let guest = store.data_mut();
        let said = guest.output.finish();
        let refused = guest.limits.take_refused();
        let trap = error.downcast_ref::<Trap>().copied();
        if trap == Some(Trap::Interrupt) {
            let canceled = guest.watch.is_canceled();
            return Self::Stopped(if canceled {
                GuestStopReason::Canceled
            } else {
                GuestStopReason::TimedOut
            });
        }
        let (code, message, hint) = if let Some(I32Exit(status)) = error.downcast_ref() {
            (
                "wasm_exit",
                format!("the component exited with status {status}"),
                None,
            )
        } else if let Some(most) = refused {
            let memory = most.div_ceil(1024 * 1024);
            let message = format!("the component exceeded its limit of {memory} MiB of memory");
            ("wasm_out_of_memory", message, Some(MORE_MEMORY))
        } else if trap == Some(Trap::StackOverflow) {
            (
                "wasm_stack_overflow",
                "the stack of the component overflowed".to_owned(),
                None,
            )
        } else if is_too_much(error) {
            let most = HANDED_OVER / (1024 * 1024);
            let message = format!("the component passed more than {most} MiB at once");
            (TOO_LARGE, message, None)
        } else if let Some(trap) = trap {
            let trap = trap.to_string();
            let trap = trap.strip_prefix("wasm trap: ").unwrap_or(&trap);
            ("wasm_trap", format!("the component trapped: {trap}"), None)
        } else {
            (
                "wasm_failed",
                format!("the component failed: {}", root(error)),
                None,
            )
        };
        Self::Broken(GuestFailure {
            code,
            message,
            hint,
            said,
        })
    }

    /// The failure for the caller.
    pub(crate) fn into_failure(self) -> ToolFailure {
        match self {
            Self::Stopped(stopped) => stopped.failure(),
            Self::Broken(GuestFailure {
                code,
                message,
                hint,
                said,
            }) => {
                let class = match code {
                    TOO_LARGE => ErrorClass::ResultTooLarge,
                    _ => ErrorClass::ExecutionFailed,
                };
                let mut failure = ToolFailure::of(class, message).code(code);
                failure.hint = hint.map(str::to_owned);
                if !said.is_empty() {
                    failure.content = vec![ResultContent::text(format!(
                        "standard error of the component:\n{said}"
                    ))];
                }
                failure
            }
            Self::Configuration(text) => {
                let message = format!("the module does not accept its configuration: {text}");
                ToolFailure::of(ErrorClass::SetupRequired, message)
                    .code("wasm_configuration")
                    .untouched()
            }
            Self::Misfit { .. } | Self::Outside(_) => {
                ToolFailure::of(ErrorClass::DependencyUnavailable, self.told())
                    .code("wasm_failed")
                    .untouched()
            }
        }
    }

    /// The message for the operator when a module is loaded.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Stopped(_) => "it did not answer in time".to_owned(),
            Self::Broken(GuestFailure {
                message,
                said,
                hint,
                ..
            }) => {
                let said = if said.is_empty() {
                    String::new()
                } else {
                    format!("; standard error: {said}")
                };
                let hint = hint
                    .map(|hint| format!("\nhint: {hint}"))
                    .unwrap_or_default();
                format!("{message}{said}{hint}")
            }
            Self::Configuration(text) => format!("it does not accept its configuration: {text}"),
            Self::Misfit { function, error } => {
                format!(
                    "the type of its function `{function}` does not match the world: {}",
                    root(error)
                )
            }
            Self::Outside(error) => format!("its instance cannot be created: {}", root(error)),
        }
    }
}

/// The engine has no public type for this error, so its text is compared.
fn is_too_much(error: &wasmtime::Error) -> bool {
    root(error).contains("hostcalls has been exhausted")
}

/// The innermost cause. The layers around it name functions and addresses of the guest.
fn root(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}
