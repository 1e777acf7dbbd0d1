//! A module that is a program of its own: started by the launcher with a port to serve on, and restarted after it has
//! died. Once it reports that it is ready, it is a service like any other.
//!
//! Its port must be reachable from outside the sandbox, so the program shares the host's network under every profile.
//! A profile that prevents file writes still applies.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    pin::pin,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    net::unix::pipe::Receiver,
    sync::{oneshot, watch},
    task::JoinSet,
    time::timeout,
};
use toolpost_model::{AppliedSandbox, ErrorClass, ResourceAccess, SandboxProfile, ToolFailure};
use toolpost_processes::{ChildProcessSpec, ChildSettings, Children, Workspace, variable_pairs};
use toolpost_sandbox::{
    CommandExit, Confines, Launcher, SandboxRoot, SandboxedProcess, StderrTarget, Stdin,
};

use super::{
    connection::{GrpcChannel, GrpcConnection},
    endpoint::GrpcEndpoint,
};

/// How long a program may take until it reports that it is ready.
const READY: Duration = Duration::from_secs(10);
/// The most output it may write before that.
const PREAMBLE: u64 = 64 * 1024;
/// The tail of a dead program's output, kept for error messages.
const LAST_WORDS: usize = 2 * 1024;
/// The pause after a program's first death; it doubles after each further one.
const REST: Duration = Duration::from_millis(250);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// After running this long, a program is restarted without a pause.
const LIVED: Duration = Duration::from_secs(60);
/// How long to wait for the end of a program after its connection broke.
const HEARD: Duration = Duration::from_millis(500);

/// The inputs for starting a module's program.
pub struct SidecarParts {
    /// The launcher of the program.
    pub launcher: Option<Launcher>,
    /// The settings of the process. The profile is the operator's profile for modules.
    pub children: ChildSettings,
    /// Its working folder.
    pub workspace: Arc<Workspace>,
    /// Variables for its environment.
    pub variables: BTreeMap<String, String>,
    /// Folders that it may write beside the workspace.
    pub writable: Vec<PathBuf>,
}

pub(super) struct GrpcSidecar {
    program: PathBuf,
    root: PathBuf,
    children: Children,
    variables: BTreeMap<String, String>,
    writable: Vec<PathBuf>,
    opened: Arc<AtomicU64>,
    state: tokio::sync::Mutex<SidecarState>,
}

#[derive(Default)]
struct SidecarState {
    running: Option<Arc<RunningSidecar>>,
    deaths: u32,
    not_before: Option<Instant>,
}

struct RunningSidecar {
    connection: GrpcChannel,
    applied: AppliedSandbox,
    last_words: LastWords,
    ended: watch::Receiver<Option<CommandExit>>,
    since: Instant,
    /// Dropping it ends the program.
    _stop: oneshot::Sender<()>,
}

impl GrpcSidecar {
    pub(super) fn new(
        program: PathBuf,
        root: PathBuf,
        parts: SidecarParts,
        opened: Arc<AtomicU64>,
    ) -> Self {
        let SidecarParts {
            launcher,
            children,
            workspace,
            variables,
            writable,
        } = parts;
        let children = Children::new(launcher, children, workspace);
        let state = tokio::sync::Mutex::default();
        Self {
            program,
            root,
            children,
            variables,
            writable,
            opened,
            state,
        }
    }

    /// A connection to the program, which is started if it does not run.
    pub(super) async fn live(&self) -> Result<GrpcConnection, ToolFailure> {
        let running = self.running().await?;
        running.connection.live().await.map_err(|error| {
            let message = format!("the module's program runs but does not answer: {error}");
            ToolFailure::of(ErrorClass::DependencyUnavailable, message)
                .code("not_sent")
                .untouched()
        })
    }

    async fn running(&self) -> Result<Arc<RunningSidecar>, ToolFailure> {
        let mut state = self.state.lock().await;
        if let Some(running) = &state.running {
            if running.ended.borrow().is_none() {
                return Ok(Arc::clone(running));
            }
            let lived = running.since.elapsed() >= LIVED;
            state.died(lived);
        }
        if let Some(wait) = state
            .not_before
            .and_then(|at| at.checked_duration_since(Instant::now()))
        {
            if wait > REST {
                let message = format!(
                    "the module's program ended {} times in a row, and restarts later",
                    state.deaths
                );
                let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let failure = ToolFailure::of(ErrorClass::DependencyUnavailable, message);
                return Err(failure.code("program_rests").untouched().after_ms(millis));
            }
            tokio::time::sleep(wait).await;
        }
        match self.start().await {
            Ok(running) => Ok(Arc::clone(state.running.insert(Arc::new(running)))),
            Err(failure) => {
                state.died(false);
                Err(failure)
            }
        }
    }

    async fn start(&self) -> Result<RunningSidecar, ToolFailure> {
        let variables = variable_pairs(&self.variables);
        let environment = self.children.settings().environment.with(variables)?;
        // The port is free now, but another process may bind it before the program does. So a connection to it does
        // not prove that the program is at the other end: the program must first report `READY` with this port.
        let port = free_port()?;
        let argv = vec![
            self.program.clone().into(),
            "--port".into(),
            port.to_string().into(),
        ];
        let child = ChildProcessSpec {
            argv,
            environment,
            directory: self.children.workspace().path().to_owned(),
            stdin: Stdin::Null,
            stderr: StderrTarget::Piped,
            confines: self.confines(),
        };
        let mut process = self.children.start(child).await?;
        let last_words = LastWords::default();
        let mut listeners = JoinSet::new();
        if let Some(stderr) = process.take_stderr() {
            listeners.spawn(last_words.clone().listen(stderr));
        }
        let mut stdout = process.take_stdout().map(BufReader::new);
        let first = first_of(&mut process, &mut stdout).await;
        if first != FirstWord::Ready(port) {
            if first == FirstWord::End {
                // A program that closed its output is about to end. A short wait gets its exit code.
                let _ = timeout(HEARD, process.wait()).await;
            }
            let ended = process.kill().await;
            listened(listeners).await;
            return Err(self
                .not_ready(first, port, ended, &last_words)
                .confined(process.applied().clone()));
        }
        if let Some(stdout) = stdout {
            listeners.spawn(last_words.clone().listen(stdout));
        }
        let endpoint = GrpcEndpoint::local(port)?;
        let applied = process.applied().clone();
        let (stop, ended) = keep(process, listeners);
        let connection = GrpcChannel::new(endpoint, Arc::clone(&self.opened));
        Ok(RunningSidecar {
            connection,
            applied,
            last_words,
            ended,
            since: Instant::now(),
            _stop: stop,
        })
    }

    fn confines(&self) -> Confines {
        let wanted = self.children.settings().profile;
        let profile = match wanted {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::Network => {
                SandboxProfile::Network
            }
            SandboxProfile::None => SandboxProfile::None,
        };
        let mut confines = self.children.operators_confines(profile);
        if wanted == SandboxProfile::ReadOnly {
            for root in &mut confines.roots {
                root.access = ResourceAccess::Read;
            }
        }
        confines.readable.push(self.root.clone());
        let own = self.writable.iter().map(|path| SandboxRoot {
            path: path.clone(),
            access: ResourceAccess::Write,
        });
        confines.roots.extend(own);
        confines
    }

    fn not_ready(
        &self,
        first: FirstWord,
        port: u16,
        ended: CommandExit,
        words: &LastWords,
    ) -> ToolFailure {
        let why = match first {
            FirstWord::Ready(other) => {
                format!("it printed `READY:{other}` instead of `READY:{port}`")
            }
            FirstWord::Error(text) => format!("it printed `ERROR:{text}`"),
            FirstWord::Silence => {
                format!(
                    "it did not print `READY:{port}` within {} seconds",
                    READY.as_secs()
                )
            }
            FirstWord::End => format!("it ended before it was ready ({})", described(ended)),
        };
        let program = self.program.display();
        let message = format!(
            "the module's program `{program}` did not start: {why}{}",
            words.told()
        );
        ToolFailure::of(ErrorClass::DependencyUnavailable, message)
            .code("program_not_ready")
            .untouched()
    }

    /// The sandbox of the program, if it runs.
    pub(super) async fn applied(&self) -> Option<AppliedSandbox> {
        self.state
            .lock()
            .await
            .running
            .as_ref()
            .map(|running| running.applied.clone())
    }

    /// The end of the program, if that broke the connection.
    pub(super) async fn end(&self) -> Option<String> {
        let running = self.state.lock().await.running.clone()?;
        let mut ended = running.ended.clone();
        let ended = timeout(HEARD, ended.wait_for(Option::is_some))
            .await
            .ok()?
            .ok()?;
        let ended = (*ended)?;
        Some(format!(
            "the module's program ended ({}){}",
            described(ended),
            running.last_words.told()
        ))
    }

    /// Stops new calls on a connection that refused one.
    pub(super) async fn forget(&self, gone: &GrpcConnection) {
        if let Some(running) = &self.state.lock().await.running {
            running.connection.forget(gone);
        }
    }

    /// The current connection, if the program runs.
    pub(super) async fn open_now(&self) -> Option<GrpcConnection> {
        let running = self.state.lock().await.running.clone()?;
        if running.ended.borrow().is_some() {
            return None;
        }
        running.connection.live().await.ok()
    }

    pub(super) async fn stop(&self) {
        let Some(running) = self.state.lock().await.running.take() else {
            return;
        };
        let mut ended = running.ended.clone();
        drop(running);
        let _ = timeout(HEARD * 4, ended.wait_for(Option::is_some)).await;
    }
}

impl SidecarState {
    fn died(&mut self, lived: bool) {
        self.running = None;
        self.deaths = if lived {
            1
        } else {
            self.deaths.saturating_add(1)
        };
        let rest = REST
            .saturating_mul(1 << self.deaths.saturating_sub(1).min(10))
            .min(LONGEST_REST);
        self.not_before = Some(Instant::now() + rest);
    }
}

/// Watches a program until it exits or is stopped. Its end is reported after its last output was read.
fn keep(
    mut process: SandboxedProcess,
    listeners: JoinSet<()>,
) -> (oneshot::Sender<()>, watch::Receiver<Option<CommandExit>>) {
    let (stop, stopped) = oneshot::channel();
    let (tell, ended) = watch::channel(None);
    tokio::spawn(async move {
        let how = tokio::select! {
            ended = process.wait() => ended,
            _ = stopped => process.kill().await,
        };
        // Dropping the process kills the processes that it left running.
        drop(process);
        listened(listeners).await;
        let _ = tell.send(Some(how));
    });
    (stop, ended)
}

/// Waits for the tasks that read the pipes of a dead program. Its pipes are closed, so that takes no time.
async fn listened(mut listeners: JoinSet<()>) {
    let _ = timeout(HEARD, async {
        while listeners.join_next().await.is_some() {}
    })
    .await;
}

/// The first relevant line of a program, also if the program exited right after it.
async fn first_of(
    process: &mut SandboxedProcess,
    stdout: &mut Option<BufReader<Receiver>>,
) -> FirstWord {
    let said = async {
        match stdout {
            Some(stdout) => first_word(stdout).await,
            None => FirstWord::End,
        }
    };
    let mut said = pin!(said);
    tokio::select! {
        said = timeout(READY, &mut said) => return said.unwrap_or(FirstWord::Silence),
        _ = process.wait() => {}
    }
    timeout(HEARD, said).await.unwrap_or(FirstWord::End)
}

fn described(ended: CommandExit) -> String {
    match (ended.code, ended.signal) {
        _ if ended.out_of_memory => "out of memory".to_owned(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "cause unknown".to_owned(),
    }
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// The first relevant line of a program's output.
#[derive(Debug, PartialEq, Eq)]
enum FirstWord {
    Ready(u16),
    Error(String),
    End,
    Silence,
}

/// Reads until the program reports its state. Other lines before that are ignored.
async fn first_word(stdout: &mut BufReader<Receiver>) -> FirstWord {
    let mut lines = stdout.take(PREAMBLE);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
            return FirstWord::End;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if let Some(port) = text
            .strip_prefix("READY:")
            .and_then(|port| port.trim().parse().ok())
        {
            return FirstWord::Ready(port);
        }
        if let Some(error) = text.strip_prefix("ERROR:") {
            return FirstWord::Error(error.trim().chars().take(LAST_WORDS).collect());
        }
    }
}

/// The tail of a program's output.
#[derive(Clone, Default)]
struct LastWords(Arc<Mutex<VecDeque<u8>>>);

impl LastWords {
    async fn listen(self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Some(length) = stream
            .read(&mut buffer)
            .await
            .ok()
            .filter(|length| *length > 0)
        {
            let mut kept = self.0.lock();
            kept.extend(&buffer[..length]);
            let excess = kept.len().saturating_sub(LAST_WORDS);
            kept.drain(..excess);
        }
    }

    /// The tail as the end of a message; empty if there is none.
    fn told(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match text.trim() {
            "" => String::new(),
            text => format!("; its last output: {text}"),
        }
    }
}
