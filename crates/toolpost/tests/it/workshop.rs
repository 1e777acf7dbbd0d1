//! A host in this process whose tools start real processes, with the binary as launcher.

use std::{
    io::Read,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use toolpost_core::{CallRequest, Session};
use toolpost_model::{
    Event, EventBody, ModelInput, OutputChunk, ResultContent, SurfaceRequest, ToolResult,
};
use toolpost_native::{CommandDeclaration, NativeParts, SpoolDirectory, native_source};
use toolpost_processes::{ChildEnvironment, ChildSettings, HostEnvironment, Workspace};
use toolpost_sandbox::Launcher;
use toolpost_testkit::{CallEventRecorder, TestHost};

/// Far beyond anything that works: turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// A workspace with a host around it.
pub(crate) struct Workshop {
    folder: TempDir,
    pub(crate) host: TestHost,
}

/// What a test changes before its host is made.
pub(crate) struct Plan {
    pub(crate) launcher: Option<Launcher>,
    pub(crate) children: ChildSettings,
    pub(crate) commands: Vec<CommandDeclaration>,
    pub(crate) workspace: PathBuf,
}

pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_toolpost"))
}

impl Workshop {
    pub(crate) async fn new() -> Self {
        Self::planned(|_| {}).await
    }

    pub(crate) async fn planned(change: impl FnOnce(&mut Plan)) -> Self {
        Self::governed(change, |builder| builder).await
    }

    pub(crate) async fn governed(
        change: impl FnOnce(&mut Plan),
        govern: impl FnOnce(toolpost_core::HostBuilder) -> toolpost_core::HostBuilder,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir(&workspace).unwrap();
        let secret = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("SECRET_TOKEN", "not for children".to_owned()),
        ];
        let host = HostEnvironment {
            variables: secret
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            home: None,
        };
        let environment = ChildEnvironment::new(&host, &[], std::slice::from_ref(&workspace));
        let mut plan = Plan {
            launcher: Some(Launcher::new(program())),
            children: ChildSettings {
                environment,
                ..ChildSettings::default()
            },
            commands: Vec::new(),
            workspace: workspace.clone(),
        };
        change(&mut plan);
        let parts = NativeParts {
            launcher: plan.launcher,
            children: plan.children,
            spool: SpoolDirectory::from(OwnedFd::from(std::fs::File::open(folder.path()).unwrap())),
            commands: plan.commands,
            ..NativeParts::on(Arc::new(Workspace::open(&workspace).unwrap()))
        };
        let source = native_source(parts).unwrap();
        let host = TestHost::build(|builder| govern(builder.source(source))).await;
        Self { folder, host }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("w")
            .join(name)
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        tokio::time::timeout(PATIENCE, self.host.call(tool, arguments))
            .await
            .expect("the call ends")
    }

    pub(crate) async fn shell(&self, command: &str) -> ToolResult {
        self.call("shell", serde_json::json!({ "command": command }))
            .await
    }

    /// A session of its own.
    pub(crate) async fn session(&self) -> Arc<Session> {
        self.host
            .host
            .open_session(
                toolpost_model::Principal::agent("test"),
                SurfaceRequest::default(),
            )
            .await
            .unwrap()
    }

    pub(crate) async fn call_in(
        &self,
        session: &Arc<Session>,
        tool: &str,
        arguments: Value,
    ) -> ToolResult {
        let request = CallRequest::new(Arc::clone(session), tool, ModelInput::value(arguments));
        let answer = tokio::time::timeout(PATIENCE, self.host.host.call(request))
            .await
            .expect("the call ends");
        answer.result().clone()
    }

    /// A request whose events are recorded.
    pub(crate) fn watched(&self, tool: &str, arguments: Value) -> (CallRequest, CallEventRecorder) {
        let (events, recorder) = CallEventRecorder::new(4096);
        let mut request = self.host.request(tool, arguments);
        request.delivery.listener = Some(Arc::new(events));
        (request, recorder)
    }
}

/// All text of a result.
#[track_caller]
pub(crate) fn text(result: &ToolResult) -> &str {
    match result.content.first() {
        Some(ResultContent::Text { text }) => text,
        other => panic!("text was expected, there is {other:?} in {result:#?}"),
    }
}

/// The structured content, or what an error has in its place.
#[track_caller]
pub(crate) fn facts(result: &ToolResult) -> &Value {
    let details = || {
        result
            .error
            .as_ref()
            .and_then(|error| error.details.as_ref())
    };
    result
        .structured_content
        .as_ref()
        .or_else(details)
        .unwrap_or_else(|| panic!("facts were expected: {result:#?}"))
}

/// The chunks of output among the events.
pub(crate) fn chunks(events: &[Event]) -> Vec<&OutputChunk> {
    let chunk = |event: &'_ Event| matches!(event.body, EventBody::Output(_));
    let outputs = events.iter().filter(|event| chunk(event));
    outputs
        .map(|event| match &event.body {
            EventBody::Output(chunk) => chunk,
            other => panic!("only output was left: {other:?}"),
        })
        .collect()
}

/// Waits for the first output that holds `words`.
pub(crate) async fn heard(recorder: &mut CallEventRecorder, words: &str) {
    let listening = async {
        loop {
            match recorder.next().await.expect("the call still runs").body {
                EventBody::Output(chunk) if chunk.text.contains(words) => return,
                _ => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, listening)
        .await
        .expect("the words come");
}

/// Proves that every process of a tree is gone: all of them hold the other end of a named pipe, and its reader sees
/// the end only when the last one let go.
pub(crate) struct Tripwire {
    reader: std::thread::JoinHandle<Vec<u8>>,
}

impl Tripwire {
    /// Lays a pipe; commands hold it with `exec 9>NAME`.
    pub(crate) fn lay(workshop: &Workshop, name: &str) -> Self {
        let path = workshop.path(name);
        make_pipe(&path);
        let reader = std::thread::spawn(move || {
            let mut said = Vec::new();
            std::fs::File::open(path)
                .unwrap()
                .read_to_end(&mut said)
                .unwrap();
            said
        });
        Self { reader }
    }

    /// Waits until nobody holds it, and gives what was written to it.
    pub(crate) async fn sprung(self) -> String {
        let joined = tokio::task::spawn_blocking(move || self.reader.join().unwrap());
        let said = tokio::time::timeout(PATIENCE, joined)
            .await
            .expect("something still runs")
            .unwrap();
        String::from_utf8(said).unwrap()
    }
}

fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}
