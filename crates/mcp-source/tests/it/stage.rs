//! A host with an MCP server.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use globset::GlobSet;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use toolpost_core::{EventListener, HostBuilder, MemoryPins, PinStore};
use toolpost_mcp_source::{
    McpNewToolPolicy, McpParts, McpProgram, McpProtocolEra, McpServer, McpSharing, McpSource,
    McpStartPolicy, McpTransport,
};
use toolpost_model::{
    Event, EventBody, SandboxProfile, SandboxTier, SourceHealth, ToolResult, Visibility, WireNaming,
};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

/// A host, and the folder its server works in.
pub(crate) struct Stage {
    pub(crate) test: TestHost,
    pub(crate) folder: TempDir,
}

/// What a test wants.
pub(crate) struct Wanted {
    pub(crate) server: McpServer,
    pub(crate) pins: Arc<dyn PinStore>,
    pub(crate) folder: TempDir,
    pub(crate) tier: SandboxTier,
}

/// The launcher that lies beside the tests.
pub(crate) fn launcher(tier: SandboxTier) -> Launcher {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("toolpost-launch");
    assert!(
        program.exists(),
        "hint: cargo build -p toolpost-sandbox --bin toolpost-launch"
    );
    Launcher::with_tier_at_most(program, tier)
}

pub(crate) fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it")
        .join(file)
}

impl Wanted {
    /// The server of this folder, in a mode. It counts its starts in `starts`.
    pub(crate) fn new(mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let args = [
            "-I".as_ref(),
            "-S".as_ref(),
            fixture("server.py").as_os_str(),
            mode.as_ref(),
            path.join("starts").as_os_str(),
        ]
        .map(|arg| arg.to_str().unwrap().to_owned());
        let program = McpProgram {
            command: "/usr/bin/python3".to_owned(),
            args: args.to_vec(),
            directory: None,
            profile: SandboxProfile::WorkspaceWrite,
            environment: BTreeMap::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            reads: None,
        };
        Self {
            server: server(McpTransport::Stdio(Box::new(program))),
            pins: Arc::new(MemoryPins::default()),
            folder,
            tier: SandboxTier::A,
        }
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut McpServer)) -> Self {
        change(&mut self.server);
        self
    }

    pub(crate) fn parts(&self) -> McpParts {
        let path = self.folder.path().canonicalize().unwrap();
        McpParts {
            server: self.server.clone(),
            launcher: Some(launcher(self.tier)),
            children: ChildSettings::default(),
            workspace: Some(Arc::new(Workspace::open(&path).unwrap())),
            pins: Arc::clone(&self.pins),
        }
    }

    pub(crate) async fn start(self) -> Stage {
        self.start_in(|builder| builder).await
    }

    /// In a host with further settings.
    pub(crate) async fn start_in(self, change: impl FnOnce(HostBuilder) -> HostBuilder) -> Stage {
        let source = McpSource::new(self.parts());
        let test = TestHost::build(|builder| change(builder.source(source))).await;
        Stage {
            test,
            folder: self.folder,
        }
    }
}

/// A server that is reached so, with settings that suit tests.
pub(crate) fn server(transport: McpTransport) -> McpServer {
    McpServer {
        name: "fix".to_owned(),
        transport,
        era: McpProtocolEra::Auto,
        naming: WireNaming::Namespaced,
        sharing: McpSharing::Host,
        start: McpStartPolicy::Lazy,
        new_tools: McpNewToolPolicy::FirstUse,
        allow: None,
        deny: GlobSet::empty(),
        connect_timeout: Duration::from_secs(20),
        call_timeout: None,
        idle_stop: None,
        max_message: 2 << 20,
    }
}

impl Stage {
    pub(crate) async fn new(mode: &str) -> Self {
        Wanted::new(mode).start().await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.test.call(tool, arguments).await
    }

    pub(crate) async fn call_within(&self, tool: &str, within: Duration) -> ToolResult {
        let mut request = self.test.request(tool, serde_json::json!({}));
        request.times.timeout = Some(within);
        self.test.host.call(request).await.result().clone()
    }

    /// The result, and the events on the way to it.
    pub(crate) async fn watched(
        &self,
        tool: &str,
        arguments: Value,
    ) -> (ToolResult, Vec<EventBody>) {
        let (ear, mut events) = Ear::new();
        let mut request = self.test.request(tool, arguments);
        request.delivery.listener = Some(Arc::new(ear));
        let result = self.test.host.call(request).await.result().clone();
        let mut heard = Vec::new();
        while let Ok(event) = events.try_recv() {
            heard.push(event.body);
        }
        (result, heard)
    }

    /// Wire names of what is listed.
    pub(crate) fn tools(&self) -> Vec<String> {
        let surface = self.test.host.surface(&self.test.session);
        let offered = surface
            .all()
            .filter(|(_, visibility)| !matches!(visibility, Visibility::Blocked(_)));
        offered.map(|(entry, _)| entry.name().to_owned()).collect()
    }

    pub(crate) fn health(&self) -> SourceHealth {
        let mut reports = self.test.host.sources();
        reports.retain(|report| report.name == "fix");
        reports.remove(0).health
    }

    /// What is said to be missing.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.test
            .host
            .notices()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// How often the program was started.
    pub(crate) fn starts(&self) -> u64 {
        fs::metadata(self.folder.path().join("starts")).map_or(0, |file| file.len())
    }
}

/// Hears what a call says.
pub(crate) struct Ear(mpsc::UnboundedSender<Event>);

impl Ear {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (sender, events) = mpsc::unbounded_channel();
        (Self(sender), events)
    }
}

impl EventListener for Ear {
    fn hear(&self, event: Event) -> toolpost_core::EventDelivery {
        let _ = self.0.send(event);
        toolpost_core::EventDelivery::Taken
    }
}

/// Processes of this machine whose command line has these words.
pub(crate) fn processes(words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().parse::<u32>().is_ok() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(words) {
                found.push(format!("{}: {line}", name.to_string_lossy()));
            }
        }
    }
    found
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let given_up = tokio::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(tokio::time::Instant::now() < given_up, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
