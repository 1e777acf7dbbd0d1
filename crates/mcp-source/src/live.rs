//! A connected server, with its program if it has one.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use toolpost_model::{AppliedSandbox, ErrorClass, ToolFailure};
use toolpost_processes::{Children, PathGuards};

use super::{
    McpProtocolEra, McpServer, McpTransport,
    client::{McpConnectError, McpConnectTarget, McpConnection},
    desk::{McpMessageRouter, UpstreamNotice},
    listening,
    process::Program,
};

/// How long a server may take to close its connection.
const FAREWELL: Duration = Duration::from_millis(500);
/// After so many stopped calls in a row without any message of the server, the host checks that it still answers.
const UNHEARD: u32 = 3;
/// How long the answer to a request of the host's own may take.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

pub(super) struct LiveUpstream {
    pub(super) connection: McpConnection,
    pub(super) desk: Arc<McpMessageRouter>,
    program: Option<Program>,
    /// The paths that the program's sandbox hides.
    pub(super) guards: PathGuards,
    /// The rules hide other paths now, according to the last comparison.
    pub(super) outdated: AtomicBool,
    /// The number of calls that use it.
    pub(super) busy: AtomicUsize,
    /// When the last call ended.
    used: Mutex<Instant>,
    /// A call was answered, so a lost connection is renewed without a pause.
    pub(super) proven: AtomicBool,
    unheard: AtomicU32,
    messages: AtomicU64,
    /// The filter of the subscription stream. `None`: there is nothing to subscribe to, or the revision has no such
    /// streams.
    wanted: watch::Sender<Option<Value>>,
    /// Its place among the connections of its server.
    _place: Option<OwnedSemaphorePermit>,
}

/// Starts the program if there is one, and connects. If the revision of a program is unknown, both are tried; a
/// program that does not survive the first request is started again for the other revision.
pub(super) async fn start(
    server: &McpServer,
    children: Option<&Children>,
    era: McpProtocolEra,
    guards: PathGuards,
    told: &Arc<dyn Fn(UpstreamNotice) + Send + Sync>,
) -> Result<LiveUpstream, ToolFailure> {
    let whole = server.connect_timeout;
    let starting = ServerStart {
        server,
        children,
        guards: &guards,
        told,
    };
    let opened = match (&server.transport, era) {
        (McpTransport::Stdio(_), McpProtocolEra::Auto) => {
            // An older program may exit at `server/discover`, or never answer it. The first attempt gets 60 % of the
            // time, so that at least 40 % is left for a new process and `initialize`.
            let began = Instant::now();
            match starting
                .attempt(McpProtocolEra::Auto, whole.mul_f64(0.6))
                .await
            {
                Ok(opened) => opened,
                Err(failure) if failure.class != ErrorClass::DependencyUnavailable => {
                    return Err(failure);
                }
                Err(_) => {
                    let rest = whole
                        .saturating_sub(began.elapsed())
                        .max(whole.mul_f64(0.4));
                    starting.attempt(McpProtocolEra::Sessions, rest).await?
                }
            }
        }
        (McpTransport::Stdio(_) | McpTransport::Http { .. }, era) => {
            starting.attempt(era, whole).await?
        }
    };
    let OpenedConnection {
        connection,
        desk,
        program,
    } = opened;
    Ok(LiveUpstream {
        connection,
        desk,
        program,
        guards,
        outdated: AtomicBool::new(false),
        busy: AtomicUsize::new(0),
        used: Mutex::new(Instant::now()),
        proven: AtomicBool::new(false),
        unheard: AtomicU32::new(0),
        messages: AtomicU64::new(0),
        wanted: watch::Sender::new(None),
        _place: None,
    })
}

/// A server that is being started.
struct ServerStart<'a> {
    server: &'a McpServer,
    children: Option<&'a Children>,
    guards: &'a PathGuards,
    told: &'a Arc<dyn Fn(UpstreamNotice) + Send + Sync>,
}

struct OpenedConnection {
    connection: McpConnection,
    desk: Arc<McpMessageRouter>,
    program: Option<Program>,
}

impl ServerStart<'_> {
    async fn attempt(
        &self,
        era: McpProtocolEra,
        within: Duration,
    ) -> Result<OpenedConnection, ToolFailure> {
        let Self {
            server,
            children,
            guards,
            told,
        } = *self;
        let of_program = matches!(server.transport, McpTransport::Stdio(_));
        let tell = Arc::clone(told);
        let desk = Arc::new(McpMessageRouter::new(
            &server.name,
            of_program,
            move |word| tell(word),
        ));
        let (program, way) = match &server.transport {
            McpTransport::Stdio(program) => {
                let Some(children) = children else {
                    let message = "the host needs a workspace and a launcher to start a program";
                    return Err(ToolFailure::of(ErrorClass::SetupRequired, message).untouched());
                };
                let (program, reading, writing) =
                    Program::start(program, children, guards, &desk).await?;
                (Some(program), McpConnectTarget::Pipes(reading, writing))
            }
            McpTransport::Http { .. } => (None, McpConnectTarget::Http(&server.transport)),
        };
        let opening = McpConnection::open(way, era, server.max_message, Arc::clone(&desk));
        let opened = tokio::time::timeout(within, opening)
            .await
            .unwrap_or(Err(McpConnectError::Silent(within)));
        match opened {
            Ok(connection) => Ok(OpenedConnection {
                connection,
                desk,
                program,
            }),
            Err(error) => {
                let told = match &program {
                    Some(program) => program.end(Duration::ZERO).await,
                    None => None,
                };
                desk.close();
                Err(not_connected(&error, told.as_deref()))
            }
        }
    }
}

fn not_connected(error: &McpConnectError, program: Option<&str>) -> ToolFailure {
    // If the program ended by itself, its exit code and last lines explain more than the failed handshake.
    let message = match program {
        Some(told) if !told.starts_with("the host ended") => format!("{error}; {told}"),
        Some(_) | None => error.to_string(),
    };
    let failure = match error {
        McpConnectError::Setup(_) => ToolFailure::of(ErrorClass::SetupRequired, message),
        McpConnectError::Unauthorized(_) => ToolFailure::of(ErrorClass::SetupRequired, message)
            .code("unauthorized")
            .hint("the operator must set a valid token in the `headers` of this server"),
        McpConnectError::Handshake(_) | McpConnectError::Silent(_) => {
            ToolFailure::of(ErrorClass::DependencyUnavailable, message).code("server_unreachable")
        }
    };
    failure.untouched()
}

impl LiveUpstream {
    /// Holds a place among the connections of its server until it is dropped.
    pub(super) fn at(self, place: OwnedSemaphorePermit) -> Self {
        Self {
            _place: Some(place),
            ..self
        }
    }

    /// The sandbox of its program.
    pub(super) fn applied(&self) -> Option<&AppliedSandbox> {
        self.program.as_ref().map(Program::applied)
    }

    pub(super) fn is_open(&self) -> bool {
        self.desk.is_open()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    /// How long no call has used it.
    pub(super) fn idle(&self) -> Duration {
        match self.busy.load(Ordering::Acquire) {
            0 => self.used.lock().elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Counts a call as running until the guard is dropped.
    pub(super) fn borrow(self: &Arc<Self>) -> InUse {
        self.busy.fetch_add(1, Ordering::AcqRel);
        InUse(Arc::clone(self))
    }

    /// Notes that a call was answered.
    pub(super) fn works(&self) {
        self.proven.store(true, Ordering::Relaxed);
        self.unheard.store(0, Ordering::Relaxed);
    }

    /// Notes that a call was stopped before its answer. A server is stuck if it sends no message during several such
    /// calls and then leaves a plain request unanswered; its connection ends.
    pub(super) fn stopped_waiting(self: &Arc<Self>) {
        let heard = self.desk.messages();
        if self.messages.swap(heard, Ordering::AcqRel) != heard {
            self.unheard.store(0, Ordering::Relaxed);
        }
        if self.unheard.fetch_add(1, Ordering::AcqRel) + 1 < UNHEARD {
            return;
        }
        let live = Arc::downgrade(self);
        tokio::spawn(async move {
            let Some(live) = Weak::upgrade(&live) else {
                return;
            };
            let method = if live.connection.facts.stateless {
                "server/discover"
            } else {
                "ping"
            };
            let asked = live
                .connection
                .request(method, Map::new(), Map::new(), None);
            if tokio::time::timeout(SIGN_OF_LIFE, asked).await.is_err() {
                live.desk
                    .end("it is stuck: calls were stopped, and it no longer answers");
            }
            live.unheard.store(0, Ordering::Relaxed);
        });
    }

    /// Sends the first requests of a new connection. `false`: one stayed unanswered, and the rest were not sent.
    pub(super) async fn introduce(&self, watched: &[String]) -> bool {
        let facts = &self.connection.facts;
        for uri in watched.iter().filter(|_| !facts.stateless) {
            if !self
                .is_answered("resources/subscribe", json!({ "uri": uri }))
                .await
            {
                return false;
            }
        }
        if !facts.stateless && facts.capabilities.get("logging").is_some() {
            return self
                .is_answered("logging/setLevel", json!({ "level": "info" }))
                .await;
        }
        true
    }

    /// Withdraws subscriptions from a server with sessions.
    pub(super) async fn unsubscribe(&self, uris: &[String]) {
        for uri in uris {
            if !self
                .is_answered("resources/unsubscribe", json!({ "uri": uri }))
                .await
            {
                return;
            }
        }
    }

    /// Whether a request of the host's own gets an answer in time; an error is an answer too.
    async fn is_answered(&self, method: &str, params: Value) -> bool {
        let params = params.as_object().cloned().unwrap_or_default();
        let asked = self.connection.request(method, params, Map::new(), None);
        tokio::time::timeout(SIGN_OF_LIFE, asked).await.is_ok()
    }

    /// Opens the subscription stream of a server without sessions, for its lists and these resources.
    pub(super) fn listen(self: &Arc<Self>, uris: &[String]) {
        self.want(uris);
        if self.connection.facts.stateless {
            listening::keep(self, self.wanted.subscribe());
        }
    }

    /// Replaces the watched resources.
    pub(super) fn want(&self, uris: &[String]) {
        self.wanted.send_replace(self.interests(uris));
    }

    /// The filter of the subscription stream.
    fn interests(&self, uris: &[String]) -> Option<Value> {
        let offers = |pointer: &str| {
            self.connection.facts.capabilities.pointer(pointer) == Some(&Value::Bool(true))
        };
        let mut filter = Map::new();
        for (pointer, field) in [
            ("/tools/listChanged", "toolsListChanged"),
            ("/resources/listChanged", "resourcesListChanged"),
            ("/prompts/listChanged", "promptsListChanged"),
        ] {
            if offers(pointer) {
                filter.insert(field.to_owned(), Value::Bool(true));
            }
        }
        if !uris.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        (self.connection.facts.stateless && !filter.is_empty()).then_some(Value::Object(filter))
    }

    /// Closes the connection and ends the program; returns when both have ended.
    pub(super) async fn end(&self) {
        self.connection.close(FAREWELL).await;
        if let Some(program) = &self.program {
            program.end(FAREWELL).await;
        }
    }
}

/// Counts a call on a connection.
pub(super) struct InUse(pub(super) Arc<LiveUpstream>);

impl std::ops::Deref for InUse {
    type Target = Arc<LiveUpstream>;

    fn deref(&self) -> &Arc<LiveUpstream> {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // The time is set before the count falls. In the other order, an idle check in between would read the time of
        // an earlier call and could close the connection too early.
        *self.0.used.lock() = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}
