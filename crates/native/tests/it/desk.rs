//! A workspace on disk with something beside it that must stay untouched, and a host just large enough to call
//! tools.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use toolpost_model::{
    Arguments, BoxFuture, CallContext, CallInput, CallPort, CallRules, CallSurroundings, DynTool,
    Effects, ErrorClass, EventBody, InvocationId, Principal, ResourceAccess, ResultContent,
    SessionId, ToolCall, ToolOutput,
};
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::Workspace;

pub(crate) const SECRET: &str = "outside secret";

/// `w/` is the workspace, `outside/` lies beside it.
pub(crate) struct Desk {
    home: TempDir,
    tools: BTreeMap<String, Arc<dyn DynTool>>,
    runtime: Runtime,
}

/// How a call failed, wherever on its way.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) class: ErrorClass,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) untouched: bool,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::opened_as(|home| home.join("w"))
    }

    /// The workspace is opened by the path that `spelled` makes.
    pub(crate) fn opened_as(spelled: impl FnOnce(&Path) -> PathBuf) -> Self {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("w")).unwrap();
        fs::create_dir(home.path().join("outside")).unwrap();
        fs::write(home.path().join("outside/secret.txt"), SECRET).unwrap();
        let root = spelled(home.path());
        Self {
            tools: tools_of(&root),
            home,
            runtime: runtime(),
        }
    }

    /// `prepare` makes what is needed beside the workspace `w` and adds to what the tools work on.
    pub(crate) fn prepared(prepare: impl FnOnce(&Path, Workspace) -> Workspace) -> Self {
        let mut desk = Self::new();
        let home = desk.home.path().canonicalize().unwrap();
        let workspace = prepare(&home, Workspace::open(&home.join("w")).unwrap());
        desk.tools = named(workspace);
        desk
    }

    /// A place beside the workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home
            .path()
            .canonicalize()
            .unwrap()
            .join("w")
            .join(name)
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("outside")
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A file last written to so many seconds after the beginning of 2020.
    pub(crate) fn dated_file(&self, name: &str, content: impl AsRef<[u8]>, seconds: u64) {
        self.file(name, content);
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800 + seconds);
        fs::File::options()
            .append(true)
            .open(self.path(name))
            .unwrap()
            .set_modified(at)
            .unwrap();
    }

    pub(crate) fn tool(&self, name: &str) -> &dyn DynTool {
        self.tools[name].as_ref()
    }

    pub(crate) fn effects(&self, tool: &str, arguments: Value) -> Effects {
        self.tool(tool).effects(&input(arguments)).unwrap()
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, Failed> {
        self.call_with(tool, arguments, Port::new(|_| false)).0
    }

    /// Calls with a host that does something each time the tool looks whether to stop.
    pub(crate) fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        port: Port,
    ) -> (Result<ToolOutput, Failed>, Vec<EventBody>) {
        let tool = self.tool(tool);
        let input = input(arguments);
        let port = Arc::new(port);
        let result = tool.check(&input).map_err(|refusal| Failed {
            class: refusal.class,
            code: String::new(),
            message: refusal.message,
            hint: refusal.at,
            untouched: true,
        });
        let result = result.and_then(|()| {
            let context = CallContext::new(port.clone());
            self.runtime
                .block_on(tool.execute(ToolCall { input, context }))
                .map_err(|failure| Failed {
                    class: failure.class,
                    code: failure.code.unwrap_or_default().into_owned(),
                    message: failure.message,
                    hint: failure.hint.unwrap_or_default(),
                    untouched: failure.untouched == Some(true),
                })
        });
        let events = std::mem::take(&mut *port.events.lock().unwrap());
        (result, events)
    }

    /// Reads the text exactly as it is.
    pub(crate) fn read(&self, path: &str) -> Result<ToolOutput, Failed> {
        self.call(
            "files.read_file",
            json!({ "path": path, "line_numbers": false }),
        )
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn patch(&self, patch: &str) -> Result<ToolOutput, Failed> {
        self.call("files.apply_patch", json!({ "patch": patch }))
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> Result<ToolOutput, Failed> {
        self.call(
            "files.write_file",
            json!({ "path": path, "content": content }),
        )
    }

    /// Everything in the workspace and outside: paths, links and contents.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        snapshot(self.home.path())
    }

    pub(crate) fn outside_is_untouched(&self) {
        let files = snapshot(&self.outside());
        assert_eq!(files.len(), 1, "something was made outside: {files:?}");
        assert_eq!(
            fs::read_to_string(self.outside().join("secret.txt")).unwrap(),
            SECRET
        );
    }
}

pub(crate) fn tools_of(root: &Path) -> BTreeMap<String, Arc<dyn DynTool>> {
    named(Workspace::open(root).unwrap())
}

fn named(workspace: Workspace) -> BTreeMap<String, Arc<dyn DynTool>> {
    let native = native_source(NativeParts::on(Arc::new(workspace))).unwrap();
    native
        .tools()
        .map(|tool| (tool.declaration().tool_id.to_string(), Arc::clone(tool)))
        .collect()
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap()
}

pub(crate) fn input(arguments: Value) -> CallInput {
    CallInput::new(Arguments::from_value(arguments))
}

pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            let what = if kind.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_dir() {
                pending.push(path.clone());
                "/".to_owned()
            } else if kind.is_file() {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            } else {
                "special".to_owned()
            };
            found.insert(path, what);
        }
    }
    found
}

/// All text of an output.
pub(crate) fn text(output: &ToolOutput) -> &str {
    match output.content.as_slice() {
        [ResultContent::Text { text }] => text,
        other => panic!("one piece of text was expected: {other:?}"),
    }
}

pub(crate) fn structured(output: &ToolOutput) -> &Value {
    output.structured.as_ref().unwrap()
}

/// Which paths a call may use.
type PathRules = Box<dyn Fn(&Path, ResourceAccess) -> bool + Send + Sync>;

/// The host's side of a call.
pub(crate) struct Port {
    session: SessionId,
    principal: Principal,
    deadline: Instant,
    looks: AtomicUsize,
    on_look: Box<dyn Fn(usize) -> bool + Send + Sync>,
    rules: Option<PathRules>,
    events: Mutex<Vec<EventBody>>,
}

impl Port {
    /// `on_look` is called with 0, 1, 2 … each time the tool looks; `true` tells it to stop.
    pub(crate) fn new(on_look: impl Fn(usize) -> bool + Send + Sync + 'static) -> Self {
        Self {
            session: SessionId::new("test"),
            principal: Principal::agent("test"),
            deadline: Instant::now() + Duration::from_secs(60),
            looks: AtomicUsize::new(0),
            on_look: Box::new(on_look),
            rules: None,
            events: Mutex::default(),
        }
    }

    /// A host whose rules say which paths a call may use.
    pub(crate) fn ruled(
        rules: impl Fn(&Path, ResourceAccess) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            rules: Some(Box::new(rules)),
            ..Self::new(|_| false)
        }
    }

    /// A host that gives the call until `deadline`.
    pub(crate) fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            ..Self::new(|_| false)
        }
    }
}

impl CallPort for Port {
    fn invocation_id(&self) -> InvocationId {
        InvocationId::new()
    }

    fn session_id(&self) -> &SessionId {
        &self.session
    }

    fn principal(&self) -> &Principal {
        &self.principal
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn emit(&self, body: EventBody) {
        self.events.lock().unwrap().push(body);
    }

    fn is_canceled(&self) -> bool {
        (self.on_look)(self.looks.fetch_add(1, Ordering::SeqCst))
    }

    fn canceled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn around(&self) -> CallSurroundings<'_> {
        CallSurroundings {
            rules: self,
            ..CallSurroundings::default()
        }
    }
}

impl CallRules for Port {
    /// Nobody decides here, so nothing is refused for what nobody knew.
    fn cautioned(&self) -> bool {
        true
    }

    fn has_path_rules(&self) -> bool {
        self.rules.is_some()
    }

    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        let absolute = path.is_absolute() && !path.to_string_lossy().ends_with('/');
        assert!(absolute, "rules compare absolute paths: {path:?}");
        self.rules.as_ref().is_none_or(|rules| rules(path, access))
    }
}
