//! The HTTP tools against real servers on loopback.

mod addresses;
mod bodies;
mod credentials;
mod declared;
mod hostile;
mod pages;
mod redirects;
mod requests;
mod saving;
mod server;

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use toolpost_model::{
    BoxFuture, CallContext, CallPort, DynTool, Effects, ErrorClass, EventBody, InvocationId,
    Principal, ResultContent, SessionId, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::{NameLookup, NetworkSettings, PrivateTarget, Workspace};

use crate::desk::{Failed, input};

pub(crate) use server::{Server, reply};

/// The HTTP tools on an empty workspace.
pub(crate) struct Net {
    home: TempDir,
    tools: HashMap<String, Arc<dyn DynTool>>,
    runtime: Runtime,
}

impl Net {
    /// With nothing private listed.
    pub(crate) fn closed() -> Self {
        Self::with(NetworkSettings::default())
    }

    /// With these servers listed.
    pub(crate) fn open(servers: &[&Server]) -> Self {
        Self::with(listing(servers))
    }

    pub(crate) fn with(settings: NetworkSettings) -> Self {
        let home = TempDir::new().unwrap();
        let workspace = Arc::new(Workspace::open(home.path()).unwrap());
        let named = |tool: &Arc<dyn DynTool>| {
            (
                tool.declaration().tool_id.name().to_owned(),
                Arc::clone(tool),
            )
        };
        let parts = NativeParts {
            network: settings,
            ..NativeParts::on(workspace)
        };
        let tools = native_source(parts).unwrap().tools().map(named).collect();
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        Self {
            home,
            tools,
            runtime,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(name)
    }

    /// The names in the workspace, whatever a call left there.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn tool(&self, name: &str) -> &dyn DynTool {
        self.tools[name].as_ref()
    }

    pub(crate) fn effects(&self, tool: &str, arguments: Value) -> Option<Effects> {
        self.tool(tool).effects(&input(arguments))
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, Failed> {
        self.call_heard(tool, arguments).0
    }

    pub(crate) fn failure(&self, tool: &str, arguments: Value) -> ToolFailure {
        let call = ToolCall {
            input: input(arguments),
            context: CallContext::new(Arc::new(Port::default())),
        };
        self.runtime
            .block_on(self.tool(tool).execute(call))
            .unwrap_err()
    }

    pub(crate) fn call_heard(
        &self,
        tool: &str,
        arguments: Value,
    ) -> (Result<ToolOutput, Failed>, Vec<EventBody>) {
        let tool = self.tool(tool);
        let input = input(arguments);
        let port = Arc::new(Port::default());
        let checked = tool.check(&input).map_err(|refusal| Failed {
            class: refusal.class,
            code: "refused".to_owned(),
            message: refusal.message,
            hint: refusal.at,
            untouched: true,
        });
        let result = checked.and_then(|()| {
            let call = ToolCall {
                input,
                context: CallContext::new(port.clone()),
            };
            let ended = self.runtime.block_on(async {
                let within = tokio::time::timeout(Duration::from_secs(60), tool.execute(call));
                within.await.unwrap_or_else(|_| panic!("the call hangs"))
            });
            ended.map_err(|failure| Failed {
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

    pub(crate) fn request(&self, arguments: Value) -> Result<ToolOutput, Failed> {
        self.call("http_request", arguments)
    }

    pub(crate) fn page(&self, arguments: Value) -> Result<ToolOutput, Failed> {
        self.call("fetch_page", arguments)
    }
}

/// Settings that list these servers.
pub(crate) fn listing(servers: &[&Server]) -> NetworkSettings {
    let private = servers
        .iter()
        .map(|server| PrivateTarget::parse(&server.url("/")).unwrap())
        .collect();
    NetworkSettings {
        private,
        ..NetworkSettings::default()
    }
}

/// Answers of a name server, one list after another; the last one stays.
#[derive(Clone, Default)]
pub(crate) struct Names(
    Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>,
    Arc<Mutex<Vec<String>>>,
);

impl Names {
    pub(crate) fn answer(self, name: &str, answers: &[&[&str]]) -> Self {
        let parsed = answers
            .iter()
            .map(|list| list.iter().map(|text| text.parse().unwrap()).collect())
            .collect();
        self.0.lock().unwrap().insert(name.to_owned(), parsed);
        self
    }

    /// Every name that was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }
}

impl NameLookup for Names {
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.1.lock().unwrap().push(name.clone());
        let mut all = self.0.lock().unwrap();
        let answer = match all.get_mut(&name) {
            Some(lists) if lists.len() > 1 => Ok(lists.remove(0)),
            Some(lists) => Ok(lists[0].clone()),
            None => Err(io::Error::other("no such name")),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The text of an output: its first piece.
pub(crate) fn text(output: &ToolOutput) -> &str {
    match &output.content[0] {
        ResultContent::Text { text } => text,
        other => panic!("text was expected: {other:?}"),
    }
}

/// What comes behind the head of an answer.
pub(crate) fn body(output: &ToolOutput) -> &str {
    text(output).split_once("\n\n").map_or("", |(_, body)| body)
}

pub(crate) fn facts(output: &ToolOutput) -> &Value {
    output.structured.as_ref().unwrap()
}

#[track_caller]
pub(crate) fn refused(result: Result<ToolOutput, Failed>, class: ErrorClass) -> Failed {
    let failed = result.map(|output| output.content).unwrap_err();
    assert_eq!(failed.class, class, "{failed:?}");
    failed
}

/// The host's side of a call that nobody stops.
struct Port {
    session: SessionId,
    principal: Principal,
    events: Mutex<Vec<EventBody>>,
}

impl Default for Port {
    fn default() -> Self {
        Self {
            session: SessionId::new("test"),
            principal: Principal::agent("test"),
            events: Mutex::default(),
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
        Instant::now() + Duration::from_secs(60)
    }

    fn emit(&self, body: EventBody) {
        self.events.lock().unwrap().push(body);
    }

    fn is_canceled(&self) -> bool {
        false
    }

    fn canceled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
