//! The output of a declared command as a result: text, one JSON value, or lines.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolpost_model::{
    CallContext, ResultContent, ToolFailure, ToolOutput, schema_of, visible_text,
};
use toolpost_processes::rendered;

use super::declaration::{CommandDeclaration, CommandOutputFormat};
use crate::shell::{
    BackgroundProcesses, FinishedProcessRun, OutputLog, OutputSource, ProcessOrigin,
    ProcessRunReport, ProcessRunSummary, ShownLimits, add_line, ending, shown,
};

/// The default of how many bytes are read.
const USUAL_BYTES: usize = 256 * 1024;
/// The default of how many bytes of text are shown.
const USUAL_TEXT: usize = 24 * 1024;
/// How much of an invalid output is shown.
const HEAD: ShownLimits = ShownLimits {
    head_bytes: 2048,
    tail_bytes: 1024,
    head_lines: 40,
    tail_lines: 20,
};

/// Lines of an output.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Lines")]
struct CommandLinesResult {
    /// Without their ends.
    lines: Vec<String>,
    /// How many lines were written.
    total_lines: u64,
    /// There were more.
    truncated: bool,
}

/// The schema of the command's structured content, if it is known.
pub(super) fn schema(output: CommandOutputFormat) -> Option<Value> {
    match output {
        CommandOutputFormat::Text => Some(schema_of::<ProcessRunReport>()),
        CommandOutputFormat::Lines => Some(schema_of::<CommandLinesResult>()),
        CommandOutputFormat::Json => None,
    }
}

/// A finished run, with both streams.
pub(super) struct FinishedCommandRun<'w> {
    pub(super) ran: &'w FinishedProcessRun<'w>,
    pub(super) errors: &'w OutputLog,
    pub(super) kept_for: (&'w CallContext, &'w BackgroundProcesses, ProcessOrigin),
}

impl FinishedCommandRun<'_> {
    pub(super) async fn output(
        self,
        declared: &CommandDeclaration,
    ) -> Result<ToolOutput, ToolFailure> {
        let end = &self.ran.end;
        let limits = ShownLimits::of_bytes(declared.max_output.unwrap_or(USUAL_TEXT));
        let succeeded = end
            .ended
            .code
            .is_some_and(|code| declared.success_codes.contains(&code));
        if let Some(stopped) = end.stopped {
            let told = self.ran.report(limits, self.kept_for).await?;
            let mut failure = self.ran.stopped(stopped, &told);
            add_errors(&mut failure, self.errors).await?;
            return Err(failure);
        }
        if !succeeded {
            let told = self.ran.report(limits, self.kept_for).await?;
            return Err(failed(&declared.name, self.ran, &told, self.errors).await?);
        }
        let most = declared.max_output.unwrap_or(USUAL_BYTES);
        match declared.output {
            CommandOutputFormat::Text => {
                let told = self.ran.report(limits, self.kept_for).await?;
                let text = if end.ended.code == Some(0) {
                    told.plain()
                } else {
                    told.whole()
                };
                let output = self.ran.output(text, &told.report)?;
                let is_empty = told.is_empty() && end.ended.code == Some(0);
                Ok(if is_empty {
                    wrote_nothing(output, &declared.name)
                } else {
                    output
                })
            }
            CommandOutputFormat::Json => self.json(&declared.name, most).await,
            CommandOutputFormat::Lines => self.lines(&declared.name, most).await,
        }
    }

    async fn json(&self, name: &str, most: usize) -> Result<ToolOutput, ToolFailure> {
        let log = &self.ran.log;
        if log.total() > most as u64 {
            let message = format!(
                "`{name}` wrote {} bytes of JSON, the limit is {most}",
                log.total()
            );
            let failure = ToolFailure::new(message).code("output_too_large");
            return Err(self
                .unreadable(failure.hint("the operator can raise `max_output` of the command"))
                .await?);
        }
        match serde_json::from_slice::<Value>(&log.read(0, most).await?.bytes) {
            Ok(value) => Ok(ToolOutput {
                structured: Some(value),
                exit_code: self.ran.end.ended.code,
                sandbox: Some(Box::new(self.ran.process.applied().clone())),
                ..ToolOutput::default()
            }),
            Err(error) => {
                let failure = ToolFailure::new(format!("`{name}` did not write JSON: {error}"));
                Err(self.unreadable(failure.code("not_json")).await?)
            }
        }
    }

    async fn lines(&self, name: &str, most: usize) -> Result<ToolOutput, ToolFailure> {
        let log = &self.ran.log;
        let page = log.read(0, most).await?;
        let truncated = page.end() < page.total;
        let mut text = rendered(&page.bytes).text;
        if truncated {
            // The last line is incomplete, unless it is the only one.
            text.truncate(text.rfind('\n').map_or(text.len(), |at| at + 1));
        }
        let lines = CommandLinesResult {
            lines: text.lines().map(str::to_owned).collect(),
            total_lines: log.lines(),
            truncated,
        };
        let structured = serde_json::to_value(&lines)?;
        let mut text = visible_text(&text).into_owned();
        if truncated {
            let shown = lines.lines.len();
            let all = lines.total_lines;
            add_line(
                &mut text,
                &format!("[… {shown} of {all} lines are shown …]"),
            );
        }
        let output = ToolOutput {
            content: vec![ResultContent::text(text)],
            structured: Some(structured),
            exit_code: self.ran.end.ended.code,
            sandbox: Some(Box::new(self.ran.process.applied().clone())),
            ..ToolOutput::default()
        };
        Ok(if lines.lines.is_empty() {
            wrote_nothing(output, name)
        } else {
            output
        })
    }

    /// Adds the head of an invalid output to the failure.
    async fn unreadable(&self, failure: ToolFailure) -> io::Result<ToolFailure> {
        let output = shown(OutputSource::Log(&self.ran.log), HEAD).await?;
        let mut failure = failure.confined(self.ran.process.applied().clone());
        failure.exit_code = self.ran.end.ended.code;
        failure.content = vec![ResultContent::text(
            output.text(|cut| format!("[… {} bytes not shown …]", cut.bytes)),
        )];
        add_errors(&mut failure, self.errors).await?;
        Ok(failure)
    }
}

/// Describes a success without output, so that it does not look like a lost output.
fn wrote_nothing(output: ToolOutput, name: &str) -> ToolOutput {
    output
        .with_summary(format!("`{name}` wrote nothing"))
        .with_nothing_to_show()
}

/// The failure of a command that ended with an error.
async fn failed(
    name: &str,
    ran: &FinishedProcessRun<'_>,
    told: &ProcessRunSummary,
    errors: &OutputLog,
) -> io::Result<ToolFailure> {
    let failure = ToolFailure::new(format!("`{name}` failed: {}", ending(ran.end.ended)))
        .code("command_failed");
    let mut failure = failure.confined(ran.process.applied().clone());
    failure.exit_code = ran.end.ended.code;
    failure.content = vec![ResultContent::text(told.whole())];
    failure.details = serde_json::to_value(&told.report).ok();
    if let Some(refusal) = &told.report.sandbox_refusal {
        failure.hint = Some(refusal.message.clone());
    }
    add_errors(&mut failure, errors).await?;
    Ok(failure)
}

/// Adds the command's standard error if it is a stream of its own.
async fn add_errors(failure: &mut ToolFailure, errors: &OutputLog) -> io::Result<()> {
    if errors.total() > 0 {
        let output = shown(OutputSource::Log(errors), HEAD).await?;
        failure.content.push(ResultContent::text(
            output.text(|cut| format!("[… {} bytes not shown …]", cut.bytes)),
        ));
    }
    Ok(())
}
