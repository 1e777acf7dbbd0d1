//! One call of a module's tool on the host's side: sending, waiting for the answer, stopping it with everything it
//! started.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use toolpost_amplifier::{ToolResult, into_outcome};
use toolpost_model::{
    ArtifactError, ArtifactRef, CallContext, ErrorClass, LogLevel, ResultContent, ToolCall,
    ToolFailure, ToolId, ToolOutput, Truncation,
};

use super::{
    listing::{BridgeToolAddress, ModuleSetListing},
    plugin,
    process::{BridgeProcess, NoAnswer, PendingBridgeAnswer, read},
    protocol::{BridgeCallReply, BridgeOrder, BridgePieceReply, BridgeResultTruncation},
    seat::{SessionMount, SessionMountKeeper},
    set::ModuleSet,
};

/// How long a canceled call may take before its whole process is ended. A module that blocks its event loop never sees
/// the cancellation, and its call is still answered within a second of its deadline.
const GRACE: Duration = Duration::from_millis(700);

/// The size of the preview of a result that is kept as a whole, in bytes.
const PREVIEW: usize = 4 << 10;

/// Runs a call.
pub(super) async fn run(
    set: &Arc<ModuleSet>,
    seat: &Arc<SessionMountKeeper>,
    tool: &ToolId,
    call: ToolCall,
) -> Result<ToolOutput, ToolFailure> {
    let ToolCall { input, context } = call;
    let mounted = mounted_for(set, seat, &context).await?;
    let place = place_of(tool, &mounted.listing, &set.listing())?;
    let invocation = context.invocation_id().to_string();
    let span = context.trace();
    let order = BridgeOrder::Call {
        mount: mounted.mount,
        module: &place.module,
        tool: &place.tool,
        arguments: input.arguments().value(),
        tool_call_id: &invocation,
        timeout: context
            .deadline()
            .saturating_duration_since(Instant::now())
            .as_secs()
            .max(1),
        trace: &span,
    };
    let (id, answer) = send(&mounted, order, &context, tool.to_string()).await;
    let applied = mounted.bridge.applied.clone();
    let outcome = match answer {
        Ok(line) => outcome(&line, id, &mounted.bridge, &context).await,
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(output) => {
            mounted.bridge.works();
            Ok(output.confined(applied))
        }
        Err(failure) => Err(failure.confined(applied)),
    }
}

/// The mount of the session, made if there is none.
pub(super) async fn mounted_for(
    set: &Arc<ModuleSet>,
    seat: &Arc<SessionMountKeeper>,
    context: &CallContext,
) -> Result<SessionMount, ToolFailure> {
    tokio::select! {
        mounted = seat.mounted(set) => mounted,
        () = context.canceled() => {
            let message = "the call was canceled while its module was being mounted";
            Err(ToolFailure::of(ErrorClass::Canceled, message).untouched())
        }
    }
}

/// Sends an order on behalf of a call, and waits for the answer or for the call's cancellation. Returns the answer and
/// the number of the order.
pub(super) async fn send(
    mounted: &SessionMount,
    order: BridgeOrder<'_>,
    context: &CallContext,
    what: String,
) -> (u64, Result<Vec<u8>, ToolFailure>) {
    let pending = mounted.bridge.call(order, context);
    let id = pending.id;
    let mut running = RunningBridgeRequest {
        bridge: Arc::clone(&mounted.bridge),
        pending: Some(pending),
        what,
    };
    (id, running.until_answered(context).await)
}

/// The mount in which a session finds a tool: its own mount first, then the mounts of other sessions.
fn place_of(
    tool: &ToolId,
    own: &ModuleSetListing,
    all: &ModuleSetListing,
) -> Result<BridgeToolAddress, ToolFailure> {
    let unavailable = |message: String| {
        Err(ToolFailure::of(ErrorClass::DependencyUnavailable, message).untouched())
    };
    let Some(place) = own.places.get(tool).or_else(|| all.places.get(tool)) else {
        return unavailable(format!("`{tool}` is no longer offered by its module"));
    };
    match own.failure_of(&place.module) {
        Some(failure) if !own.places.contains_key(tool) => unavailable(format!(
            "`{}` is not available in this session: {}",
            place.module, failure.message
        )),
        Some(_) | None => Ok(place.clone()),
    }
}

/// A running request. If it is dropped before its answer, it is still stopped.
pub(super) struct RunningBridgeRequest {
    pub(super) bridge: Arc<BridgeProcess>,
    pub(super) pending: Option<PendingBridgeAnswer>,
    pub(super) what: String,
}

impl RunningBridgeRequest {
    async fn until_answered(&mut self, context: &CallContext) -> Result<Vec<u8>, ToolFailure> {
        let Some(pending) = &mut self.pending else {
            return Err(ToolFailure::new("the request was not sent"));
        };
        tokio::select! {
            biased;
            line = pending.line() => {
                self.pending = None;
                return line.map_err(NoAnswer::into_failure);
            }
            () = context.canceled() => {}
        }
        let Some(pending) = self.pending.take() else {
            return Err(ToolFailure::new("the request was not sent"));
        };
        // In a task of its own, so that the stop completes even if this future is dropped.
        let stopping = tokio::spawn(stop(Arc::clone(&self.bridge), pending, self.what.clone()));
        match stopping.await {
            Ok(stopped) => stopped,
            Err(error) => Err(ToolFailure::from(error)),
        }
    }

    /// Waits for the answer, for callers that can be canceled only by a drop.
    pub(super) async fn answered(&mut self) -> Result<Vec<u8>, NoAnswer> {
        let Some(pending) = &mut self.pending else {
            return Err(NoAnswer::Unreadable("the request was not sent".to_owned()));
        };
        let line = pending.line().await;
        self.pending = None;
        line
    }
}

impl Drop for RunningBridgeRequest {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        // A caller can vanish without a cancellation, and `drop` cannot wait. So the stop runs in a task of its own;
        // otherwise the tool would go on with no reader. `Release` frees a large result that the bridge may have kept
        // for this call in the meantime.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let bridge = Arc::clone(&self.bridge);
            let call = pending.id;
            let what = self.what.clone();
            runtime.spawn(async move {
                let _ = stop(Arc::clone(&bridge), pending, what).await;
                bridge.tell(BridgeOrder::Release { call });
            });
        }
    }
}

/// Cancels a request, and ends the whole process if the request does not end.
async fn stop(
    bridge: Arc<BridgeProcess>,
    mut pending: PendingBridgeAnswer,
    what: String,
) -> Result<Vec<u8>, ToolFailure> {
    bridge.cancel(pending.id);
    if let Ok(line) = timeout(GRACE, pending.line()).await {
        return line.map_err(NoAnswer::into_failure);
    }
    // Python code that blocks its thread cannot be interrupted from outside, so only the end of the process keeps the
    // deadline. The other calls in this process fail with it; the sessions are mounted anew at their next call.
    bridge
        .kill(format!("`{what}` did not stop when it was canceled"))
        .await;
    let message = "it did not stop when it was canceled, so the process of its module was ended";
    Err(ToolFailure::of(ErrorClass::Canceled, message).code("module_process_ended"))
}

async fn outcome(
    line: &[u8],
    call: u64,
    bridge: &BridgeProcess,
    context: &CallContext,
) -> Result<ToolOutput, ToolFailure> {
    let BridgeCallReply {
        result,
        cut,
        extras,
    } = read(line).map_err(NoAnswer::into_failure)?;
    let waits = cut.as_ref().is_some_and(|cut| cut.waiting > 0);
    let waiting = waits.then(|| OversizedBridgeResult { bridge, call });
    let result = ToolResult::parse(result.get()).map_err(|error| {
        ToolFailure::new(format!(
            "the result of the tool does not fit the contract: {error}"
        ))
        .code("bad_result")
    })?;
    let outcome = match extras {
        Some(extras) => plugin::with_extras(result, extras, context),
        None => into_outcome(result),
    };
    let Some(cut) = cut else { return outcome };
    let kept = match waiting {
        Some(waiting) => waiting.keep(&cut, context).await,
        None => None,
    };
    match outcome {
        Ok(mut output) => {
            // If no text arrived, an empty text would claim that the result was empty.
            output.content.retain(|_| cut.shown > 0);
            let truncation = shorten(&mut output.content, &cut, kept.as_ref());
            Ok(ToolOutput {
                truncated: Some(truncation),
                ..output
            })
        }
        Err(mut failure) => {
            let truncation = shorten(&mut failure.content, &cut, kept.as_ref());
            Err(ToolFailure {
                truncated: Some(Box::new(truncation)),
                ..failure
            })
        }
    }
}

/// A result that was too large for one message and waits in the bridge. Dropping this releases it.
struct OversizedBridgeResult<'a> {
    bridge: &'a BridgeProcess,
    call: u64,
}

impl Drop for OversizedBridgeResult<'_> {
    fn drop(&mut self) {
        self.bridge.tell(BridgeOrder::Release { call: self.call });
    }
}

impl OversizedBridgeResult<'_> {
    /// Fetches the whole in pieces, no faster than they are written.
    async fn keep(
        &self,
        cut: &BridgeResultTruncation,
        context: &CallContext,
    ) -> Option<ArtifactRef> {
        match self.fetch(cut, context).await {
            Ok(kept) => Some(kept),
            Err(why) => {
                context.log(
                    LogLevel::Warn,
                    format!("the whole result is not kept: {why}"),
                );
                None
            }
        }
    }

    async fn fetch(
        &self,
        cut: &BridgeResultTruncation,
        context: &CallContext,
    ) -> Result<ArtifactRef, NotKept> {
        let mut sink = context
            .create_artifact("result", cut.media_type.as_str())
            .await?;
        let mut at = 0;
        loop {
            let BridgePieceReply { text } = self
                .bridge
                .ask(BridgeOrder::Piece {
                    call: self.call,
                    at,
                })
                .await?;
            if text.is_empty() {
                return Ok(sink.finish().await?);
            }
            sink.write(text.as_bytes()).await?;
            at += text.chars().count();
        }
    }
}

/// Why the whole of a result is not kept.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error("{}", .0.message)]
    Bridge(ToolFailure),
}

impl From<NoAnswer> for NotKept {
    fn from(no: NoAnswer) -> Self {
        Self::Bridge(no.into_failure())
    }
}

/// Keeps the preview of a result that was cut, with a note that points to the rest.
fn shorten(
    content: &mut Vec<ResultContent>,
    cut: &BridgeResultTruncation,
    kept: Option<&ArtifactRef>,
) -> Truncation {
    let mut shown = cut.shown;
    if kept.is_some() {
        shown = 0;
        for piece in content.iter_mut() {
            if let ResultContent::Text { text } = piece {
                let room = PREVIEW.saturating_sub(usize::try_from(shown).unwrap_or(usize::MAX));
                text.truncate(text.floor_char_boundary(room));
                shown += text.len() as u64;
            }
        }
    }
    let truncation = truncation(
        &BridgeResultTruncation {
            shown,
            ..cut.clone()
        },
        kept,
    );
    content.push(ResultContent::text(format!(
        "[{}]",
        truncation.hint.as_deref().unwrap_or_default()
    )));
    truncation
}

fn truncation(cut: &BridgeResultTruncation, kept: Option<&ArtifactRef>) -> Truncation {
    let BridgeResultTruncation {
        shown,
        total,
        content,
        waiting,
        ..
    } = *cut;
    let came = match content {
        0 => format!("the first {} of {} are shown", bytes(shown), bytes(total)),
        pieces => {
            format!(
                "of {}, {} of text are shown and none of the {pieces} other content blocks",
                bytes(total),
                bytes(shown)
            )
        }
    };
    let rest = match kept {
        Some(kept) if waiting == total => format!("the whole is kept as `{}`", kept.id),
        Some(kept) => format!(
            "the first {} are kept as `{}`, the rest is lost",
            bytes(waiting),
            kept.id
        ),
        None => "the rest was dropped by the limit `amplifier.max_result`".to_owned(),
    };
    Truncation {
        shown,
        total: Some(total),
        unit: "bytes".to_owned(),
        hint: Some(format!("{came}; {rest}")),
        artifact: kept.map(|kept| kept.id),
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} bytes"),
        1024..0x10_0000 => format!("{} KiB", count >> 10),
        _ => format!("{}.{} MiB", count >> 20, ((count % (1 << 20)) * 10) >> 20),
    }
}
