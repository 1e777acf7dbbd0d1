//! The traits and types that a tool author implements.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use crate::{
    ArtifactError, ArtifactHeader, ArtifactId, ArtifactSink, BoxFuture, CallInput, CallPort,
    ConsultError, ConsultKinds, ConsultQuestion, ConsultReply, Declaration, Effects, EventBody,
    InputRefusal, InvocationId, LogLevel, OutputChunk, Principal, ProgramFile, Provenance,
    ResourceAccess, ResultContent, SandboxPlan, SandboxProfile, SessionId, Stage, StoredArtifact,
    ToolFailure, ToolId, ToolOutput, ToolProgress, ToolResult, TraceContext,
};

/// One tool.
///
/// ```
/// use toolpost_model::{Declaration, Tool, ToolCall, ToolFailure, ToolOutput};
///
/// struct Greet;
///
/// impl Tool for Greet {
///     fn declaration(&self) -> Declaration {
///         Declaration::new("demo.greet".parse().expect("a fixed id"), "Greets somebody")
///     }
///
///     async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
///         let name = call.input.arguments().str("name").unwrap_or("world");
///         Ok(ToolOutput::text(format!("hello, {name}")))
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The declaration. Asked once, when the tool is registered.
    fn declaration(&self) -> Declaration;

    /// Checks the values, after the schema and before any I/O.
    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let _ = input;
        Ok(())
    }

    /// The effects of this call. `None`: the effects of the declaration's class.
    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let _ = input;
        None
    }

    /// The planned confinement of the process that this call starts, for checks before the call; `narrowed` is the
    /// operator's setting for the tool. `None`: the call starts no process, or the plan cannot be known.
    fn sandbox(&self, input: &CallInput, narrowed: Option<SandboxProfile>) -> Option<SandboxPlan> {
        let _ = (input, narrowed);
        None
    }

    /// The files inside the roots that this call names as program or script, as they are now. The host asks only for a
    /// call that a person decides about: when the question is raised, and again before the call starts on the answer.
    /// An error ends the call, because an approval would not cover the files that run.
    fn programs(
        &self,
        input: &CallInput,
    ) -> impl Future<Output = Result<Vec<ProgramFile>, ToolFailure>> + Send {
        let _ = input;
        std::future::ready(Ok(Vec::new()))
    }

    /// Executes the call. The future is dropped at the deadline, or when the call is canceled and does not stop.
    fn execute(
        &self,
        call: ToolCall,
    ) -> impl Future<Output = Result<ToolOutput, ToolFailure>> + Send;
}

/// [`Tool`] behind a pointer; implemented for every tool.
pub trait DynTool: Send + Sync + 'static {
    /// See [`Tool::declaration`].
    fn declaration(&self) -> Declaration;
    /// See [`Tool::check`].
    fn check(&self, input: &CallInput) -> Result<(), InputRefusal>;
    /// See [`Tool::effects`].
    fn effects(&self, input: &CallInput) -> Option<Effects>;
    /// See [`Tool::sandbox`].
    fn sandbox(&self, input: &CallInput, narrowed: Option<SandboxProfile>) -> Option<SandboxPlan>;
    /// See [`Tool::programs`].
    fn programs<'a>(
        &'a self,
        input: &'a CallInput,
    ) -> BoxFuture<'a, Result<Vec<ProgramFile>, ToolFailure>>;
    /// See [`Tool::execute`].
    fn execute(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolFailure>>;
}

impl<T: Tool> DynTool for T {
    fn declaration(&self) -> Declaration {
        Tool::declaration(self)
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        Tool::check(self, input)
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        Tool::effects(self, input)
    }

    fn sandbox(&self, input: &CallInput, narrowed: Option<SandboxProfile>) -> Option<SandboxPlan> {
        Tool::sandbox(self, input, narrowed)
    }

    fn programs<'a>(
        &'a self,
        input: &'a CallInput,
    ) -> BoxFuture<'a, Result<Vec<ProgramFile>, ToolFailure>> {
        Box::pin(Tool::programs(self, input))
    }

    fn execute(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolFailure>> {
        Box::pin(Tool::execute(self, call))
    }
}

/// One call, as its tool sees it.
pub struct ToolCall {
    /// The arguments, checked.
    pub input: CallInput,
    /// The host's services for the call.
    pub context: CallContext,
}

/// The state of another call.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// The call.
    pub invocation_id: InvocationId,
    /// The tool as the caller named it, where it is on record.
    pub tool: Option<String>,
    /// Its stage, while the call runs.
    pub stage: Option<Stage>,
    /// Its result, after its end. With neither stage nor result, the call began and its end could not be recorded.
    pub result: Option<ToolResult>,
}

/// A tool that a running call may call.
#[derive(Clone, Debug)]
pub struct CallableTool {
    /// Its name on the wire.
    pub name: String,
    /// Its id.
    pub id: ToolId,
    /// Where it comes from.
    pub provenance: Provenance,
    /// Its arguments.
    pub schema: Arc<Value>,
}

/// A call that a running call makes.
#[derive(Clone, Debug)]
pub struct NestedCall {
    /// The tool, by wire name, alias or id.
    pub tool: String,
    /// The arguments: a JSON object.
    pub arguments: Value,
    /// Whether it is a step of the calling call: the mode is applied once, and a person is asked once for the whole
    /// request. A rule that denies the step still denies it. Only host code sets this.
    pub is_step: bool,
}

impl NestedCall {
    /// A call of another tool, with a decision of its own.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            is_step: false,
        }
    }

    /// The same as a step of the calling call.
    #[must_use]
    pub fn as_step(mut self) -> Self {
        self.is_step = true;
        self
    }
}

/// The host's services for a running call, such as events and cancellation.
#[derive(Clone)]
pub struct CallContext(Arc<dyn CallPort>);

impl CallContext {
    /// Wraps the host's side.
    pub fn new(port: Arc<dyn CallPort>) -> Self {
        Self(port)
    }

    /// The call.
    pub fn invocation_id(&self) -> InvocationId {
        self.0.invocation_id()
    }

    /// The session it runs in.
    pub fn session_id(&self) -> &SessionId {
        self.0.session_id()
    }

    /// The caller.
    pub fn principal(&self) -> &Principal {
        self.0.principal()
    }

    /// When the host will stop the work.
    pub fn deadline(&self) -> Instant {
        self.0.deadline()
    }

    /// The call's span, to pass on to other services: in its caller's trace, or in a trace of its own.
    pub fn trace(&self) -> TraceContext {
        self.0.trace()
    }

    /// Whether a cancellation was requested. Long loops should check it now and then.
    pub fn is_canceled(&self) -> bool {
        self.0.is_canceled()
    }

    /// Resolves when a cancellation is requested.
    pub async fn canceled(&self) {
        self.0.canceled().await;
    }

    /// The kinds of question that the caller answers while the call runs.
    pub fn consultable(&self) -> ConsultKinds {
        self.0.around().caller.consultable()
    }

    /// Asks the caller, and waits. The call's deadline pauses meanwhile.
    pub async fn consult(
        &self,
        questions: Vec<ConsultQuestion>,
    ) -> Result<Vec<ConsultReply>, ConsultError> {
        self.0.around().caller.consult(questions).await
    }

    /// Metadata of the caller beside the arguments, for tools that use the same protocol.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.0.around().caller.meta()
    }

    /// Whether the call was decided with a caution ([`Effects::caution`]).
    pub fn cautioned(&self) -> bool {
        self.0.around().rules.cautioned()
    }

    /// Whether the call was decided with a caution that covers this path ([`Effects::path_cautions`]).
    pub fn cautioned_about(&self, path: &Path) -> bool {
        self.0.around().rules.cautioned_about(path)
    }

    /// Whether this call may change a file that steers agents without a question.
    pub fn may_steer(&self, path: &Path) -> bool {
        self.0.around().rules.may_steer(path)
    }

    /// Whether rules hide any path from this call.
    pub fn has_path_rules(&self) -> bool {
        self.0.around().rules.has_path_rules()
    }

    /// Whether rules let this call use a path: absolute, links resolved.
    pub fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        self.0.around().rules.may_use(path, access)
    }

    /// The places of paths that rules hide from this call, each with everything beneath it.
    pub fn kept_places(&self) -> Vec<PathBuf> {
        self.0.around().rules.kept_places()
    }

    /// Whether rules let this call follow a redirect or a link to another URL.
    pub fn may_request(&self, method: &str, url: &str) -> bool {
        self.0.around().rules.may_request(method, url)
    }

    /// The profile that the operator gives this tool's processes.
    pub fn profile(&self) -> Option<SandboxProfile> {
        self.0.around().rules.profile()
    }

    /// The tools that this call could call now: those that its session sees, except the tool itself.
    pub fn callable(&self) -> Vec<CallableTool> {
        self.0.around().calls.callable()
    }

    /// Calls another tool. The nested call has its own decision and record, and names this call as its parent. Its end,
    /// good or bad, is the result; an error means that the call was never made.
    pub async fn call_tool(&self, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        self.0.around().calls.call_tool(call).await
    }

    /// The state of another call of the same principal, after it ends or after `wait`.
    pub async fn look_at_call(
        &self,
        id: InvocationId,
        wait: Duration,
    ) -> Result<CallReport, ToolFailure> {
        self.0.around().calls.look_at_call(id, wait).await
    }

    /// Requests the cancellation of another call of the same principal, and gives its state at that time.
    pub async fn cancel_call(&self, id: InvocationId) -> Result<CallReport, ToolFailure> {
        self.0.around().calls.cancel_call(id).await
    }

    /// Begins an artifact of the result, written as the content arrives, so it need not fit in memory. Secrets are
    /// redacted on the way. A finished artifact is named in the call's result, even if the call fails afterwards.
    pub async fn create_artifact(
        &self,
        name: impl Into<String>,
        media_type: impl Into<String>,
    ) -> Result<Box<dyn ArtifactSink>, ArtifactError> {
        let artifact = ArtifactHeader {
            name: name.into(),
            media_type: media_type.into(),
        };
        self.0.around().artifacts.create_artifact(artifact).await
    }

    /// Opens an artifact that a call of the same principal made.
    pub async fn open_artifact(
        &self,
        id: ArtifactId,
    ) -> Result<Arc<dyn StoredArtifact>, ArtifactError> {
        self.0.around().artifacts.open_artifact(id).await
    }

    /// Passes an event on. Never blocks.
    pub fn emit(&self, body: EventBody) {
        self.0.emit(body);
    }

    /// Reports progress.
    pub fn progress(&self, progress: ToolProgress) {
        self.0.emit(EventBody::Progress(progress));
    }

    /// Describes the current work.
    pub fn status(&self, message: impl Into<String>) {
        self.0.emit(EventBody::Status {
            message: message.into(),
        });
    }

    /// Writes a log line.
    pub fn log(&self, level: LogLevel, message: impl Into<String>) {
        self.0.emit(EventBody::Log {
            level,
            message: message.into(),
        });
    }

    /// Passes on output of a process.
    pub fn output(&self, chunk: OutputChunk) {
        self.0.emit(EventBody::Output(chunk));
    }

    /// Hands over a named piece of the result before the end.
    pub fn artifact(&self, name: impl Into<String>, content: ResultContent) {
        self.0.emit(EventBody::Artifact {
            name: name.into(),
            content,
        });
    }
}
