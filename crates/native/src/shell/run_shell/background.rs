//! A command that continues after its call.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use toolpost_model::{CallContext, ErrorClass, ResultContent, ToolFailure, ToolOutput};
use toolpost_processes::{created_lines, created_paths};
use toolpost_sandbox::Stdin;

use super::{Arguments, Shell};
use crate::shell::{
    processes::{ProcessEntry, ProcessState},
    report::ProcessRunReport,
    run::StartedProcess,
    shown::{OutputSource, ShownLimits, shown},
    told::{add_line, ending},
};

/// How long the call waits for a command that fails at once, so that its caller learns of that.
const FIRST_LOOK: Duration = Duration::from_millis(200);

impl Shell {
    pub(super) async fn run_in_background(
        &self,
        arguments: &Arguments,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let place = self.processes.reserve(context)?;
        let directory = self.directory(arguments.working_directory.as_deref(), context)?;
        let StartedProcess { process, watch, .. } = self
            .start(arguments, directory, Stdin::Piped, context)
            .await?;
        let log = self.processes.background_log();
        let lifetime = self.processes.lifetime();
        let entry = ProcessEntry::tend(
            context,
            arguments.origin(),
            (process, watch),
            log,
            lifetime,
            place,
        );
        self.processes
            .keep(context.session_id(), Arc::clone(&entry));
        let _ = timeout(FIRST_LOOK, entry.gone()).await;
        // If the session was closed in the meantime, closing it did not find this process yet, so it is ended here.
        if context.is_canceled() {
            self.processes.forget(context.session_id(), &entry.id);
            let message = "the call was canceled, and its process ended with it";
            return Err(ToolFailure::of(ErrorClass::Canceled, message));
        }
        let output = shown(OutputSource::Log(&entry.log), ShownLimits::default()).await?;
        let mut text = output.text(|cut| format!("[… {} bytes not shown …]", cut.bytes));
        let mut report = ProcessRunReport::of_running(&entry);
        let id = &entry.id;
        let state = match entry.state() {
            ProcessState::Running => {
                format!(
                    "runs in the background; `process_read` with `process_id` `{id}` shows its output"
                )
            }
            ProcessState::Ended(ended, _) => {
                (report.exit_code, report.signal) = (ended.code, ended.signal);
                report.state = "exited";
                format!(
                    "it has already ended: {}; `process_id` `{id}`",
                    ending(ended)
                )
            }
        };
        (report.truncated, report.lossy) = (output.cut.is_some(), output.lossy);
        add_line(&mut text, &format!("[{state}]"));
        let created = entry.created();
        created_lines(&created).for_each(|line| add_line(&mut text, &line));
        let mut sandbox = entry.sandbox.clone();
        sandbox.protected_created = created_paths(&created);
        let summary = format!(
            "{}: {}",
            arguments.subject(),
            if report.exit_code.is_some() {
                "over"
            } else {
                "running"
            }
        );
        Ok(ToolOutput {
            content: vec![ResultContent::text(text)],
            structured: Some(serde_json::to_value(&report)?),
            summary: Some(summary),
            exit_code: report.exit_code,
            sandbox: Some(Box::new(sandbox)),
            ..ToolOutput::default()
        })
    }
}
