//! `shell.process_status`: the background processes and their states.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, EffectClass, Effects, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_processes::{created_lines, created_paths, shown};

use super::{
    declare,
    processes::{BackgroundProcesses, ProcessEntry, ProcessState},
    report::millis,
    told::{count, ending},
};
use crate::arguments::read_arguments;

/// The longest command line in a list, in characters.
const COMMAND_CHARS: usize = 200;

pub(super) struct ProcessStatus {
    processes: Arc<BackgroundProcesses>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only this process; without it all of this session are listed.
    #[serde(default)]
    process_id: Option<String>,
}

/// The processes that were asked for.
#[derive(Serialize, JsonSchema)]
struct StatusResult {
    /// The oldest first.
    processes: Vec<ProcessFacts>,
}

/// How one process stands.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProcessFacts {
    /// Its id.
    pub(super) process_id: String,
    /// The command line, cut where it is long.
    pub(super) command: String,
    /// What it is for, as its starter said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// `running` or `exited`.
    pub(super) state: &'static str,
    /// What the command said itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<i32>,
    /// Bytes it has written so far.
    pub(super) output_bytes: u64,
    /// Lines it has written so far.
    pub(super) output_lines: u64,
    /// Bytes of those that are kept nowhere.
    pub(super) dropped_bytes: u64,
    /// How long it has run, or ran.
    pub(super) duration_ms: u64,
    /// Protected paths at the top of a root that came into being while it ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) protected_created: Vec<String>,
}

impl ProcessFacts {
    pub(super) fn of(entry: &ProcessEntry) -> Self {
        let (state, ended) = match entry.state() {
            ProcessState::Running => ("running", None),
            ProcessState::Ended(ended, _) => ("exited", Some(ended)),
        };
        Self {
            process_id: entry.id.clone(),
            command: entry.origin.command.chars().take(COMMAND_CHARS).collect(),
            description: entry.origin.description.clone(),
            state,
            exit_code: ended.and_then(|ended| ended.code),
            signal: ended.and_then(|ended| ended.signal),
            output_bytes: entry.log.total(),
            output_lines: entry.log.lines(),
            dropped_bytes: entry.log.dropped(),
            duration_ms: millis(entry.duration()),
            protected_created: created_paths(&entry.created()),
        }
    }
}

/// `running`, or how it ended.
pub(super) fn standing(entry: &ProcessEntry) -> String {
    match entry.state() {
        ProcessState::Running => "running".to_owned(),
        ProcessState::Ended(ended, _) => ending(ended),
    }
}

fn line(entry: &ProcessEntry) -> String {
    let facts = ProcessFacts::of(entry);
    let what = facts.description.as_deref().unwrap_or(&facts.command);
    let seconds = facts.duration_ms as f64 / 1000.0;
    let lines = count(facts.output_lines, "line");
    let told = format!(
        "{}  {}  {seconds:.1} s  {lines}  {}",
        facts.process_id,
        standing(entry),
        shown(what)
    );
    let created = created_lines(&entry.created())
        .map(|line| format!("\n{line}"))
        .collect::<String>();
    told + &created
}

impl ProcessStatus {
    pub(super) fn new(processes: Arc<BackgroundProcesses>) -> Self {
        Self { processes }
    }
}

impl Tool for ProcessStatus {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, StatusResult>(
            "process_status",
            "Says how a process of this session stands that `shell` started with `background: true`: running or how it \
             ended, for how long, how much it has written. Without `process_id` it lists all of them, the ended ones \
             whose output can still be read included.",
            EffectClass::Read,
        );
        declaration.title = Some("Process status".to_owned());
        declaration.search_hint = "background job list running ps alive".to_owned();
        declaration.input.examples = vec![json!({}), json!({ "process_id": "p3f09c41d77aa" })];
        declaration
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(Effects::of(EffectClass::Read))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let entries = match &arguments.process_id {
            Some(id) => vec![self.processes.find(&call.context, id)?],
            None => self.processes.of(call.context.session_id()),
        };
        let lines: Vec<String> = entries.iter().map(|entry| line(entry)).collect();
        let text = if lines.is_empty() {
            "no processes in this session".to_owned()
        } else {
            lines.join("\n")
        };
        let result = StatusResult {
            processes: entries
                .iter()
                .map(|entry| ProcessFacts::of(entry))
                .collect(),
        };
        let output = ToolOutput::text(text).with_structured(serde_json::to_value(&result)?);
        Ok(ToolOutput {
            is_empty: lines.is_empty(),
            ..output
        })
    }
}
