//! `shell.shell`: runs a command line in bash.

mod background;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, CallContext, CallInput, ClassFact, Declaration, EffectClass,
    Effects, InputRefusal, Lifecycle, OutputStream, ProgramFile, ResourceAccess, SandboxPlan,
    SandboxProfile, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_processes::{
    ChildProcessSpec, Children, OutputEvents, PathError, PathTarget, check_variable,
    program_files::{self, CommandStart},
    shown, variable_pairs,
};
use toolpost_sandbox::{StderrTarget, Stdin};

use super::{
    declare,
    processes::{BackgroundProcesses, ProcessOrigin},
    report::ProcessRunReport,
    run::{ProcessOutputPipe, ProcessStopReason, StartedProcess, run_to_end},
    shown::ShownLimits,
    told::ending,
};
use crate::arguments::{checked_arguments, read_arguments};

/// The longest command. The system cannot pass a longer argument to a process.
const COMMAND_BYTES: usize = 128 * 1024 - 1;
/// The default time limit of a command.
const USUAL_TIME: Duration = Duration::from_secs(120);
/// The deadline that this tool requests from the host, so that `timeout_seconds` has room; the host's limit still
/// applies.
const LONGEST_TIME: Duration = Duration::from_secs(600);
/// The longest command line in a summary, in characters.
const SUMMARY_CHARS: usize = 80;

pub(super) struct Shell {
    children: Arc<Children>,
    processes: Arc<BackgroundProcesses>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command line, for `bash --noprofile --norc -c`. Pipes, `&&`, here-documents and several lines are fine.
    command: String,
    /// Where to run it, relative to the workspace. Every call begins anew: a `cd` does not last.
    #[serde(default)]
    working_directory: Option<String>,
    /// Stop it after so many seconds (120 where not given). The host's own deadline for the call may come first.
    #[serde(default)]
    #[schemars(range(min = 1, max = 86400))]
    timeout_seconds: Option<u64>,
    /// Leave it running and return at once with a `process_id`, for servers and long builds. It ends with the session.
    /// Do not put `&` behind the command: what a command starts ends with the command itself.
    #[serde(default)]
    background: bool,
    /// What the command is for, in a few words, for the people who watch.
    #[serde(default)]
    description: Option<String>,
    /// Further environment variables. Those that change how programs load code or look like credentials are refused.
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

impl Arguments {
    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        variable_pairs(&self.environment)
    }

    fn origin(&self) -> ProcessOrigin {
        ProcessOrigin {
            command: self.command.clone(),
            description: self.description.clone(),
        }
    }

    /// The line that people see for the call.
    fn subject(&self) -> String {
        let text = self.description.as_deref().unwrap_or(&self.command);
        let line = text.lines().next().unwrap_or_default();
        match line.char_indices().nth(SUMMARY_CHARS) {
            None => shown(line),
            // Between words, because redaction would not recognise half a secret.
            Some((end, _)) => {
                format!(
                    "{}…",
                    shown(line[..end].rsplit_once(' ').map_or("", |(words, _)| words))
                )
            }
        }
    }
}

impl Shell {
    pub(super) fn new(children: Arc<Children>, processes: Arc<BackgroundProcesses>) -> Self {
        Self {
            children,
            processes,
        }
    }

    fn directory(
        &self,
        given: Option<&str>,
        context: &CallContext,
    ) -> Result<PathBuf, ToolFailure> {
        let workspace = self.children.workspace();
        let Some(given) = given else {
            return Ok(workspace.path().to_owned());
        };
        let requested = workspace
            .request(given)
            .map_err(|refusal| PathError::from(refusal).into_failure())?;
        let located = workspace
            .locate(&requested)
            .map_err(PathError::into_failure)?;
        match &located.found {
            PathTarget::Directory(_) => Ok(workspace.path().join(&located.path)),
            PathTarget::Entry { .. } => Err(PathError::NotADirectory {
                given: given.to_owned(),
                at: located.path,
            }
            .into_failure()),
            PathTarget::Missing { parent, rest } => {
                let may_see = |place: &Path| {
                    context.may_use(&workspace.absolute(place), ResourceAccess::Read)
                };
                let missing =
                    PathError::not_found(given.to_owned(), (parent, &located.path), rest, may_see);
                Err(missing.into_failure())
            }
        }
    }

    /// Whether this host can run commands read-only.
    fn may_only_read(&self) -> bool {
        self.children.settings().profile != SandboxProfile::None
            && self.children.confined(SandboxProfile::ReadOnly).is_some()
    }

    /// Whether a command is known to read only, on a machine that enforces this. It is then decided as a read and runs
    /// under a read-only profile, so that a wrong guess about a program only makes the command fail. Later input could
    /// change the effects of a command, and so could a variable, unless it is one that rules need not mention.
    fn only_reads(&self, arguments: &Arguments) -> bool {
        !arguments.background
            && self.may_only_read()
            && toolpost_command::analyze_with(&arguments.command, arguments.variables())
                .only_reads()
    }

    /// The effect class and the profile of a command. The result is the same for the decision and for the run.
    fn manner(&self, arguments: &Arguments) -> (EffectClass, SandboxProfile) {
        match self.only_reads(arguments) {
            true => (EffectClass::Read, SandboxProfile::ReadOnly),
            false => (EffectClass::Execute, self.children.settings().profile),
        }
    }

    async fn start(
        &self,
        arguments: &Arguments,
        directory: PathBuf,
        stdin: Stdin,
        context: &CallContext,
    ) -> Result<StartedProcess, ToolFailure> {
        let (_, profile) = self.manner(arguments);
        let argv = ["bash", "--noprofile", "--norc", "-c", &arguments.command];
        let child = |environment, confines| ChildProcessSpec {
            argv: argv.map(Into::into).to_vec(),
            environment,
            directory,
            stdin,
            stderr: StderrTarget::WithStdout,
            confines,
        };
        let variables = arguments.variables();
        StartedProcess::start(&self.children, profile, variables, context, child).await
    }

    async fn run(
        &self,
        arguments: &Arguments,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let directory = self.directory(arguments.working_directory.as_deref(), context)?;
        let mut started = self
            .start(arguments, directory.clone(), Stdin::Null, context)
            .await?;
        let log = self.processes.new_log();
        let events = OutputEvents::new(context.clone(), OutputStream::Combined);
        let stream = ProcessOutputPipe {
            pipe: started.process.take_stdout(),
            log: &log,
            events: Some(events),
        };
        let time = arguments
            .timeout_seconds
            .map_or(USUAL_TIME, Duration::from_secs);
        let until = Instant::now() + time;
        let end = run_to_end(&mut started.process, vec![stream], None, until, context).await;
        let ran = started.finish(&directory, end, log);
        let kept_for = (context, &*self.processes, arguments.origin());
        let told = ran.report(ShownLimits::default(), kept_for).await?;
        match ran.end.stopped {
            None => {
                let mut output = ran.output(told.whole(), &told.report)?;
                output.is_empty = told.is_empty() && ran.end.ended.code == Some(0);
                Ok(output.with_summary(format!(
                    "{}: {}",
                    arguments.subject(),
                    ending(ran.end.ended)
                )))
            }
            Some(stopped) => {
                let failure = ran.stopped(stopped, &told);
                Err(match stopped {
                    ProcessStopReason::OutOfTime => failure.hint(format!(
                        "its `timeout_seconds` of {} ran out; give it more, or run it with `background: true`",
                        time.as_secs()
                    )),
                    ProcessStopReason::ByHost => failure.hint(
                        "its processes were ended with it; run a command that takes longer than the host's deadline with \
                         `background: true`",
                    ),
                })
            }
        }
    }
}

impl Tool for Shell {
    fn declaration(&self) -> Declaration {
        let mut declaration =
            declare::<Arguments, ProcessRunReport>("shell", DESCRIPTION, EffectClass::Execute);
        declaration.title = Some("Shell".to_owned());
        declaration.search_hint =
            "bash terminal run execute command line script build test compile install git make"
                .to_owned();
        declaration.input.examples = vec![
            json!({ "command": "cargo test --quiet 2>&1 | tail -40", "timeout_seconds": 300, "description": "run the tests" }),
            json!({ "command": "ls -la && git status --short", "working_directory": "src" }),
            json!({ "command": "python3 -m http.server 8000", "background": true }),
        ];
        if let Some(setup) = self.children.missing_setup() {
            declaration.lifecycle = Lifecycle::RequiresSetup(setup);
        }
        let interface = &mut declaration.interface;
        interface.safety.destructive = true;
        interface.execution.streaming = true;
        interface.execution.timeout_ms = u64::try_from(LONGEST_TIME.as_millis()).ok();
        interface.rendering.subject_argument = Some("command".to_owned());
        if self.may_only_read() {
            interface.safety.class = ClassFact::ByInput;
        }
        interface.permission.arguments = vec![
            ArgumentMeaning::of("command", ArgumentKind::Command),
            ArgumentMeaning::of("working_directory", ArgumentKind::Directory),
            ArgumentMeaning::of("environment", ArgumentKind::Environment),
        ];
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments = checked_arguments(input)?;
        let command = &arguments.command;
        if command.trim().is_empty() {
            return Err(InputRefusal::invalid("/command", "the command is empty"));
        }
        if command.len() > COMMAND_BYTES {
            let message = format!(
                "the command has {} bytes, the limit is {COMMAND_BYTES}; write it to a file and run that",
                command.len()
            );
            return Err(InputRefusal::invalid("/command", message));
        }
        if command.contains('\0') {
            return Err(InputRefusal::invalid(
                "/command",
                "the command contains a NUL character, which arguments cannot have",
            ));
        }
        if arguments.background && arguments.timeout_seconds.is_some() {
            let message = "it does not apply to background commands; leave it out, and end this one with `process_kill`";
            return Err(InputRefusal::invalid("/timeout_seconds", message));
        }
        if let Some(given) = &arguments.working_directory {
            let refused = self.children.workspace().request(given).err();
            if let Some(refusal) = refused {
                let class = refusal.class();
                let message = refusal.to_string();
                return Err(InputRefusal {
                    class,
                    at: "/working_directory".to_owned(),
                    message,
                });
            }
        }
        for (name, value) in arguments.variables() {
            check_variable(name, value).map_err(|refusal| {
                let hint = "set it in the command itself, as in `NAME=value command`";
                InputRefusal::invalid(
                    format!("/environment/{}", shown(name)),
                    format!("{refusal}; {hint}"),
                )
            })?;
        }
        self.children.check(self.children.settings().profile)
    }

    /// The effects name no path, although a command may write every writable root. A lock on the whole root would make
    /// a test run of minutes block every file call of every session in the workspace, and two agents could never build
    /// at the same time. It would gain little: the file tools replace files in one step and can require the content
    /// that they expect, and background processes hold no locks anyway. In its own session a command runs alone, so the
    /// edits and commands of one agent keep their order.
    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let (class, profile) = self.manner(&input.to().ok()?);
        Some(self.children.effects(Effects::of(class), profile))
    }

    fn sandbox(&self, input: &CallInput, narrowed: Option<SandboxProfile>) -> Option<SandboxPlan> {
        let (_, profile) = self.manner(&input.to().ok()?);
        Some(self.children.plan(profile, narrowed))
    }

    async fn programs(&self, input: &CallInput) -> Result<Vec<ProgramFile>, ToolFailure> {
        let arguments: Arguments = read_arguments(input)?;
        let directory = match &arguments.working_directory {
            None => self.children.workspace().path().to_owned(),
            Some(given) => self.children.workspace().path().join(given),
        };
        let search_path = arguments.environment.get("PATH").map(String::as_str);
        let search_path = search_path.unwrap_or_else(|| self.children.search_path());
        let start = CommandStart {
            directory: &directory,
            search_path,
        };
        self.children
            .program_files(program_files::in_text(
                &arguments.command,
                arguments.variables(),
                &start,
            ))
            .await
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let ran = if arguments.background {
            self.run_in_background(&arguments, &call.context).await
        } else {
            self.run(&arguments, &call.context).await
        };
        ran.map_err(|failure| match failure.code.as_deref() {
            Some("program_missing") => {
                failure.hint("the shell tool requires bash; install it in the host's `PATH`")
            }
            _ => failure,
        })
    }
}

const DESCRIPTION: &str = "\
Runs a command line in bash and returns what it printed, standard output and standard error in one stream in the order \
they were written, with the exit code as the last line. A command that fails is still a result: look at the exit code. \
Each call starts in the workspace with a clean environment, an empty private HOME and /tmp, and standard input closed; \
nothing but files lasts from one call to the next. Commands run in a sandbox: they write only inside the workspace \
(not `.git` and other protected paths) and have no network unless the operator allows it, not even to one another: start a server and talk to it in one command. \
A last line says when the \
sandbox seems to be why something failed. Long output is cut in the middle; `process_read` reads the rest. When the \
time is over, or the command itself is done, everything it started is ended. Use `background: true` for servers and \
for work of many minutes, then `process_status`, `process_read`, `process_write` and `process_kill`. To read, write \
and search files the file and search tools are quicker and safer.";
