//! One call, reconstructed from its records: the request, the part of each layer with its reason, and the times.

mod answers;
mod ending;
mod family;
mod grounds;
mod timeline;

use serde::Serialize;
use serde_json::Value;
use toolpost_core::{
    CallRecordBody, CircumstancesBody, InputTrail, OutputMutation, RecordedCallRequest,
    StoredRecord,
};
use toolpost_model::{Effects, HookEvent, HookRun, InvocationId, Stage, ToolResult};
use toolpost_store::JournalReader;

use super::{open, tail};
use crate::{
    exit::CliExit,
    settings::WorkspacePaths,
    terminal::{BOLD, DIM, printable, say, styled},
};

pub(crate) use ending::{guidance, retry};
use grounds::grounds;
pub(crate) use grounds::{class_finding, deadline, delegated, hook, wait_reason};
use timeline::CallTimeline;

/// Writes a line under a name.
pub(crate) type NamedLineWriter<'a> = &'a dyn Fn(&str, String);

/// How much of arguments and results is shown.
const SHOWN: usize = 400;

pub(crate) fn show(
    place: &WorkspacePaths,
    id: InvocationId,
    as_json: bool,
) -> anyhow::Result<CliExit> {
    let reader = open(place)?;
    let rows = reader.records_of(id)?;
    if rows.is_empty() {
        anyhow::bail!(
            "call `{id}` is not on record for `{}`\nhint: list the newest records with `toolpost journal tail`",
            place.workspace.display()
        );
    }
    if as_json {
        let records: Vec<tail::JournalRecordRow<'_>> = rows
            .iter()
            .map(tail::JournalRecordRow::of)
            .collect::<anyhow::Result<_>>()?;
        say!("{}", serde_json::to_string_pretty(&records)?);
    } else {
        CallRecordPrinter::of(&rows).print_call(&reader, id)?;
    }
    Ok(CliExit::Done)
}

struct CallRecordPrinter<'a> {
    rows: &'a [StoredRecord],
    bodies: Vec<CallRecordBody<'static>>,
    circumstances: Vec<CircumstancesBody<'static>>,
    result: Option<ToolResult>,
    /// Its arguments, starting from the model input.
    inputs: InputTrail,
}

impl<'a> CallRecordPrinter<'a> {
    fn of(rows: &'a [StoredRecord]) -> Self {
        let bodies: Vec<CallRecordBody<'static>> = rows
            .iter()
            .filter_map(|row| row.record.read_body().ok())
            .collect();
        let circumstances = bodies
            .iter()
            .filter_map(|body| body.explain.as_ref()?.read_as().ok())
            .collect();
        let result = newest(&bodies, |body| body.result.as_ref()?.read().ok());
        Self {
            rows,
            bodies,
            circumstances,
            result,
            inputs: InputTrail::of(rows),
        }
    }

    fn newest<'b, T>(
        &'b self,
        part: impl FnMut(&'b CallRecordBody<'static>) -> Option<T>,
    ) -> Option<T> {
        newest(&self.bodies, part)
    }

    fn newest_circumstance<'b, T>(
        &'b self,
        part: impl FnMut(&'b CircumstancesBody<'static>) -> Option<T>,
    ) -> Option<T> {
        newest(&self.circumstances, part)
    }

    fn request(&self) -> Option<&RecordedCallRequest<'static>> {
        self.newest(|body| body.call.as_ref())
    }

    fn tool(&self) -> String {
        let resolved = self.newest(|body| body.tool_id.is_some().then_some(body));
        let body = resolved.or_else(|| self.newest(|body| body.call.is_some().then_some(body)));
        body.map(tool_of).unwrap_or_default()
    }

    fn print_call(&self, reader: &JournalReader, id: InvocationId) -> anyhow::Result<()> {
        let line =
            |name: &str, text: String| say!("{}  {text}", styled(BOLD, format!("{name:<9}")));
        self.print_request(id, &line);
        family::print_parent_call(self, &line);
        let timeline = CallTimeline::of(self.newest(|body| {
            let transitions = body.transitions.as_ref();
            (!transitions.is_empty()).then(|| transitions.to_vec())
        }));
        self.annotate(reader, id, &timeline)?;
        timeline.draw();
        self.records();
        family::print_nested_calls(reader, id, self.rows, &line)?;
        ending::print_ending(self, &line);
        Ok(())
    }

    /// The request and its caller.
    fn print_request(&self, id: InvocationId, line: NamedLineWriter<'_>) {
        line("call", id.to_string());
        let request = self.request();
        let asked = request.filter(|_| self.newest_circumstance(|met| met.matched_by).is_some());
        let asked = asked
            .map(|request| styled(DIM, format!(" (called as `{}`)", printable(&request.tool))));
        line(
            "tool",
            format!("{}{}", self.tool(), asked.unwrap_or_default()),
        );
        let told = |arguments: &Value| shortened(&printable(&arguments.to_string()));
        if let Some(sent) = self.inputs.sent() {
            line("arguments", told(sent));
        }
        if let Some(last) = self
            .inputs
            .last()
            .filter(|last| self.inputs.sent() != Some(*last))
        {
            line("became", told(last));
        }
        let Some(request) = request else { return };
        if let Some(bytes) = request.unread_bytes {
            line(
                "arguments",
                format!("{bytes} bytes, neither read nor recorded"),
            );
        }
        line(
            "from",
            format!(
                "{} ({}) over {}",
                printable(request.principal.as_str()),
                request.role.as_str(),
                printable(&request.face)
            ),
        );
        if let Some(native) = &request.native_call_id {
            line("native id", printable(native.as_str()));
        }
        if let Some(caller) = &request.trace {
            line(
                "trace",
                format!("{} under span {}", caller.trace_id(), caller.span_id()),
            );
        }
        if let Some(correlation) = &request.correlation_id {
            line("belongs", format!("to `{}`", printable(correlation)));
        }
        if let Some(place) = &request.batch {
            grounds::batch(place, line);
        }
    }

    /// Adds the details of each stage beneath it.
    fn annotate(
        &self,
        reader: &JournalReader,
        id: InvocationId,
        timeline: &CallTimeline,
    ) -> anyhow::Result<()> {
        if self.newest_circumstance(|met| met.visibility).is_some() {
            timeline.note(
                Stage::Resolve,
                "surface",
                "the tool is deferred and was shown before".to_owned(),
            );
        }
        let runs: Vec<HookRun> = self
            .newest(|body| body.hooks.as_ref()?.read().ok())
            .unwrap_or_default();
        for run in &runs {
            let stage = match run.event {
                HookEvent::Before => Stage::PreHooks,
                HookEvent::After | HookEvent::Failure => Stage::PostHooks,
            };
            hook(run, &timeline.at(stage));
        }
        for change in self.inputs.changes() {
            let stage = match change.source_type {
                "permission_prompt" => Stage::AwaitApproval,
                "runtime" => Stage::Parse,
                _ => Stage::PreHooks,
            };
            grounds::input_change(&change, &timeline.at(stage));
        }
        let after = timeline.at(Stage::PostHooks);
        let changes: Option<Vec<OutputMutation>> =
            self.newest(|body| body.output_mutations.as_ref()?.read().ok());
        for change in changes.into_iter().flatten() {
            grounds::output_change(&change, &after);
        }
        self.decision(&timeline.at(Stage::Decide));
        answers::print_approvals(reader, id, self.rows, &timeline.at(Stage::AwaitApproval))?;
        let admit = timeline.at(Stage::Admit);
        let waited = self.newest_circumstance(|met| {
            (!met.waited_for.is_empty()).then_some(met.waited_for.as_ref())
        });
        for reason in waited.unwrap_or_default() {
            admit("waited", format!("for {}", wait_reason(reason)));
        }
        if self.circumstances.iter().any(|met| met.alone) {
            admit("turn", "alone in its session".to_owned());
        }
        let execute = timeline.at(Stage::Execute);
        if let Some(limit) = self.newest_circumstance(|met| met.deadline) {
            let tool = self.request().map(|request| printable(&request.tool));
            deadline(limit, &tool.unwrap_or_default(), &execute);
        }
        if let Some(cancellation) = self.newest_circumstance(|met| met.cancellation.as_ref()) {
            grounds::cancellation(cancellation, &execute);
        }
        if let Some(result) = &self.result {
            if let Some(sandbox) = &result.sandbox {
                execute("sandbox", shortened(&ending::confined(sandbox)));
            }
            ending::kept(result, &timeline.at(Stage::Map));
        }
        Ok(())
    }

    fn decision(&self, line: NamedLineWriter<'_>) {
        let Some(decision) = self.newest(|body| body.decision.as_deref()) else {
            return;
        };
        let facts = format!(
            "(class {}, mode {})",
            decision.class.as_str(),
            decision.mode.as_str()
        );
        line(
            "decision",
            format!(
                "{}: {} {}",
                decision.behavior.as_str(),
                printable(&decision.reason.text),
                styled(DIM, facts)
            ),
        );
        grounds(decision, line);
        let effects: Option<Effects> = self.newest(|body| body.effects.as_ref()?.read().ok());
        for one in effects.into_iter().flat_map(|effects| effects.uses) {
            line(
                "touches",
                format!("{} ({})", printable(one.key.as_str()), word(&one.access)),
            );
        }
    }

    fn records(&self) {
        for row in self.rows {
            let at = row.record.at.strftime("%Y-%m-%d %H:%M:%S%.6fZ");
            let place = styled(DIM, format!("#{} {at}", row.seq));
            say!(
                "{}  {:<9} {place}",
                styled(BOLD, "record   "),
                row.record.kind.as_str()
            );
        }
    }
}

/// The tool of a record: its id, or the name in the request.
pub(super) fn tool_of(body: &CallRecordBody<'_>) -> String {
    let id = body.tool_id.as_ref().and_then(|id| id.read().ok());
    match (id, &body.call) {
        (Some(id), _) => printable(id.as_str()),
        (None, Some(request)) => printable(&request.tool),
        (None, None) => String::new(),
    }
}

/// The latest value of a part: later records are more complete.
fn newest<'b, B, T>(bodies: &'b [B], part: impl FnMut(&'b B) -> Option<T>) -> Option<T> {
    bodies.iter().rev().find_map(part)
}

/// The word for a value in records, with spaces.
pub(super) fn word(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().replace('_', " ")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((place, _)) => format!(
            "{}… ({} bytes; --json shows all)",
            &text[..place],
            text.len()
        ),
        None => text.to_owned(),
    }
}
