//! One call of a module's tool, from the host's side: sent, heard, stopped with everything it started.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use toolpost_amplifier::{ToolResult, into_outcome};
use toolpost_model::{
    CallContext, Content, ErrorClass, ToolCall, ToolFailure, ToolId, ToolOutput, Truncation,
};

use super::{
    listing::{Listing, Place},
    process::{Bridge, NoAnswer, Pending, read},
    protocol::{CallResult, Cut, Order},
    seat::Seat,
    set::ModuleSet,
};

/// How long a call that was told to stop may take before its whole process is ended. The host drops a tool two seconds
/// after its deadline, and by then nothing of it may be left.
const GRACE: Duration = Duration::from_millis(1200);

/// Runs a call.
pub(super) async fn run(
    set: &Arc<ModuleSet>,
    seat: &Arc<Seat>,
    tool: &ToolId,
    call: ToolCall,
) -> Result<ToolOutput, ToolFailure> {
    let ToolCall { input, context } = call;
    let mounted = tokio::select! {
        mounted = seat.mounted(set) => mounted?,
        () = context.canceled() => {
            let message = "the call was told to stop while its module was being mounted";
            return Err(ToolFailure::of(ErrorClass::Canceled, message).untouched());
        }
    };
    let place = place_of(tool, &mounted.listing, &set.listing())?;
    let invocation = context.invocation_id().to_string();
    let order = Order::Call {
        mount: mounted.mount,
        module: &place.module,
        tool: &place.tool,
        arguments: input.arguments().value(),
        tool_call_id: &invocation,
    };
    let pending = mounted.bridge.call(order, &context);
    let mut running =
        Running { bridge: Arc::clone(&mounted.bridge), pending: Some(pending), what: tool.to_string() };
    let answer = running.until_answered(&context).await;
    let applied = mounted.bridge.applied.clone();
    match answer.and_then(|line| outcome(&line)) {
        Ok(output) => {
            mounted.bridge.works();
            Ok(output.confined(applied))
        }
        Err(failure) => Err(failure.confined(applied)),
    }
}

/// Where a session finds a tool: by what its own mount brought, else by what others brought.
fn place_of(tool: &ToolId, own: &Listing, all: &Listing) -> Result<Place, ToolFailure> {
    let unavailable =
        |message: String| Err(ToolFailure::of(ErrorClass::DependencyUnavailable, message).untouched());
    let Some(place) = own.places.get(tool).or_else(|| all.places.get(tool)) else {
        return unavailable(format!("`{tool}` is not offered by its module any more"));
    };
    match own.failure_of(&place.module) {
        Some(failure) if !own.places.contains_key(tool) => {
            unavailable(format!("`{}` is not there in this session: {}", place.module, failure.message))
        }
        Some(_) | None => Ok(place.clone()),
    }
}

/// A request under way. Dropped before its answer, it is stopped all the same.
pub(super) struct Running {
    pub(super) bridge: Arc<Bridge>,
    pub(super) pending: Option<Pending>,
    pub(super) what: String,
}

impl Running {
    async fn until_answered(&mut self, context: &CallContext) -> Result<Vec<u8>, ToolFailure> {
        let Some(pending) = &mut self.pending else { return Err(ToolFailure::new("it was sent nowhere")) };
        tokio::select! {
            biased;
            line = pending.line() => {
                self.pending = None;
                return line.map_err(NoAnswer::into_failure);
            }
            () = context.canceled() => {}
        }
        let Some(pending) = self.pending.take() else { return Err(ToolFailure::new("it was sent nowhere")) };
        // In a task of its own: what is begun here is done also if the host has no more patience.
        let stopping = tokio::spawn(stop(Arc::clone(&self.bridge), pending, self.what.clone()));
        match stopping.await {
            Ok(stopped) => stopped,
            Err(error) => Err(ToolFailure::from(error)),
        }
    }

    /// Waits for the answer, for whoever has no other way to be told to stop than being dropped.
    pub(super) async fn answered(&mut self) -> Result<Vec<u8>, NoAnswer> {
        let Some(pending) = &mut self.pending else {
            return Err(NoAnswer::Unreadable("it was sent nowhere".to_owned()));
        };
        let line = pending.line().await;
        self.pending = None;
        line
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(stop(Arc::clone(&self.bridge), pending, self.what.clone()));
        }
    }
}

/// Tells a request to stop, and ends the whole process where it does not.
async fn stop(bridge: Arc<Bridge>, mut pending: Pending, what: String) -> Result<Vec<u8>, ToolFailure> {
    bridge.cancel(pending.id);
    if let Ok(line) = timeout(GRACE, pending.line()).await {
        return line.map_err(NoAnswer::into_failure);
    }
    bridge.kill(format!("`{what}` did not stop when it was told to")).await;
    let message = "it did not stop when it was told to, and the process of its module was ended";
    Err(ToolFailure::of(ErrorClass::Canceled, message).code("module_process_ended"))
}

fn outcome(line: &[u8]) -> Result<ToolOutput, ToolFailure> {
    let CallResult { result, cut } = read(line).map_err(NoAnswer::into_failure)?;
    let result = ToolResult::parse(result.get()).map_err(|error| {
        ToolFailure::new(format!("the result of the tool does not fit the contract: {error}"))
            .code("bad_result")
    })?;
    let outcome = into_outcome(result);
    let Some(cut) = cut else { return outcome };
    let truncation = truncation(cut);
    let note = Content::text(format!("[{}]", truncation.hint.as_deref().unwrap_or_default()));
    match outcome {
        Ok(mut output) => {
            // Where nothing of the text came, what stands for it would say that there was none.
            output.content.retain(|_| cut.shown > 0);
            output.content.push(note);
            Ok(ToolOutput { truncated: Some(truncation), ..output })
        }
        Err(mut failure) => {
            failure.content.push(note);
            Err(ToolFailure { truncated: Some(Box::new(truncation)), ..failure })
        }
    }
}

fn truncation(cut: Cut) -> Truncation {
    let Cut { shown, total, content } = cut;
    let came = match content {
        0 => format!("the first {} of {} came", bytes(shown), bytes(total)),
        pieces => {
            format!("of {} came {} of text and none of its {pieces} other pieces", bytes(total), bytes(shown))
        }
    };
    Truncation {
        shown,
        total: Some(total),
        unit: "bytes".to_owned(),
        hint: Some(format!("{came}; the rest was dropped by the limit `amplifier.max_result`")),
        artifact: None,
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} bytes"),
        1024..0x10_0000 => format!("{} KiB", count >> 10),
        _ => format!("{}.{} MiB", count >> 20, ((count % (1 << 20)) * 10) >> 20),
    }
}
