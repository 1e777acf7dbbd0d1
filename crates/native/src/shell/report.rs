//! The report of a finished run, for the shell and for declared commands.

use std::{io, path::Path, sync::Arc};

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::{
    ArtifactId, CallContext, ErrorClass, ResultContent, ToolFailure, ToolOutput, Truncation,
};
use toolpost_processes::{ProtectedPath, created_lines};
use toolpost_sandbox::{Confines, SandboxedProcess};

use super::{
    kept::keep,
    log::OutputLog,
    processes::{BackgroundProcesses, ProcessEntry, ProcessOrigin},
    refusal::{SandboxRefusal, SandboxedRunContext, guess},
    run::{ProcessStopReason, RunEnd},
    shown::{OutputExcerpt, OutputOmission, OutputSource, ShownLimits, shown},
    told::{add_line, count, ending},
};
use crate::declaration::is_zero;

/// A finished run with its output.
pub(crate) struct FinishedProcessRun<'r> {
    pub(crate) process: &'r SandboxedProcess,
    pub(crate) confines: &'r Confines,
    pub(crate) directory: &'r Path,
    pub(crate) end: RunEnd,
    pub(crate) log: Arc<OutputLog>,
    /// Protected names that were created during the run.
    pub(crate) created: &'r [ProtectedPath],
}

/// How a command ended and how much it wrote.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub(crate) struct ProcessRunReport {
    /// `exited`; `running` for a command in the background; `stopped` where its time was over or it was canceled.
    pub(crate) state: &'static str,
    /// For `process_read` and its relatives: a command in the background, or one whose output is larger than is shown
    /// and could not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process_id: Option<String>,
    /// For `read_result` and `search_result`: where the whole output is kept, if it is larger than is shown.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) kept: Option<ArtifactId>,
    /// What the command said itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// Something of it was ended because the memory limit was reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) out_of_memory: bool,
    /// Bytes it wrote.
    pub(crate) output_bytes: u64,
    /// Lines it wrote.
    pub(crate) output_lines: u64,
    /// Only the head and the tail of its output are shown.
    pub(crate) truncated: bool,
    /// Bytes that were not even kept: the output is larger than that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) dropped_bytes: u64,
    /// Bytes that are no UTF-8 were replaced in what is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lossy: bool,
    /// How long it ran.
    pub(crate) duration_ms: u64,
    /// A guess that the sandbox refused it something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox_refusal: Option<SandboxRefusal>,
}

/// The summary of a run for the model.
pub(crate) struct ProcessRunSummary {
    /// The output, or its head and tail.
    pub(crate) text: String,
    /// The exit, and the sandbox's likely part in it.
    pub(crate) closing: Vec<String>,
    /// Lines about protected names that were created.
    pub(crate) created: Vec<String>,
    pub(crate) report: ProcessRunReport,
}

impl ProcessRunSummary {
    /// The output, with the exit.
    pub(crate) fn whole(&self) -> String {
        let mut text = self.text.clone();
        self.closing
            .iter()
            .chain(&self.created)
            .for_each(|line| add_line(&mut text, line));
        text
    }

    /// Whether the command wrote no output and created no protected names.
    pub(crate) fn is_empty(&self) -> bool {
        self.report.output_bytes == 0 && self.created.is_empty()
    }

    /// The output of a successful command.
    pub(crate) fn plain(&self) -> String {
        let mut text = self.text.clone();
        self.created
            .iter()
            .for_each(|line| add_line(&mut text, line));
        text
    }
}

/// The location of the output that is not shown.
enum UnshownOutputPlace {
    /// Stored as a result of the call.
    Kept(ArtifactId),
    /// In the log of the process, as long as the session exists.
    OfProcess(String),
}

impl UnshownOutputPlace {
    /// The call that shows the part that was cut.
    fn read_on(&self, cut: &OutputOmission) -> String {
        match (self, cut.line) {
            (Self::Kept(id), Some(line)) => {
                format!("read_result {{\"ref\": \"{id}\", \"offset\": {line}}}")
            }
            (Self::Kept(id), None) => {
                format!(
                    "read_result {{\"ref\": \"{id}\", \"byte_offset\": {}}}",
                    cut.offset
                )
            }
            (Self::OfProcess(id), _) => {
                format!(
                    "process_read {{\"process_id\": \"{id}\", \"offset\": {}}}",
                    cut.offset
                )
            }
        }
    }
}

impl ProcessRunReport {
    /// The report of a background process.
    pub(crate) fn of_running(entry: &ProcessEntry) -> Self {
        Self {
            state: "running",
            process_id: Some(entry.id.clone()),
            kept: None,
            exit_code: None,
            signal: None,
            out_of_memory: false,
            output_bytes: entry.log.total(),
            output_lines: entry.log.lines(),
            truncated: false,
            dropped_bytes: 0,
            lossy: false,
            duration_ms: millis(entry.duration()),
            sandbox_refusal: None,
        }
    }
}

pub(crate) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl FinishedProcessRun<'_> {
    /// Output and facts of the run. The part that is not shown is stored as a result, or at least stays readable for
    /// the session.
    pub(crate) async fn report(
        &self,
        limits: ShownLimits,
        (context, processes, origin): (&CallContext, &BackgroundProcesses, ProcessOrigin),
    ) -> io::Result<ProcessRunSummary> {
        // The excerpt of a long output is taken from the stored form. Redaction has read that form as a whole, while
        // the cut between head and tail could split a secret of the raw output in two halves that no pattern matches.
        let kept = match limits.fit(&self.log) {
            true => None,
            false => keep(&self.log, context).await.ok(),
        };
        let source = match &kept {
            Some(kept) => OutputSource::Kept(kept),
            None => OutputSource::Log(&self.log),
        };
        let output = shown(source, limits).await?;
        let RunEnd {
            ended,
            stopped,
            duration,
        } = self.end;
        let scene = SandboxedRunContext {
            confines: self.confines,
            applied: self.process.applied(),
            directory: self.directory,
        };
        let refusal = if stopped.is_none() {
            guess(&output, ended, &scene)
        } else {
            None
        };
        let rest = output.cut.as_ref().map(|_| match &kept {
            Some(kept) => UnshownOutputPlace::Kept(kept.about.id),
            None => {
                let log = Arc::clone(&self.log);
                let sandbox = self.process.applied().clone();
                let entry = ProcessEntry::ended(context, origin, log, sandbox, (ended, duration));
                processes.keep(context.session_id(), Arc::clone(&entry));
                UnshownOutputPlace::OfProcess(entry.id.clone())
            }
        });
        let text = output.text(|cut| {
            let bytes = count(cut.bytes, "byte");
            let lines = count(cut.lines, "line");
            let read = rest
                .as_ref()
                .map(|rest| rest.read_on(cut))
                .unwrap_or_default();
            format!("[… {bytes} in {lines} not shown; `{read}` reads on here …]")
        });
        let how = if stopped.is_some() {
            "[stopped]".to_owned()
        } else {
            format!("[{}]", ending(ended))
        };
        let closing = std::iter::once(how)
            .chain(refusal.as_ref().map(SandboxRefusal::told))
            .collect();
        let created = created_lines(self.created).collect();
        Ok(ProcessRunSummary {
            text,
            closing,
            created,
            report: self.facts(&output, rest, refusal),
        })
    }

    fn facts(
        &self,
        output: &OutputExcerpt,
        rest: Option<UnshownOutputPlace>,
        refusal: Option<SandboxRefusal>,
    ) -> ProcessRunReport {
        let (kept, process_id) = match rest {
            None => (None, None),
            Some(UnshownOutputPlace::Kept(id)) => (Some(id), None),
            Some(UnshownOutputPlace::OfProcess(id)) => (None, Some(id)),
        };
        let ended = self.end.ended;
        let by_itself = self.end.stopped.is_none();
        ProcessRunReport {
            state: if by_itself { "exited" } else { "stopped" },
            process_id,
            kept,
            exit_code: ended.code.filter(|_| by_itself),
            signal: ended.signal.filter(|_| by_itself),
            out_of_memory: ended.out_of_memory,
            output_bytes: self.log.total(),
            output_lines: self.log.lines(),
            truncated: output.cut.is_some(),
            dropped_bytes: self.log.dropped(),
            lossy: output.lossy,
            duration_ms: millis(self.end.duration),
            sandbox_refusal: refusal,
        }
    }

    /// The result of a call whose command ended by itself.
    pub(crate) fn output(
        &self,
        text: String,
        report: &ProcessRunReport,
    ) -> Result<ToolOutput, serde_json::Error> {
        let shown = text.len() as u64;
        let hint = match (&report.kept, &report.process_id) {
            (Some(id), _) => Some(format!(
                "`read_result` with `ref` `{id}` reads any part of the output, `search_result` finds lines"
            )),
            (None, Some(id)) => Some(format!(
                "`process_read` with `process_id` `{id}` reads any part of the output"
            )),
            (None, None) => None,
        };
        let truncated = hint.map(|hint| Truncation {
            shown,
            total: Some(report.output_bytes),
            unit: "bytes".to_owned(),
            hint: Some(hint),
            artifact: report.kept,
        });
        Ok(ToolOutput {
            content: vec![ResultContent::text(text)],
            structured: Some(serde_json::to_value(report)?),
            exit_code: report.exit_code,
            truncated,
            sandbox: Some(Box::new(self.process.applied().clone())),
            ..ToolOutput::default()
        })
    }

    /// The result of a call whose command was stopped.
    pub(crate) fn stopped(
        &self,
        stopped: ProcessStopReason,
        told: &ProcessRunSummary,
    ) -> ToolFailure {
        let seconds = self.end.duration.as_secs_f64();
        let failure = match stopped {
            ProcessStopReason::OutOfTime => ToolFailure::of(
                ErrorClass::Timeout,
                format!("the command was stopped after {seconds:.1} s"),
            )
            .code("command_timeout"),
            ProcessStopReason::ByHost => ToolFailure::of(
                ErrorClass::Canceled,
                format!("the command was stopped after {seconds:.1} s"),
            ),
        };
        let mut failure = failure.confined(self.process.applied().clone());
        failure.content = vec![ResultContent::text(told.whole())];
        failure.details = serde_json::to_value(&told.report).ok();
        failure
    }
}
