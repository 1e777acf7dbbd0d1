//! Test calls of a tool with right and wrong arguments, and with cancellation.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolpost_amplifier::is_without_reason;
use toolpost_core::Schema;
use toolpost_model::{ErrorClass, EventBody, Outcome, Stage, ToolResult};

use super::{
    check::CheckName,
    probes::{ToolProbe, ToolProbes},
    report::{CheckSeverity, ValidationCheck},
    workbench::ModuleWorkbench,
};

/// How long a call may take before it counts as endless.
const PATIENCE: Duration = Duration::from_secs(10);
/// A deadline that some calls miss and others meet, and the time before a call is canceled. Both are fine if the call
/// then ends.
const SHORT: Duration = Duration::from_millis(500);

/// A tool to test.
pub(super) struct TriedTool {
    /// The module's name for it.
    pub(super) name: String,
    /// The host's name for it.
    pub(super) wire: String,
    /// The schema, if it is valid.
    pub(super) schema: Option<Schema>,
}

/// The end of a call, as far as it matters for the contract.
#[derive(Debug, PartialEq)]
enum TrialCallEnd {
    /// With a successful result.
    Succeeded,
    /// With a result that is a failure, and perhaps its reason.
    Failed(Option<String>),
    /// Without a result of the tool's own: it raised, trapped, or its process ended.
    Broke(String),
    /// By the host, at its deadline or by cancellation.
    Stopped,
}

impl TrialCallEnd {
    fn of(result: &ToolResult) -> Self {
        let (class, code, message) = match &result.error {
            Some(error) => (
                Some(error.class),
                error.code.as_ref(),
                error.message.as_str(),
            ),
            None => (None, "", ""),
        };
        match result.outcome {
            Outcome::Succeeded | Outcome::Partial => Self::Succeeded,
            Outcome::TimedOut | Outcome::Canceled => Self::Stopped,
            // Only the host sets a finer class; a tool's own failed result never has one.
            Outcome::Failed
                if class == Some(ErrorClass::ExecutionFailed)
                    && code == ErrorClass::ExecutionFailed.as_str() =>
            {
                Self::Failed(
                    Some(message.to_owned())
                        .filter(|message| !message.is_empty() && !is_without_reason(message)),
                )
            }
            Outcome::Failed | Outcome::Denied | Outcome::Rejected | Outcome::Unknown => {
                Self::Broke(message.to_owned())
            }
        }
    }
}

/// The exception at the start of a Python message.
fn raised(message: &str) -> Option<&str> {
    let (name, _) = message.split_once(':')?;
    let named = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    named.then_some(name)
}

/// Tests one tool.
pub(super) async fn try_out(bench: &ModuleWorkbench, tool: &TriedTool) -> Vec<ValidationCheck> {
    let mut trial = ToolTrial {
        bench,
        tool,
        printed: String::new(),
        faults: Vec::new(),
        speechless: Vec::new(),
        checks: Vec::new(),
    };
    let schema = tool
        .schema
        .as_ref()
        .map_or(json!({}), |schema| (**schema.value()).clone());
    let fits = |arguments: &Value| {
        tool.schema.as_ref().is_none_or(|schema| {
            schema
                .violations(arguments)
                .is_ok_and(|found| found.is_empty())
        })
    };
    let probes = ToolProbes::of(&schema, fits);
    trial.empty_input(&probes).await;
    let broke = trial.wrong_types(&probes.wrong).await;
    let is_valid = tool.schema.is_some() && probes.fitting.is_some();
    let fitting = probes.fitting.unwrap_or_else(|| json!({}));
    let end = trial.fitting(&fitting).await;
    trial.report_wrong_types(probes.wrong.len(), broke, &end);
    if let (TrialCallEnd::Failed(message), true) = (end, is_valid) {
        trial.refused_valid_calls(message);
    }
    trial.results().await;
    trial.deadline(&fitting).await;
    trial.cancel(&fitting).await;
    trial.noise();
    trial.checks
}

/// The limit of a call that does not end by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrialCallStop {
    AtDeadline(Duration),
    /// A cancellation after a moment of work.
    ByCancel,
}

/// Never resolves if there is no such time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

struct ToolTrial<'a> {
    bench: &'a ModuleWorkbench,
    tool: &'a TriedTool,
    /// The output of the calls.
    printed: String,
    /// Differences between the schema and the tool.
    faults: Vec<String>,
    /// Calls that failed without a message.
    speechless: Vec<String>,
    checks: Vec<ValidationCheck>,
}

impl ToolTrial<'_> {
    fn passed(&mut self, name: CheckName, message: impl std::fmt::Display) {
        self.checks.push(ValidationCheck::passed(
            name,
            format!("`{}`: {message}", self.tool.name),
        ));
    }

    fn failed(&mut self, name: CheckName, message: impl std::fmt::Display) {
        self.checks.push(ValidationCheck::failed(
            name,
            format!("`{}`: {message}", self.tool.name),
        ));
    }

    /// Runs one call to its end. Keeps its output, and notes a failure without a message.
    async fn call(&mut self, about: &str, arguments: &Value, stop: TrialCallStop) -> TrialCallEnd {
        let limit = match stop {
            TrialCallStop::AtDeadline(limit) => limit,
            TrialCallStop::ByCancel => PATIENCE,
        };
        let mut call = self.bench.start(&self.tool.wire, arguments, limit).await;
        let mut cancel_at = None;
        loop {
            let event = tokio::select! {
                event = call.events.recv() => event,
                () = at(cancel_at) => {
                    self.bench.cancel(&call);
                    cancel_at = None;
                    continue;
                }
            };
            match event.map(|event| event.body) {
                None => break,
                Some(EventBody::Output(chunk)) => self.printed.push_str(&chunk.text),
                Some(EventBody::Stage {
                    stage: Stage::Execute,
                }) if stop == TrialCallStop::ByCancel => {
                    cancel_at = Some(Instant::now() + SHORT);
                }
                Some(_) => {}
            }
        }
        let end = TrialCallEnd::of(call.handle.answer().await.result());
        match &end {
            TrialCallEnd::Failed(None) => self
                .speechless
                .push(format!("{about}: it fails without a message")),
            TrialCallEnd::Broke(message) => self.speechless.push(format!("{about}: {message}")),
            TrialCallEnd::Failed(Some(_)) | TrialCallEnd::Succeeded | TrialCallEnd::Stopped => {}
        }
        end
    }

    async fn empty_input(&mut self, probes: &ToolProbes) {
        let name = CheckName::EmptyInput;
        match self
            .call(
                "without arguments",
                &json!({}),
                TrialCallStop::AtDeadline(PATIENCE),
            )
            .await
        {
            TrialCallEnd::Succeeded => {
                if probes.demands {
                    self.faults.push(
                        "it works without arguments, although its schema requires some".to_owned(),
                    );
                }
                self.passed(name, "it returns a result without arguments");
            }
            TrialCallEnd::Failed(message) => {
                let said = message.unwrap_or_else(|| "no reason given".to_owned());
                self.passed(name, format!("it refuses a call without arguments: {said}"));
            }
            TrialCallEnd::Broke(message) => {
                let told = format!(
                    "`{}`: without arguments it does not return a result: {message}",
                    self.tool.name
                );
                let check = ValidationCheck::failed(name, told);
                self.checks.push(match raised(&message) {
                    // Amplifier treats these as bugs of the tool, and every other exception as a way to refuse.
                    None | Some("AttributeError" | "TypeError" | "KeyError") => check,
                    Some(_) => check.weighing(CheckSeverity::Warning),
                });
            }
            TrialCallEnd::Stopped => self.failed(name, "without arguments it does not end"),
        }
    }

    /// Returns the first call that did not end with a result.
    async fn wrong_types(&mut self, wrong: &[ToolProbe]) -> Option<String> {
        let mut broke = None;
        for probe in wrong {
            match self
                .call(
                    &probe.about,
                    &probe.arguments,
                    TrialCallStop::AtDeadline(PATIENCE),
                )
                .await
            {
                TrialCallEnd::Succeeded => self.faults.push(probe.fault.clone()),
                TrialCallEnd::Failed(_) => {}
                TrialCallEnd::Broke(message) => {
                    broke = broke.or(Some(format!("{}: {message}", probe.about)));
                }
                TrialCallEnd::Stopped => {
                    broke = broke.or(Some(format!("{}: it does not end", probe.about)));
                }
            }
        }
        broke
    }

    /// `valid` is the end of the call with valid arguments. If that broke too, the types are not the cause.
    fn report_wrong_types(&mut self, tried: usize, broke: Option<String>, valid: &TrialCallEnd) {
        let name = CheckName::WrongTypes;
        match broke {
            Some(broke) => {
                let hint = match valid {
                    TrialCallEnd::Broke(_) => "",
                    TrialCallEnd::Succeeded | TrialCallEnd::Failed(_) | TrialCallEnd::Stopped => {
                        "\nhint: check the input, and return success=False"
                    }
                };
                self.failed(
                    name,
                    format!("it does not return a result where {broke}{hint}"),
                );
            }
            None if tried == 0 => self.passed(name, "its schema has no types to test"),
            None if tried == 1 => {
                self.passed(name, "1 argument of a wrong type ends with a result");
            }
            None => self.passed(
                name,
                format!("{tried} arguments of wrong types end with a result"),
            ),
        }
    }

    fn refused_valid_calls(&mut self, message: Option<String>) {
        let said = message.unwrap_or_else(|| "no reason given".to_owned());
        let hint = "hint: give the properties of the schema `examples` that the tool accepts";
        self.failed(
            CheckName::ValidCall,
            format!("it refused every valid call of the test: {said}\n{hint}"),
        );
    }

    /// Arguments that fit the schema must not crash the tool. It may refuse them.
    async fn fitting(&mut self, arguments: &Value) -> TrialCallEnd {
        let end = self
            .call(
                "valid arguments",
                arguments,
                TrialCallStop::AtDeadline(PATIENCE),
            )
            .await;
        if let TrialCallEnd::Broke(message) = &end {
            self.faults.push(format!(
                "it returns no result for valid arguments: {message}"
            ));
        }
        if self.tool.schema.is_some() {
            match self.faults.first().cloned() {
                Some(fault) => self.failed(CheckName::SchemaHonesty, fault),
                None => {
                    self.passed(
                        CheckName::SchemaHonesty,
                        "it follows its schema in all test calls",
                    );
                }
            }
        }
        match self.speechless.first().cloned() {
            Some(call) => self.failed(CheckName::ErrorHandling, call),
            None => self.passed(
                CheckName::ErrorHandling,
                "every failure is a result with a message",
            ),
        }
        end
    }

    /// The actual return values of `execute`, if the bridge could observe them.
    async fn results(&mut self) {
        let Some(seen) = self.bench.observed(&self.tool.name).await else {
            return;
        };
        match seen.iter().find(|kind| *kind != "ToolResult") {
            Some(kind) => {
                self.failed(
                    CheckName::ResultType,
                    format!("`execute` returns a {kind}, not a ToolResult"),
                );
            }
            None if seen.is_empty() => {}
            None => self.passed(CheckName::ResultType, "`execute` returns a ToolResult"),
        }
    }

    /// The process for the next call. A process that was ended is started anew by the next call.
    async fn settled(&mut self) -> Option<String> {
        if self.bench.is_in_process() && self.bench.process().await.is_none() {
            self.call(
                "after its process was ended",
                &json!({}),
                TrialCallStop::AtDeadline(PATIENCE),
            )
            .await;
        }
        self.bench.process().await
    }

    async fn deadline(&mut self, arguments: &Value) {
        let lost = "it did not stop at its deadline, so the host ended its process\nhint: move blocking work into \
                    `asyncio.to_thread` or a child process";
        let kept = "it stops at its deadline and keeps serving";
        self.survives(
            CheckName::Deadline,
            arguments,
            TrialCallStop::AtDeadline(SHORT),
            kept,
            lost,
        )
        .await;
    }

    async fn cancel(&mut self, arguments: &Value) {
        let lost = "it did not stop when it was canceled, so the host ended its process\nhint: do not suppress \
                    `asyncio.CancelledError`";
        let kept = "it stops when it is canceled and keeps serving";
        self.survives(
            CheckName::Cancel,
            arguments,
            TrialCallStop::ByCancel,
            kept,
            lost,
        )
        .await;
    }

    /// A canceled call must not cost the module its process.
    async fn survives(
        &mut self,
        name: CheckName,
        arguments: &Value,
        stop: TrialCallStop,
        kept: &str,
        lost: &str,
    ) {
        let before = self.settled().await;
        if self.bench.is_in_process() && before.is_none() {
            self.failed(name, "its process ends before it can be canceled");
            return;
        }
        self.call("canceled", arguments, stop).await;
        if self.bench.process().await == before {
            self.passed(name, kept);
        } else {
            self.failed(name, lost);
        }
    }

    fn noise(&mut self) {
        let first = self
            .printed
            .lines()
            .find(|line| !line.trim().is_empty())
            .map(str::to_owned);
        match first {
            Some(line) => {
                let hint = "hint: use `logging`; printing breaks hosts that use standard output for their protocol";
                self.failed(
                    CheckName::PrintNoise,
                    format!("it prints when it is called: {line}\n{hint}"),
                );
            }
            None => self.passed(CheckName::PrintNoise, "it prints nothing when it is called"),
        }
    }
}
