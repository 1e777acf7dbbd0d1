//! A declared command as a tool.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use toolpost_model::{
    AccessKind, CallContext, CallInput, CancelSupport, ClassFact, Declaration, EffectClass,
    Effects, ExecutionKind, ExternalMapping, InputRefusal, Lifecycle, OutputStream, ProgramFile,
    SandboxPlan, SandboxProfile, Tool, ToolCall, ToolFailure, ToolId, ToolKind, ToolOutput,
};
use toolpost_processes::{
    ChildProcessSpec, Children, OutputEvents, PathError,
    program_files::{self, CommandStart},
    variable_pairs,
};
use toolpost_sandbox::{StderrTarget, Stdin};

use super::{
    declaration::{CommandDeclaration, CommandOutputFormat},
    error::{CommandError, CommandProblem},
    output::{self, FinishedCommandRun},
    schema,
    template::ArgumentTemplate,
    values::{ParameterValidator, ParameterValues},
};
use crate::{
    declaration::risk_of,
    files::{PathChange, change_effects, read_effects},
    shell::{BackgroundProcesses, ProcessOrigin, ProcessOutputPipe, StartedProcess, run_to_end},
};

/// No limit of the command's own: the host's deadline comes first.
const NO_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct CommandTool {
    declaration: CommandDeclaration,
    id: ToolId,
    argv: Vec<ArgumentTemplate>,
    stdin: Option<ArgumentTemplate>,
    parameters: BTreeMap<String, ParameterValidator>,
    children: Arc<Children>,
    processes: Arc<BackgroundProcesses>,
}

impl CommandTool {
    pub(super) fn new(
        declaration: CommandDeclaration,
        children: Arc<Children>,
        processes: Arc<BackgroundProcesses>,
    ) -> Result<Self, CommandError> {
        let name = declaration.name.clone();
        Self::read(declaration, children, processes).map_err(|problem| CommandError {
            command: name,
            problem,
        })
    }

    fn read(
        declaration: CommandDeclaration,
        children: Arc<Children>,
        processes: Arc<BackgroundProcesses>,
    ) -> Result<Self, CommandProblem> {
        let name = &declaration.name;
        let callable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(callable) {
            return Err(CommandProblem::NameForm);
        }
        let id = ToolId::new("commands", name).map_err(CommandProblem::Name)?;
        let argv: Vec<ArgumentTemplate> = declaration
            .argv
            .iter()
            .map(|one| ArgumentTemplate::parse(one))
            .collect::<Result<_, _>>()?;
        match argv.first().map(ArgumentTemplate::fixed) {
            None | Some(Some("")) => return Err(CommandProblem::NoProgram),
            Some(Some(_)) => {}
            Some(None) => {
                return Err(CommandProblem::ProgramFromParameter {
                    program: declaration.argv[0].clone(),
                });
            }
        }
        let stdin = declaration
            .stdin
            .as_deref()
            .map(ArgumentTemplate::parse)
            .transpose()?;
        let parameters = declaration
            .parameters
            .iter()
            .map(|(name, declared)| {
                Ok((
                    name.clone(),
                    ParameterValidator::new(name, declared.clone())?,
                ))
            })
            .collect::<Result<_, CommandProblem>>()?;
        check_names(&declaration, &argv, stdin.as_ref())?;
        children
            .settings()
            .environment
            .with(variable_pairs(&declaration.environment))
            .map_err(CommandProblem::Environment)?;
        if declaration.success_codes.is_empty() {
            return Err(CommandProblem::NoSuccess);
        }
        if let Some(given) = &declaration.working_directory {
            let refused = children.workspace().request(given).err();
            refused.map_or(Ok(()), |refusal| {
                Err(CommandProblem::Directory(refusal.to_string()))
            })?;
        }
        Ok(Self {
            declaration,
            id,
            argv,
            stdin,
            parameters,
            children,
            processes,
        })
    }

    fn values(&self, input: &CallInput) -> Result<ParameterValues<'_>, InputRefusal> {
        let values = ParameterValues::read(&self.parameters, input.arguments().value())?;
        values.check_sizes(&self.argv, self.stdin.as_ref())?;
        values.check_dashes(&self.argv)?;
        values.check_paths(self.children.workspace())?;
        Ok(values)
    }

    fn profile(&self) -> SandboxProfile {
        self.declaration.profile(self.children.settings().profile)
    }

    fn directory(&self) -> Result<PathBuf, ToolFailure> {
        let workspace = self.children.workspace();
        let Some(given) = &self.declaration.working_directory else {
            return Ok(workspace.path().to_owned());
        };
        let requested = workspace
            .request(given)
            .map_err(|refusal| PathError::from(refusal).into_failure())?;
        let located = workspace
            .locate(&requested)
            .map_err(PathError::into_failure)?;
        Ok(workspace.path().join(located.whole_path()))
    }

    async fn start(
        &self,
        values: &ParameterValues<'_>,
        directory: PathBuf,
        context: &CallContext,
    ) -> Result<StartedProcess, ToolFailure> {
        let stderr = match self.declaration.output {
            CommandOutputFormat::Text => StderrTarget::WithStdout,
            CommandOutputFormat::Json | CommandOutputFormat::Lines => StderrTarget::Piped,
        };
        let child = |environment, confines| ChildProcessSpec {
            argv: values
                .fill(&self.argv)
                .into_iter()
                .map(Into::into)
                .collect(),
            environment,
            directory,
            stdin: if self.stdin.is_some() {
                Stdin::Piped
            } else {
                Stdin::Null
            },
            stderr,
            confines,
        };
        let variables = variable_pairs(&self.declaration.environment);
        StartedProcess::start(&self.children, self.profile(), variables, context, child).await
    }
}

/// Checks that every name in a template is declared, and every parameter used.
fn check_names(
    declaration: &CommandDeclaration,
    argv: &[ArgumentTemplate],
    stdin: Option<&ArgumentTemplate>,
) -> Result<(), CommandProblem> {
    let written = declaration.argv.iter().chain(&declaration.stdin);
    let templates: Vec<(&ArgumentTemplate, &String)> =
        argv.iter().chain(stdin).zip(written).collect();
    for (template, text) in &templates {
        if let Some(name) = template
            .names()
            .find(|name| !declaration.parameters.contains_key(*name))
        {
            let template = (*text).clone();
            return Err(CommandProblem::UnknownParameter {
                template,
                name: name.to_owned(),
            });
        }
    }
    let is_unused = |name: &&String| {
        !templates
            .iter()
            .any(|(template, _)| template.names().any(|used| used == *name))
    };
    match declaration.parameters.keys().find(is_unused) {
        Some(name) => Err(CommandProblem::UnusedParameter { name: name.clone() }),
        None => Ok(()),
    }
}

impl Tool for CommandTool {
    fn declaration(&self) -> Declaration {
        let declared = &self.declaration;
        let mut declaration = Declaration::new(self.id.clone(), declared.description.clone());
        declaration.kind = ToolKind::Shell;
        declaration.toolkit = "commands".to_owned();
        declaration.tags = vec!["command".to_owned(), declared.class.as_str().to_owned()];
        declaration.search_hint = declared.argv.first().cloned().unwrap_or_default();
        if let Some((program, arguments)) = declared.argv.split_first() {
            let template = arguments.to_vec();
            declaration.external_mappings = vec![ExternalMapping {
                template,
                ..ExternalMapping::new("cli", program.clone())
            }];
        }
        declaration.input.schema = Arc::new(schema::of(declared));
        declaration.output.schema = output::schema(declared.output).map(Arc::new);
        if let Some(setup) = self.children.missing_setup() {
            declaration.lifecycle = Lifecycle::RequiresSetup(setup);
        }
        let interface = &mut declaration.interface;
        interface.safety.class = ClassFact::Always(declared.class);
        interface.permission.risk = risk_of(declared.class);
        interface.permission.access = vec![AccessKind::CodeExecution];
        interface.execution.kind = ExecutionKind::LocalProcess;
        interface.execution.streaming = true;
        interface.execution.cancel = CancelSupport::Cooperative;
        interface.rendering.subject_argument = declared.parameters.keys().next().cloned();
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        self.values(input)?;
        self.children.check(self.profile())
    }

    /// The operator declares the effect class; the paths among the arguments are the resources.
    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let mut effects = Effects::of(self.declaration.class);
        let reads = self.declaration.class == EffectClass::Read;
        let workspace = self.children.workspace();
        let values = self.values(input).ok()?;
        for (_, given) in values.paths() {
            effects = match reads {
                true => Effects {
                    uses: [effects.uses, read_effects(workspace, given)?.uses].concat(),
                    ..effects
                },
                false => {
                    change_effects(workspace, effects, PathChange::content(given).revealing())?
                }
            };
        }
        // Other resources that it writes are unknown, so without any path it runs alone in its session.
        effects.concurrency_safe &= reads || !effects.uses.is_empty();
        Some(self.children.effects(effects, self.profile()))
    }

    fn sandbox(&self, _input: &CallInput, narrowed: Option<SandboxProfile>) -> Option<SandboxPlan> {
        Some(self.children.plan(self.profile(), narrowed))
    }

    async fn programs(&self, input: &CallInput) -> Result<Vec<ProgramFile>, ToolFailure> {
        let mut values = self
            .values(input)
            .map_err(|refusal| ToolFailure::of(refusal.class, refusal.message))?;
        values.locate(self.children.workspace())?;
        let directory = self.directory()?;
        let search_path = self.declaration.environment.get("PATH").map(String::as_str);
        let search_path = search_path.unwrap_or_else(|| self.children.search_path());
        let start = CommandStart {
            directory: &directory,
            search_path,
        };
        let variables = variable_pairs(&self.declaration.environment);
        let lookups = program_files::in_words(&values.fill(&self.argv), variables, &start);
        self.children.program_files(lookups).await
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let mut values = self
            .values(&call.input)
            .map_err(|refusal| ToolFailure::of(refusal.class, refusal.message))?;
        values.locate(self.children.workspace())?;
        let directory = self.directory()?;
        let mut started = self
            .start(&values, directory.clone(), &call.context)
            .await?;
        let log = self.processes.new_log();
        let errors = self.processes.new_log();
        let input = self
            .stdin
            .as_ref()
            .and_then(|template| values.fill_one(template));
        let process = &mut started.process;
        let input = process
            .take_stdin()
            .map(|pipe| (pipe, input.unwrap_or_default().into_bytes()));
        let combined = self.declaration.output == CommandOutputFormat::Text;
        let events = |stream| Some(OutputEvents::new(call.context.clone(), stream));
        let first = if combined {
            OutputStream::Combined
        } else {
            OutputStream::Stdout
        };
        let streams = vec![
            ProcessOutputPipe {
                pipe: process.take_stdout(),
                log: &log,
                events: events(first),
            },
            ProcessOutputPipe {
                pipe: process.take_stderr(),
                log: &errors,
                events: events(OutputStream::Stderr),
            },
        ];
        let until = Instant::now() + NO_LIMIT;
        let end = run_to_end(process, streams, input, until, &call.context).await;
        let ran = started.finish(&directory, end, log);
        let command = values.fill(&self.argv).join(" ");
        let origin = ProcessOrigin {
            command,
            description: Some(self.declaration.name.clone()),
        };
        let written = FinishedCommandRun {
            ran: &ran,
            errors: &errors,
            kept_for: (&call.context, &self.processes, origin),
        };
        written.output(&self.declaration).await
    }
}
