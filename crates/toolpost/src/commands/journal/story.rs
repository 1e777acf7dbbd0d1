//! One call, told from its records: what was asked, what each layer did about it and why, where the time went.

mod answers;
mod ending;
mod family;
mod grounds;
mod timeline;

use serde_json::Value;
use toolpost_core::{InputTrail, StoredRecord};
use toolpost_model::{InvocationId, Stage};
use toolpost_store::JournalReader;

use super::{open, tail};
use crate::{
    exit::Exit,
    settings::WorkspacePaths,
    terminal::{BOLD, DIM, printable, say, styled},
};

pub(crate) use ending::{guidance, retry};
pub(crate) use grounds::{class_finding, deadline, delegated, grounds, hook, wait_reason};
use timeline::Timeline;

/// Writes a line under a name.
pub(crate) type NamedLineWriter<'a> = &'a dyn Fn(&str, String);

/// How much of arguments and results is shown.
const SHOWN: usize = 400;

pub(crate) fn show(
    place: &WorkspacePaths,
    id: InvocationId,
    as_json: bool,
) -> anyhow::Result<Exit> {
    let reader = open(place)?;
    let rows = reader.records_of(id)?;
    if rows.is_empty() {
        anyhow::bail!(
            "no call `{id}` is on record for `{}`\nhint: `toolpost journal tail` lists the newest",
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
    Ok(Exit::Done)
}

/// The records of one call.
struct CallRecordPrinter<'a> {
    rows: &'a [StoredRecord],
    bodies: Vec<Value>,
    /// Its arguments, from those that the model sent on.
    inputs: InputTrail,
}

impl<'a> CallRecordPrinter<'a> {
    fn of(rows: &'a [StoredRecord]) -> Self {
        let bodies = rows
            .iter()
            .filter_map(|row| serde_json::from_str(&row.record.body).ok())
            .collect();
        Self {
            rows,
            bodies,
            inputs: InputTrail::of(rows),
        }
    }

    /// The newest account of a part: later records know more.
    fn part(&self, pointer: &str) -> Option<&Value> {
        let found = self
            .bodies
            .iter()
            .rev()
            .find_map(|body| body.pointer(pointer));
        found.filter(|value| !value.is_null())
    }

    fn text(&self, pointer: &str) -> Option<String> {
        self.part(pointer).and_then(Value::as_str).map(printable)
    }

    fn each(&self, pointer: &str) -> impl Iterator<Item = &Value> {
        self.part(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }

    fn print_call(&self, reader: &JournalReader, id: InvocationId) -> anyhow::Result<()> {
        let line =
            |name: &str, text: String| say!("{}  {text}", styled(BOLD, format!("{name:<9}")));
        self.print_request(id, &line);
        family::print_parent_call(self, &line);
        let timeline = Timeline::of(self.part("/transitions"));
        self.annotate(reader, id, &timeline)?;
        timeline.draw();
        self.records();
        family::print_nested_calls(reader, id, self.rows, &line)?;
        ending::print_ending(self, &line);
        Ok(())
    }

    /// What was asked, and by whom.
    fn print_request(&self, id: InvocationId, line: NamedLineWriter<'_>) {
        line("call", id.to_string());
        let tool = self
            .text("/tool_id")
            .or_else(|| self.text("/call/tool"))
            .unwrap_or_default();
        let asked = self
            .text("/call/tool")
            .filter(|_| self.part("/explain/matched_by").is_some());
        let asked = asked.map(|asked| styled(DIM, format!(" (asked for as `{asked}`)")));
        line("tool", format!("{tool}{}", asked.unwrap_or_default()));
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
        if let Some(bytes) = self.part("/call/unread_bytes") {
            line(
                "arguments",
                format!("{bytes} bytes that were not read, and so not kept"),
            );
        }
        let text = |pointer: &str| self.text(pointer).unwrap_or_default();
        line(
            "from",
            format!(
                "{} ({}) over {}",
                text("/call/principal"),
                text("/call/role"),
                text("/call/face")
            ),
        );
        if let Some(native) = self.text("/call/native_call_id") {
            line("native id", native);
        }
        if let Some(caller) = self.text("/call/trace/traceparent") {
            line(
                "trace",
                format!(
                    "{} under span {}",
                    caller.get(3..35).unwrap_or_default(),
                    caller.get(36..52).unwrap_or_default()
                ),
            );
        }
        if let Some(correlation) = self.text("/call/correlation_id") {
            line("belongs", format!("to `{correlation}`"));
        }
        if let Some(place) = self.part("/call/batch") {
            grounds::batch(place, line);
        }
    }

    /// Puts what each stage did beneath it.
    fn annotate(
        &self,
        reader: &JournalReader,
        id: InvocationId,
        timeline: &Timeline,
    ) -> anyhow::Result<()> {
        if self.part("/explain/visibility").is_some() {
            timeline.note(
                Stage::Resolve,
                "surface",
                "the tool is deferred, and had been shown".to_owned(),
            );
        }
        let hooks = |before: bool, stage: Stage| {
            let line = timeline.at(stage);
            let runs = self
                .each("/hooks")
                .filter(|run| (run["event"] == "before") == before);
            runs.for_each(|run| hook(run, &line));
        };
        hooks(true, Stage::PreHooks);
        hooks(false, Stage::PostHooks);
        for change in self.inputs.changes() {
            let stage = match change.source_type {
                "permission_prompt" => Stage::AwaitApproval,
                "runtime" => Stage::Parse,
                _ => Stage::PreHooks,
            };
            grounds::input_change(&change, &timeline.at(stage));
        }
        let after = timeline.at(Stage::PostHooks);
        self.each("/output_mutations")
            .for_each(|mutation| grounds::output_change(mutation, &after));
        self.decision(&timeline.at(Stage::Decide));
        answers::print_approvals(reader, id, self.rows, &timeline.at(Stage::AwaitApproval))?;
        let admit = timeline.at(Stage::Admit);
        self.each("/explain/waited_for")
            .for_each(|reason| grounds::waited(reason, &admit));
        if self
            .part("/explain/alone")
            .is_some_and(|alone| alone == true)
        {
            admit("turn", "alone in its session".to_owned());
        }
        let execute = timeline.at(Stage::Execute);
        if let Some(deadline) = self.part("/explain/deadline") {
            grounds::deadline(deadline, &execute);
        }
        if let Some(cancellation) = self.part("/explain/cancellation") {
            grounds::cancellation(cancellation, &execute);
        }
        if let Some(sandbox) = self.part("/result/sandbox") {
            execute("sandbox", shortened(&ending::confined(sandbox)));
        }
        ending::kept(self, &timeline.at(Stage::Map));
        Ok(())
    }

    fn decision(&self, line: NamedLineWriter<'_>) {
        let Some(decision) = self.part("/decision") else {
            return;
        };
        let text = |pointer: &str| self.text(pointer).unwrap_or_default();
        let class = text("/decision/class");
        let mode = text("/decision/mode");
        let facts = styled(DIM, format!("(class {class}, mode {mode})"));
        line(
            "decision",
            format!(
                "{}: {} {facts}",
                text("/decision/behavior"),
                text("/decision/reason/text")
            ),
        );
        grounds(decision, line);
        for one in self.each("/effects/uses") {
            let key = printable(one["key"].as_str().unwrap_or_default());
            line(
                "touches",
                format!("{key} ({})", one["access"].as_str().unwrap_or_default()),
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
