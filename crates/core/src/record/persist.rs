//! The persist step: stores the parts of a result that are too large to show, and then records the call's end.

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

/// Stores large parts, records the end, and only then makes the answer.
///
/// An answer must never claim more than the record. If the answer went out first and the host died, the caller would
/// have a result that the journal lists as unknown. So a failed append replaces the result: the caller gets an error
/// that the end could not be recorded, and whether a retry is safe, although the tool succeeded. The artifacts come
/// first because the record names them; after a failed append they are withdrawn.
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
        // The call never ran, so its answer needs no record behind it.
        Err(_) if answer.result().error_class() == Some(ErrorClass::JournalUnavailable) => answer,
        Err(error) => {
            let safe = call
                .findings
                .effects
                .as_ref()
                .is_none_or(Effects::may_run_again);
            call.conclusion.ending = Some(result::end_not_recorded(&error, safe));
            // Without a record there is no principal that may read them.
            call.live.artifacts.withhold();
            RecordedResult::of(result::map(call, room(host, call)))
        }
    }
}

/// The limit of the result's shown part, and the handling of the rest.
pub(crate) fn room(host: &HostInner, call: &PipelineCall) -> ResultSizePolicy {
    ResultSizePolicy {
        readers: readers(host, &call.session),
        ..bounds(host, call)
    }
}

/// The same without advice on how to read the rest.
pub(crate) fn bounds(host: &HostInner, call: &PipelineCall) -> ResultSizePolicy {
    let entry = call
        .findings
        .resolved
        .as_ref()
        .map(|resolved| &*resolved.entry);
    ResultSizePolicy::of(host.limits.inline_chars, call.session.inline_chars(), entry)
}

/// A result names the tools that read artifacts only if the caller has them.
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

/// Hides the artifacts of a running call if a hook may withhold them afterwards.
pub(crate) fn hold_back(host: &HostInner, call: &PipelineCall) {
    if run::may_withhold(host, call) {
        call.live.artifacts.hold_back();
    }
}

/// Publishes the tool's artifacts that hooks left, and stores the parts that were cut off.
///
/// This comes after the hooks, because a hook may withhold or replace the result: bytes that were already on disk would
/// outlive that refusal. If the store fails, the call has still succeeded: the result states the loss and the reason.
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
