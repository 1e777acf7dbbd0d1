//! The tool itself: arguments, effects, and the limits of a run.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolpost_model::{
    AccessKind, CallContext, CallInput, CancelSupport, ClassFact, Declaration, EffectClass,
    Effects, ErrorClass, ExecutionKind, InputRefusal, RiskLevel, SandboxPlan, SandboxProfile, Tool,
    ToolCall, ToolFailure, ToolKind, ToolOutput,
};

use super::{
    CodeTools,
    conversation::{CodeConversationError, CodeRunConversation},
    frame::{RunLimits, RunOrder},
    grants::is_identifier,
    inner_calls::{InnerCallScope, InnerCalls},
    pool::WorkerLease,
    python3,
    report::{self, CodeStopReason, RunResult},
};
use crate::{
    arguments::{checked_arguments, read_arguments},
    declaration::declare,
};

/// The longest code.
const CODE_BYTES: usize = 256 << 10;
/// The largest inputs, as JSON.
const INPUT_BYTES: usize = 4 << 20;
/// The most printed text that is kept.
const PRINTED_BYTES: usize = 100_000;
/// The longest run.
const MOST_SECONDS: u64 = 600;
/// How much earlier the interpreter's own limit is than the kill, because a traceback explains more than a killed
/// process.
const HEAD_START: Duration = Duration::from_millis(250);

const DESCRIPTION: &str = "Runs Python and gives back what it printed and the value of its last expression. The \
    other tools are functions there: `read_file(path=\"a.txt\")`, or the required arguments by place. So one call can \
    loop over files, filter, count and combine, where each step would otherwise be a turn of its own, and only what \
    matters comes back. A call returns the tool's structured content (a dict; the tool's text is under `text`) or \
    else its text; a call that fails raises, `PermissionError` where it was denied. `NAME_async(…)` gives something \
    to await, so that `await asyncio.gather(…)` makes calls side by side. `open()` and `pathlib` go through the file \
    tools. The default is a small embedded interpreter that begins at once: most of the language, and json, re, math, \
    datetime, collections, itertools, functools, dataclasses, asyncio; no generators, no class inheritance, no other \
    modules. `language: \"python3\"` is full CPython in the sandbox. Nothing is kept from one run to the next.";

pub(super) struct RunCode {
    code: CodeTools,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
    /// The code. The value of its last line is the result, where that is an expression.
    code: &'a str,
    /// `python`: the embedded interpreter. `python3`: full CPython in the sandbox.
    #[serde(default)]
    language: CodeLanguage,
    /// Variables bound before the code begins. Give data here instead of writing it into the code.
    #[serde(default)]
    inputs: Map<String, Value>,
    /// Names of the tools that the code may call. All that are granted to code, where this is left out.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// When to stop the run, calls of tools included.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 1, max = 600))]
    timeout_seconds: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Language")]
enum CodeLanguage {
    #[default]
    Python,
    Python3,
}

fn default_seconds() -> u64 {
    60
}

impl RunCode {
    pub(super) fn new(code: CodeTools) -> Self {
        Self { code }
    }

    /// Runs the code in the embedded interpreter.
    async fn embedded(
        &self,
        order: RunOrder,
        mut talk: CodeRunConversation,
        run: CodeRunContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let taken = tokio::select! {
            taken = self.code.pool.take(run.context.session_id()) => taken,
            stop = run.over() => return Err(report::failed(&stop, &talk)),
        };
        let mut lease =
            taken.map_err(|error| report::failed(&CodeStopReason::NotStarted(error), &talk))?;
        let ended = tokio::select! {
            ended = talk.run(&mut lease.worker.wire, order) => ended,
            stop = run.over() => return Err(report::failed(&stop, &talk)),
        };
        match ended {
            Ok(ending) => {
                if talk.worn {
                    drop(lease.into_worker());
                } else {
                    lease.give_back();
                }
                report::ended(ending, talk, run.seconds())
            }
            Err(broken) => Err(report::failed(&corpse(lease, broken).await, &talk)),
        }
    }
}

/// The call of a run, with its limits.
pub(super) struct CodeRunContext {
    pub(super) context: CallContext,
    until: Instant,
    limit: Duration,
}

impl CodeRunContext {
    /// Resolves with the reason when the run has to be ended.
    pub(super) async fn over(&self) -> CodeStopReason {
        tokio::select! {
            () = self.context.canceled() => CodeStopReason::Canceled,
            () = tokio::time::sleep_until(self.until.into()) => CodeStopReason::TimedOut { seconds: self.seconds() },
        }
    }

    /// The time limit in seconds, for messages.
    pub(super) fn seconds(&self) -> f64 {
        self.limit.as_millis() as f64 / 1000.0
    }
}

/// The failure for a worker that broke the protocol or ended.
async fn corpse(lease: WorkerLease, broken: CodeConversationError) -> CodeStopReason {
    let worker = lease.into_worker();
    match broken {
        CodeConversationError::Gone => CodeStopReason::Died(worker.autopsy().await),
        CodeConversationError::Unfit(_)
        | CodeConversationError::Io(_)
        | CodeConversationError::Frame(_)
        | CodeConversationError::Nonsense(_) => CodeStopReason::Broken(broken),
    }
}

impl Tool for RunCode {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, RunResult>(
            ToolKind::Code,
            "code",
            "run_code",
            DESCRIPTION,
            EffectClass::Unknown,
        );
        declaration.title = Some("Run code".to_owned());
        declaration.search_hint =
            "python script execute evaluate compute calculate program loop batch many calls"
                .to_owned();
        declaration.tags = vec!["code".to_owned(), "execute".to_owned()];
        declaration.input.examples = vec![
            json!({
                "code": "counts = {}\nfor hit in grep(pattern=\"TODO\")[\"matches\"]:\n    \
                         counts[hit[\"path\"]] = counts.get(hit[\"path\"], 0) + 1\n\
                         sorted(counts.items(), key=lambda item: -item[1])[:10]",
            }),
            json!({
                "code": "import asyncio\nfound = await asyncio.gather(*[read_file_async(path=p) for p in paths])\n\
                         {p: f[\"total_lines\"] for p, f in zip(paths, found)}",
                "inputs": { "paths": ["README.md", "src/main.rs"] },
                "tools": ["read_file"],
            }),
            json!({ "code": "import statistics\nstatistics.stdev(numbers)", "language": "python3",
                    "inputs": { "numbers": [1.5, 2.5, 4.0] } }),
        ];
        let interface = &mut declaration.interface;
        interface.safety.class = ClassFact::ByInput;
        interface.permission.risk = RiskLevel::Medium;
        interface.permission.access = vec![AccessKind::CodeExecution];
        interface.execution.kind = ExecutionKind::LocalProcess;
        interface.execution.cancel = CancelSupport::Cooperative;
        interface.execution.timeout_ms = Some((MOST_SECONDS + 5) * 1000);
        interface.rendering.subject_argument = Some("code".to_owned());
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        if arguments.code.trim().is_empty() {
            return Err(InputRefusal::invalid(
                "/code",
                "the code is empty; give the lines to run",
            ));
        }
        if arguments.code.len() > CODE_BYTES {
            let message = format!(
                "the code has {} bytes, the limit is {CODE_BYTES}; give data as `inputs`",
                arguments.code.len()
            );
            return Err(InputRefusal::invalid("/code", message));
        }
        if let Some(name) = arguments.inputs.keys().find(|name| !is_identifier(name)) {
            let message = format!(
                "`{}` cannot be the name of a variable in Python",
                name.escape_debug()
            );
            return Err(InputRefusal::invalid("/inputs", message));
        }
        let size = serde_json::to_vec(&arguments.inputs).map_or(usize::MAX, |bytes| bytes.len());
        if size > INPUT_BYTES {
            return Err(InputRefusal::invalid(
                "/inputs",
                format!("{size} bytes, the limit is {INPUT_BYTES}"),
            ));
        }
        if arguments.language == CodeLanguage::Python3 {
            if !self.code.settings.python3 {
                let message =
                    "the operator allows only the embedded interpreter (setting `code.python3`)";
                return Err(InputRefusal {
                    class: ErrorClass::PolicyBlocked,
                    ..InputRefusal::invalid("/language", message)
                });
            }
            python3::check(&self.code.children)?;
        }
        match arguments.timeout_seconds {
            1..=MOST_SECONDS => Ok(()),
            other => {
                let message = format!("`{other}` is not between 1 and {MOST_SECONDS}");
                Err(InputRefusal::invalid("/timeout_seconds", message))
            }
        }
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        Some(
            match read_arguments::<Arguments<'_>>(input).ok()?.language {
                // The code itself changes nothing, but a second run would repeat its calls.
                CodeLanguage::Python => Effects {
                    idempotent: false,
                    ..Effects::of(EffectClass::Read)
                },
                CodeLanguage::Python3 => python3::effects(&self.code.children),
            },
        )
    }

    fn sandbox(&self, input: &CallInput, narrowed: Option<SandboxProfile>) -> Option<SandboxPlan> {
        match read_arguments::<Arguments<'_>>(input).ok()?.language {
            // It runs in a worker that reaches only the host.
            CodeLanguage::Python => None,
            CodeLanguage::Python3 => {
                let children = &self.code.children;
                Some(children.plan(children.settings().profile, narrowed))
            }
        }
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments<'_> = read_arguments(&call.input)?;
        let settings = &self.code.settings;
        let asked = InnerCallScope {
            granted: settings.tools.clone(),
            wanted: arguments.tools,
            most: settings.calls,
        };
        let calls = InnerCalls::new(call.context.clone(), asked);
        calls.refuse_unknown()?;
        let began = Instant::now();
        let until =
            (began + Duration::from_secs(arguments.timeout_seconds)).min(call.context.deadline());
        let limit = until.saturating_duration_since(began);
        let limits = RunLimits {
            time_ms: u64::try_from(limit.saturating_sub(HEAD_START.min(limit / 10)).as_millis())
                .unwrap_or(u64::MAX),
            memory_bytes: settings.memory_bytes,
            printed_bytes: PRINTED_BYTES,
        };
        let order = RunOrder {
            code: arguments.code.to_owned(),
            inputs: arguments.inputs,
            functions: Vec::new(),
            limits,
        };
        let talk = CodeRunConversation::new(calls, PRINTED_BYTES);
        let run = CodeRunContext {
            context: call.context,
            until,
            limit,
        };
        match arguments.language {
            CodeLanguage::Python => self.embedded(order, talk, run).await,
            CodeLanguage::Python3 => python3::run(&self.code.children, order, talk, run).await,
        }
    }
}
