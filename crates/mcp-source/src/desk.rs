//! Who waits for what on one connection, and where that goes which a server says unasked.
//!
//! Everything here is fed by a stranger: what belongs to nobody is counted and told once, and a server that does little
//! else loses its connection.

mod waiting;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};
use toolpost_model::{CallContext, LogLevel, ToolProgress};

use super::{clean, client::McpRequestError};
use waiting::{AwaitedMcpRequestIndex, UpstreamAnswerMatch};

/// How long the count of what belongs to nobody goes on before it begins anew.
const WINDOW: Duration = Duration::from_secs(10);
/// More in that time than this, and the connection ends.
const BEARABLE: usize = 20_000;
/// How many things a server may ask at the same time.
const QUESTIONS: usize = 64;
/// How many lines that belong to no call are told in the life of a connection.
const LINES: usize = 500;
/// How many progress and log lines one call may be told.
const CALL_WORDS: usize = 10_000;
/// How many bytes all of them may have.
const CALL_BYTES: usize = 1 << 20;
/// The longest line that is passed on.
const LINE: usize = 8 * 1024;

/// Why a connection is left whose server forgot it.
pub(super) const EXPIRED: &str = "its session expired";

/// What concerns no single call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UpstreamNotice {
    /// A line for the operator.
    Line(String),
    /// The tools are not what they were.
    Tools,
    /// The resources are not what they were.
    Resources,
    /// The prompts are not what they were.
    Prompts,
    /// What is found at an address is not what it was.
    Updated(String),
}

/// What is thought of a question.
pub(super) enum UpstreamQuestionAdmission {
    /// It is put to somebody, until this is notified.
    New(Arc<Notify>),
    /// One with its id was not answered yet.
    Twice,
    /// Too many others were not answered yet.
    TooMuch,
}

/// The answer to a request.
pub(super) type UpstreamAnswer = Result<Value, McpRequestError>;

/// A request that waits for its answer.
pub(super) struct AwaitedMcpRequest {
    /// The call it is made for, where there is one.
    pub(super) call: Option<CallContext>,
    /// It asks for notices, and this is notified when the server agrees.
    pub(super) subscription: Option<Arc<Notify>>,
    waiter: Mutex<Option<oneshot::Sender<UpstreamAnswer>>>,
    /// A part of it may have left the host.
    pub(super) sent: AtomicBool,
    words: AtomicUsize,
    bytes: AtomicUsize,
    /// Its call was told that there is more than it is told.
    cut: AtomicBool,
    /// Questions of the server that its caller has not answered yet.
    open: AtomicUsize,
}

impl AwaitedMcpRequest {
    pub(super) fn new(
        call: Option<CallContext>,
        subscription: Option<Arc<Notify>>,
    ) -> (Arc<Self>, oneshot::Receiver<UpstreamAnswer>) {
        let (waiter, answer) = oneshot::channel();
        let request = Self {
            call,
            subscription,
            waiter: Mutex::new(Some(waiter)),
            sent: AtomicBool::new(false),
            words: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            cut: AtomicBool::new(false),
            open: AtomicUsize::new(0),
        };
        (Arc::new(request), answer)
    }

    fn resolve(&self, answer: UpstreamAnswer) {
        if let Some(waiter) = self.waiter.lock().take() {
            let _ = waiter.send(answer);
        }
    }

    /// A question is put to its caller, until what this gives is dropped.
    pub(super) fn asking(&self) -> OpenQuestion<'_> {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenQuestion(self)
    }

    /// Its call, unless that was told too much already, which it is told once.
    fn hearing(&self, bytes: usize) -> Option<&CallContext> {
        let call = self.call.as_ref()?;
        let words = self.words.fetch_add(1, Ordering::Relaxed);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if words < CALL_WORDS && before.saturating_add(bytes) <= CALL_BYTES {
            return Some(call);
        }
        if !self.cut.swap(true, Ordering::Relaxed) {
            call.log(
                LogLevel::Warn,
                "the server says more of this call than is told; the rest is left out",
            );
        }
        None
    }
}

/// A question that was not answered yet.
pub(super) struct OpenQuestion<'a>(&'a AwaitedMcpRequest);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The desk of one connection.
pub(super) struct McpMessageRouter {
    /// The name of the server.
    pub(super) server: String,
    waiting: Mutex<AwaitedMcpRequestIndex>,
    told: Box<dyn Fn(UpstreamNotice) + Send + Sync>,
    gone: watch::Sender<Option<Arc<str>>>,
    /// The server forgot the session. What is under way may still be answered, so that the connection is left and not cut.
    expired: watch::Sender<bool>,
    /// Nothing more comes. Where a program is behind it, its end tells why.
    silent: watch::Sender<bool>,
    of_program: bool,
    nuisance: Mutex<Nuisance>,
    heard: AtomicU64,
    /// What the server asked and was not answered, by its ids. Each is told when the server withdraws it.
    questions: Mutex<HashMap<String, Arc<Notify>>>,
    lines: AtomicUsize,
    /// Nobody should be told of the end: it was wanted.
    closing: AtomicBool,
}

struct Nuisance {
    since: Instant,
    count: usize,
    told: Vec<&'static str>,
}

impl McpMessageRouter {
    pub(super) fn new(
        server: &str,
        of_program: bool,
        told: impl Fn(UpstreamNotice) + Send + Sync + 'static,
    ) -> Self {
        Self {
            server: server.to_owned(),
            silent: watch::Sender::new(false),
            of_program,
            waiting: Mutex::default(),
            told: Box::new(told),
            gone: watch::Sender::new(None),
            expired: watch::Sender::new(false),
            nuisance: Mutex::new(Nuisance {
                since: Instant::now(),
                count: 0,
                told: Vec::new(),
            }),
            heard: AtomicU64::new(0),
            questions: Mutex::default(),
            lines: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        }
    }

    /// A request goes out.
    pub(super) fn await_answer(&self, id: u64, request: &Arc<AwaitedMcpRequest>) {
        self.waiting.lock().add(id, request);
    }

    /// An answer came. `None`: its id is none of the host's.
    pub(super) fn answer(&self, id: Option<u64>, answer: UpstreamAnswer) {
        let found = id.map(|id| self.waiting.lock().settle(id));
        match found.unwrap_or(UpstreamAnswerMatch::Unknown) {
            UpstreamAnswerMatch::Awaited(request) => request.resolve(answer),
            UpstreamAnswerMatch::Late => {}
            UpstreamAnswerMatch::Unknown => self.nuisance("answers that nobody waits for"),
        }
    }

    /// No answer will come.
    pub(super) fn forget(&self, id: u64) {
        self.waiting.lock().settle(id);
    }

    /// Nobody waits for an answer any more, and the server may still be at work.
    pub(super) fn abandon(&self, id: u64) {
        self.waiting.lock().abandon(id, Instant::now());
    }

    /// The request of this id.
    pub(super) fn of(&self, id: u64) -> Option<Arc<AwaitedMcpRequest>> {
        self.waiting.lock().of(id)
    }

    /// The call that a question belongs to which does not say so: the only one under way, or the only one that is not
    /// waiting for an answer already. Nobody's, where it could be another session's.
    pub(super) fn asker(&self) -> Option<Arc<AwaitedMcpRequest>> {
        let mut waiting = self.waiting.lock();
        let now = Instant::now();
        waiting.only(now).or_else(|| waiting.only_unasked(now))
    }

    /// Something came, whatever it is.
    pub(super) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// How many messages came so far: a server that says nothing at all is stuck.
    pub(super) fn messages(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// A call got further. The token of its progress is the id of its request.
    pub(super) fn progress(
        &self,
        token: Option<u64>,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) {
        let Some(slot) = token.and_then(|token| self.of(token)) else {
            return self.nuisance("progress of nothing that runs");
        };
        let message = message
            .map(|text| clean::line(&text, LINE))
            .unwrap_or_default();
        let Some(context) = slot.hearing(message.len()) else {
            return self.count();
        };
        let whole = |value: f64| {
            (value >= 0.0 && value.fract() == 0.0 && value < 1e15).then_some(value as u64)
        };
        let percent = total
            .filter(|total| *total > 0.0)
            .map(|total| (progress / total * 100.0).clamp(0.0, 100.0));
        context.progress(ToolProgress {
            message,
            percent,
            done: whole(progress),
            total: total.and_then(whole),
        });
    }

    /// A log line: of the running call where there is just one and it can be no other's, else for the operator.
    pub(super) fn log(&self, level: &str, logger: Option<&str>, data: &Value) {
        let text = match data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = match logger {
            Some(logger) => format!("{logger}: {text}"),
            None => text,
        };
        let text = clean::line(&text, LINE);
        let level = level_of(level);
        let only = self.waiting.lock().only(Instant::now());
        match only {
            Some(slot) => match slot.hearing(text.len()) {
                Some(call) => call.log(level, text),
                // What is left out is borne only so long.
                None => self.count(),
            },
            None if matches!(level, LogLevel::Warn | LogLevel::Error) => self.line(text),
            None => self.nuisance("log lines beside any call"),
        }
    }

    /// Gives the subscription of this id to `then`, if there is one. Notices of one that was just replaced still come.
    pub(super) fn on_subscription(&self, id: Option<u64>, then: impl FnOnce(u64, &Notify)) {
        let request = id.and_then(|id| Some((id, self.of(id)?)));
        match request
            .as_ref()
            .map(|(id, request)| (*id, &request.subscription))
        {
            Some((id, Some(subscription))) => then(id, subscription),
            Some((_, None)) | None => self.count(),
        }
    }

    /// Something that concerns no call.
    pub(super) fn tell(&self, told: UpstreamNotice) {
        // Many of these cost the host a listing each; whoever hears them takes many for one.
        self.count();
        (self.told)(told);
    }

    /// Tells the operator, but not for ever.
    pub(super) fn line(&self, line: String) {
        let told = self.lines.fetch_add(1, Ordering::Relaxed);
        if told < LINES {
            (self.told)(UpstreamNotice::Line(line));
        } else if told == LINES {
            (self.told)(UpstreamNotice::Line(format!(
                "it wrote more than {LINES} lines; the others are not told"
            )));
        }
    }

    /// Something that belongs to nobody. Told once for each kind.
    pub(super) fn nuisance(&self, kind: &'static str) {
        let mut nuisance = self.nuisance.lock();
        let first = !nuisance.told.contains(&kind);
        if first {
            nuisance.told.push(kind);
        }
        drop(nuisance);
        if first {
            self.line(format!(
                "it sends {kind}; that is ignored, and not told again"
            ));
        }
        self.count();
    }

    fn count(&self) {
        let mut nuisance = self.nuisance.lock();
        if nuisance.since.elapsed() > WINDOW {
            nuisance.since = Instant::now();
            nuisance.count = 0;
        }
        nuisance.count += 1;
        let too_many = nuisance.count > BEARABLE;
        drop(nuisance);
        if too_many {
            self.end(&format!(
                "it sent more than {BEARABLE} messages within {} s that nobody had asked for",
                WINDOW.as_secs()
            ));
        }
    }

    /// The server asks something. Whether it may.
    pub(super) fn question(&self, id: String) -> UpstreamQuestionAdmission {
        let mut questions = self.questions.lock();
        if questions.len() >= QUESTIONS {
            return UpstreamQuestionAdmission::TooMuch;
        }
        match questions.entry(id) {
            Entry::Occupied(_) => UpstreamQuestionAdmission::Twice,
            Entry::Vacant(place) => {
                UpstreamQuestionAdmission::New(Arc::clone(place.insert(Arc::default())))
            }
        }
    }

    pub(super) fn question_answered(&self, id: &str) {
        self.questions.lock().remove(id);
    }

    /// The server does not want to know any more.
    pub(super) fn question_withdrawn(&self, id: &str) {
        if let Some(waiting) = self.questions.lock().remove(id) {
            waiting.notify_one();
        }
    }

    /// Nothing more comes from the other side.
    pub(super) fn hang_up(&self) {
        match self.of_program {
            true => drop(self.silent.send_replace(true)),
            false => self.end("the connection was closed"),
        }
    }

    /// Resolves when nothing more comes, for whatever reason.
    pub(super) async fn fell_silent(&self) {
        let mut silent = self.silent.subscribe();
        let mut gone = self.gone.subscribe();
        tokio::select! {
            _ = silent.wait_for(|silent| *silent) => {}
            _ = gone.wait_for(Option::is_some) => {}
        }
    }

    /// The connection is over. The first reason is the one that counts.
    pub(super) fn end(&self, reason: &str) {
        self.gone.send_if_modified(|gone| {
            let first = gone.is_none();
            if first {
                *gone = Some(reason.into());
            }
            first
        });
    }

    /// The server does not know the session any more.
    pub(super) fn expire(&self) {
        self.expired.send_replace(true);
    }

    pub(super) fn is_expired(&self) -> bool {
        *self.expired.borrow()
    }

    /// Whether it takes requests.
    pub(super) fn is_open(&self) -> bool {
        self.ended().is_none() && !self.is_expired()
    }

    /// Resolves when it takes no more requests, and tells why.
    pub(super) async fn left(&self) -> Arc<str> {
        let mut expired = self.expired.subscribe();
        tokio::select! {
            why = self.end_reached() => why,
            _ = expired.wait_for(|expired| *expired) => EXPIRED.into(),
        }
    }

    /// The host wants no more of it.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.end("the host closed it");
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Why it is over, if it is.
    pub(super) fn ended(&self) -> Option<Arc<str>> {
        self.gone.borrow().clone()
    }

    /// Resolves when it is over and known why.
    pub(super) async fn end_reached(&self) -> Arc<str> {
        let mut gone = self.gone.subscribe();
        let ended = gone
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|gone| gone.clone());
        ended.unwrap_or_else(|| "the connection ended".into())
    }
}

fn level_of(word: &str) -> LogLevel {
    match word {
        "error" | "critical" | "alert" | "emergency" => LogLevel::Error,
        "warning" => LogLevel::Warn,
        "debug" => LogLevel::Debug,
        _ => LogLevel::Info,
    }
}
