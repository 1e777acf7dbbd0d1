//! The persist step: what a result is too large to show is written away before the call's end is recorded.

use std::sync::Arc;

use toolpost_model::{
    ArtifactError, Disposition, Effects, ErrorClass, EventBody, LogLevel, PersistStrategy,
    ResultContent, ToolResult, Visibility,
};

use super::{
    artifacts,
    journal::{AppendStrength, RecordKind},
    rendering,
};
use crate::{
    hooks::run,
    host::HostInner,
    invocation::{PipelineCall, RecordedResult},
    result::{self, ResultReaderTools, ResultSizePolicy, UnkeptPart},
    session::Session,
};

/// Keeps what is too large to show and commits the end, then makes the answer. A record never contradicts an answer: where the end cannot be
/// written, the answer says so instead of what the tool said.
pub(crate) async fn persist(
    host: &HostInner,
    call: &mut PipelineCall,
    mut result: ToolResult,
) -> Arc<RecordedResult> {
    keep(host, call, &mut result).await;
    let answer = RecordedResult::without_secrets(result, &call.live.redactor());
    let record = rendering::record(call, RecordKind::Ended, Some(&answer));
    match host.append(record, AppendStrength::Committed).await {
        Ok(()) => answer,
        // Nothing had run, so the answer claims nothing that the missing record would have to back.
        Err(_) if answer.result().error_class() == Some(ErrorClass::JournalUnavailable) => answer,
        Err(error) => {
            let safe = call
                .findings
                .effects
                .as_ref()
                .is_none_or(Effects::may_run_again);
            call.conclusion.ending = Some(result::end_not_recorded(&error, safe));
            // Without a record nothing tells who may read it.
            call.live.artifacts.withhold();
            RecordedResult::of(result::map(call, room(host, call)))
        }
    }
}

/// How much of the call's result is shown, and what becomes of the rest.
pub(crate) fn room(host: &HostInner, call: &PipelineCall) -> ResultSizePolicy {
    ResultSizePolicy {
        readers: readers(host, &call.session),
        ..bounds(host, call)
    }
}

/// The same for whoever does not tell a caller how to read on.
pub(crate) fn bounds(host: &HostInner, call: &PipelineCall) -> ResultSizePolicy {
    let entry = call
        .findings
        .resolved
        .as_ref()
        .map(|resolved| &*resolved.entry);
    ResultSizePolicy::of(host.limits.inline_chars, call.session.inline_chars(), entry)
}

/// A result names the tools that read on only where the caller has them.
fn readers(host: &HostInner, session: &Session) -> ResultReaderTools {
    let surface = host.surface(session);
    let has = |name| match surface.find(name) {
        Some((_, Visibility::Loaded | Visibility::Deferred)) => true,
        Some((_, Visibility::Unlisted | Visibility::Blocked(_))) | None => false,
    };
    ResultReaderTools {
        read: has("read_result"),
        search: has("search_result"),
    }
}

/// What a hook may withhold after the call is not to be had while the call runs.
pub(crate) fn hold_back(host: &HostInner, call: &PipelineCall) {
    if run::may_withhold(host, call) {
        call.live.artifacts.hold_back();
    }
}

/// Lets out what hooks left of the tool's own pieces, and keeps what waits to be kept. Where that fails the call has still succeeded: the result says what is lost and why.
pub(crate) async fn keep(host: &HostInner, call: &mut PipelineCall, result: &mut ToolResult) {
    for piece in call.live.artifacts.let_out() {
        call.live.emit(EventBody::Kept(piece));
    }
    for part in std::mem::take(&mut call.conclusion.unkept) {
        match artifacts::keep(&host.record.artifact_room, call.session.principal(), &part).await {
            Ok(piece) => {
                call.live.artifacts.add(piece.clone());
                result.artifacts.push(piece);
            }
            Err(error) => lose(call, result, &part, &error),
        }
    }
}

fn lose(call: &PipelineCall, result: &mut ToolResult, part: &UnkeptPart, error: &ArtifactError) {
    tracing::warn!(%error, call = %call.live.id, part = part.name, "a result could not be kept");
    let reason = error.to_string();
    let message = format!("`{}` of the result could not be kept: {reason}", part.name);
    call.live.emit(EventBody::Log {
        level: LogLevel::Warn,
        message,
    });
    let said = format!("{}; it could not be kept: {reason}", part.lost);
    for piece in &mut result.content {
        if let ResultContent::Text { text } = piece
            && text.contains(&part.note)
        {
            *text = text.replacen(&part.note, &said, 1);
        }
    }
    if let Some(cut) = result
        .truncated
        .as_mut()
        .filter(|cut| cut.artifact == Some(part.id))
    {
        cut.artifact = None;
        cut.hint = Some(format!(
            "the rest could not be kept: {reason}; ask for a smaller part"
        ));
    }
    if let Some(done) = result
        .persistence
        .as_mut()
        .filter(|done| done.artifact == Some(part.id))
    {
        done.strategy = PersistStrategy::DropWithReason;
        done.artifact = None;
        done.reason = Some(reason);
    }
    match result.disposition {
        Disposition::Preview | Disposition::RefOnly | Disposition::Inline => {
            result.disposition = Disposition::Dropped;
        }
        Disposition::Redacted
        | Disposition::Dropped
        | Disposition::Empty
        | Disposition::Synthetic => {}
    }
}
