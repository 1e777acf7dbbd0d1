//! A module opened for a session, which runs the calls.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use toolpost_model::{
    BoxFuture, CallContext, CallInput, Effects, ErrorClass, LogLevel, SourceSession, ToolCall,
    ToolFailure, ToolId, ToolOutput,
};

use crate::{
    failure::InstanceFault, guest::GuestStopCondition, live::ComponentInstance,
    module::LoadedComponent, outcome::outcome, settings::InstanceUse, supervision::watched,
};

pub(crate) struct OpenModule {
    module: Arc<LoadedComponent>,
    kept: Mutex<SessionInstance>,
}

/// The instance that a session keeps, if it keeps one. The call that holds the lock runs on it.
#[derive(Default)]
enum SessionInstance {
    #[default]
    NoneYet,
    /// Boxed, since most sessions of most modules keep none.
    Ready(Box<ComponentInstance>),
    /// A call took the instance and did not return it.
    Lost,
}

impl OpenModule {
    pub(crate) fn new(module: Arc<LoadedComponent>) -> Self {
        Self {
            module,
            kept: Mutex::default(),
        }
    }

    async fn run(&self, tool: &ToolId, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let Some(name) = self.module.names.get(tool) else {
            return Err(
                ToolFailure::new(format!("`{tool}` is not a tool of this module")).untouched(),
            );
        };
        let input = json(call.input.arguments().value());
        let watch = GuestStopCondition {
            deadline: call.context.deadline(),
            context: Some(call.context),
        };
        let answer = match self.module.instances {
            InstanceUse::PerCall => self.on_a_fresh_one(name, &input, &watch).await,
            InstanceUse::PerSession => self.on_the_kept_one(name, &input, &watch).await?,
        };
        outcome(answer.map_err(InstanceFault::into_failure)?)
    }

    async fn on_a_fresh_one(
        &self,
        tool: &str,
        input: &[u8],
        watch: &GuestStopCondition,
    ) -> Result<Result<Vec<u8>, String>, InstanceFault> {
        let prepared = &self.module.prepared;
        let Some(place) = watched(prepared.modules.place(), watch, None).await? else {
            return Err(InstanceFault::outside(wasmtime::Error::msg(
                "the host is shutting down",
            )));
        };
        let span = watch.context.as_ref().map(CallContext::trace);
        let mut live = ComponentInstance::start(prepared, watch, place, span.as_ref()).await?;
        live.run(prepared, tool, input, watch).await
    }

    async fn on_the_kept_one(
        &self,
        tool: &str,
        input: &[u8],
        watch: &GuestStopCondition,
    ) -> Result<Result<Result<Vec<u8>, String>, InstanceFault>, ToolFailure> {
        let prepared = &self.module.prepared;
        let kept = watched(self.kept.lock(), watch, None).await;
        let mut kept: MutexGuard<'_, SessionInstance> =
            kept.map_err(|stopped| stopped.failure().untouched())?;
        // The instance is out of the slot while it runs, and `Lost` is in its place. A call that fails, or whose future
        // is dropped by a cancellation in the middle of the guest's code, leaves memory in an unknown state. It only
        // has to do nothing: the instance is dropped with it, and the next call starts a new one and logs a warning. To
        // return the instance in every case and check it afterwards would run later calls on broken state.
        let mut live = match std::mem::replace(&mut *kept, SessionInstance::Lost) {
            SessionInstance::Ready(mut live) => {
                live.renew(watch);
                live
            }
            before @ (SessionInstance::NoneYet | SessionInstance::Lost) => {
                let Some(place) = prepared.modules.kept_place() else {
                    *kept = before;
                    let message =
                        "too many sessions keep an instance of a component at the same time";
                    return Err(ToolFailure::of(ErrorClass::RateLimited, message).untouched());
                };
                if let (SessionInstance::Lost, Some(context)) = (before, &watch.context) {
                    let message = "an earlier call broke the instance of this session; this call starts a new one";
                    context.log(LogLevel::Warn, message);
                }
                match ComponentInstance::start(prepared, watch, place, None).await {
                    Ok(live) => Box::new(live),
                    Err(fault) => return Ok(Err(fault)),
                }
            }
        };
        let answer = live.run(prepared, tool, input, watch).await;
        if answer.is_ok() {
            *kept = SessionInstance::Ready(live);
        }
        Ok(answer)
    }
}

fn json(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

impl SourceSession for OpenModule {
    fn effects(&self, _tool: &ToolId, _input: &CallInput) -> Option<Effects> {
        Some(self.module.effects.clone())
    }

    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.run(tool, call))
    }

    fn close(&self) {
        // `close` cannot wait for the lock. If a call still holds it, the host cancels that call, which drops the
        // instance.
        if let Ok(mut kept) = self.kept.try_lock() {
            *kept = SessionInstance::NoneYet;
        }
    }
}
