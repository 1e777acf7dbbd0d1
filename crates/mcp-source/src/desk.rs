//! Routes the messages of one connection: answers to waiting requests, notices to calls, the rest to the host.
//!
//! The server is not trusted. Messages that belong to no request are counted, each kind is reported once, and a server
//! that sends too many loses its connection.

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

/// The period of the count of unsolicited messages.
const WINDOW: Duration = Duration::from_secs(10);
/// The connection ends if a server sends more unsolicited messages than this in one period.
const BEARABLE: usize = 20_000;
/// The most open questions of a server.
const QUESTIONS: usize = 64;
/// The most lines outside of calls that one connection logs.
const LINES: usize = 500;
/// The most progress and log lines of one call.
const CALL_WORDS: usize = 10_000;
/// The most bytes of these lines together.
const CALL_BYTES: usize = 1 << 20;
/// The longest line that is forwarded.
const LINE: usize = 8 * 1024;

/// The reason of a connection that ends because the server no longer accepts its session.
pub(super) const EXPIRED: &str = "its session expired";

/// A notice that belongs to no single call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UpstreamNotice {
    /// A line for the operator.
    Line(String),
    /// The list of tools changed.
    Tools,
    /// The list of resources changed.
    Resources,
    /// The list of prompts changed.
    Prompts,
    /// The resource at this address changed.
    Updated(String),
}

/// Whether a question of a server is admitted.
pub(super) enum UpstreamQuestionAdmission {
    /// It is put to a caller. The notification withdraws it.
    New(Arc<Notify>),
    /// A question with this id is still open.
    Twice,
    /// Too many questions are open.
    TooMuch,
}

/// The answer to a request.
pub(super) type UpstreamAnswer = Result<Value, McpRequestError>;

pub(super) struct AwaitedMcpRequest {
    /// The call that it belongs to, if any.
    pub(super) call: Option<CallContext>,
    /// Set for a subscription; notified when the server acknowledges it.
    pub(super) subscription: Option<Arc<Notify>>,
    waiter: Mutex<Option<oneshot::Sender<UpstreamAnswer>>>,
    /// A part of it may have reached the server.
    pub(super) sent: AtomicBool,
    words: AtomicUsize,
    bytes: AtomicUsize,
    /// The call got the warning that further lines are left out.
    cut: AtomicBool,
    /// Open questions of the server to its caller.
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

    /// Counts a question to its caller as open until the guard is dropped.
    pub(super) fn asking(&self) -> OpenQuestion<'_> {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenQuestion(self)
    }

    /// The call, if its limits allow another forwarded line. At the limit, the call gets one warning.
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
                "the server sent too many messages about this call; the rest is left out",
            );
        }
        None
    }
}

pub(super) struct OpenQuestion<'a>(&'a AwaitedMcpRequest);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(super) struct McpMessageRouter {
    pub(super) server: String,
    waiting: Mutex<AwaitedMcpRequestIndex>,
    told: Box<dyn Fn(UpstreamNotice) + Send + Sync>,
    gone: watch::Sender<Option<Arc<str>>>,
    /// The server no longer accepts the session. Open requests may still be answered, so the connection takes no new
    /// requests and is not cut.
    expired: watch::Sender<bool>,
    /// No more messages will come. For a program, the reason follows when the process ends.
    silent: watch::Sender<bool>,
    of_program: bool,
    nuisance: Mutex<Nuisance>,
    heard: AtomicU64,
    /// Open questions of the server, by their ids. A notification withdraws one.
    questions: Mutex<HashMap<String, Arc<Notify>>>,
    lines: AtomicUsize,
    /// The host closes the connection, so the end is not reported.
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

    /// Registers a request that is about to be sent.
    pub(super) fn await_answer(&self, id: u64, request: &Arc<AwaitedMcpRequest>) {
        self.waiting.lock().add(id, request);
    }

    /// Resolves the request of an answer. `None`: the id is not one of the host's.
    pub(super) fn answer(&self, id: Option<u64>, answer: UpstreamAnswer) {
        let found = id.map(|id| self.waiting.lock().settle(id));
        match found.unwrap_or(UpstreamAnswerMatch::Unknown) {
            UpstreamAnswerMatch::Awaited(request) => request.resolve(answer),
            UpstreamAnswerMatch::Late => {}
            UpstreamAnswerMatch::Unknown => self.nuisance("answers without a request"),
        }
    }

    /// Removes a request that will get no answer.
    pub(super) fn forget(&self, id: u64) {
        self.waiting.lock().settle(id);
    }

    /// Marks a request as stopped: no caller waits any more, and the server may still work on it.
    pub(super) fn abandon(&self, id: u64) {
        self.waiting.lock().abandon(id, Instant::now());
    }

    pub(super) fn of(&self, id: u64) -> Option<Arc<AwaitedMcpRequest>> {
        self.waiting.lock().of(id)
    }

    /// The call of a question that does not name its request: the only open call, or the only one that waits for no
    /// answer of its caller. `None` if the question could belong to another session: a guess such as the latest call
    /// could put it to another principal, with data of the session that it came from.
    pub(super) fn asker(&self) -> Option<Arc<AwaitedMcpRequest>> {
        let mut waiting = self.waiting.lock();
        let now = Instant::now();
        waiting.only(now).or_else(|| waiting.only_unasked(now))
    }

    /// Counts a message of any kind.
    pub(super) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of messages so far.
    pub(super) fn messages(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Forwards progress to its call. The progress token is the id of the request.
    pub(super) fn progress(
        &self,
        token: Option<u64>,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) {
        let Some(slot) = token.and_then(|token| self.of(token)) else {
            return self.nuisance("progress without a running call");
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

    /// Forwards a log line: to the only open call if it can belong to no other, else to the operator.
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
                // Lines beyond the limits count as unsolicited.
                None => self.count(),
            },
            None if matches!(level, LogLevel::Warn | LogLevel::Error) => self.line(text),
            None => self.nuisance("log lines outside of calls"),
        }
    }

    /// Calls `then` for the subscription of this id, if it is open. Notices of a replaced subscription can still
    /// arrive; they are only counted.
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

    /// Forwards a notice that belongs to no call.
    pub(super) fn tell(&self, told: UpstreamNotice) {
        // Each notice can cost the host a listing, so notices count against the limit. The host handles several as
        // one.
        self.count();
        (self.told)(told);
    }

    /// Logs a line for the operator, up to the limit of the connection.
    pub(super) fn line(&self, line: String) {
        let told = self.lines.fetch_add(1, Ordering::Relaxed);
        if told < LINES {
            (self.told)(UpstreamNotice::Line(line));
        } else if told == LINES {
            (self.told)(UpstreamNotice::Line(format!(
                "it wrote more than {LINES} lines; the others are not logged"
            )));
        }
    }

    /// Counts a message that belongs to no request. Each kind is reported once.
    pub(super) fn nuisance(&self, kind: &'static str) {
        let mut nuisance = self.nuisance.lock();
        let first = !nuisance.told.contains(&kind);
        if first {
            nuisance.told.push(kind);
        }
        drop(nuisance);
        if first {
            self.line(format!(
                "it sends {kind}; these are ignored and reported only once"
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
                "it sent more than {BEARABLE} unsolicited messages within {} s",
                WINDOW.as_secs()
            ));
        }
    }

    /// Registers a question of the server, if it is admitted.
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

    /// Ends a question that the server withdrew.
    pub(super) fn question_withdrawn(&self, id: &str) {
        if let Some(waiting) = self.questions.lock().remove(id) {
            waiting.notify_one();
        }
    }

    /// Handles the end of the server's messages.
    pub(super) fn hang_up(&self) {
        // The pipe of a program closes before its exit code and last lines are known, and the first reason is kept. So
        // for a program this only marks the silence; the task that keeps the process then ends the connection with the
        // full reason.
        match self.of_program {
            true => drop(self.silent.send_replace(true)),
            false => self.end("the connection was closed"),
        }
    }

    /// Resolves when no more messages will come.
    pub(super) async fn fell_silent(&self) {
        let mut silent = self.silent.subscribe();
        let mut gone = self.gone.subscribe();
        tokio::select! {
            _ = silent.wait_for(|silent| *silent) => {}
            _ = gone.wait_for(Option::is_some) => {}
        }
    }

    /// Ends the connection. The first reason is kept.
    pub(super) fn end(&self, reason: &str) {
        self.gone.send_if_modified(|gone| {
            let first = gone.is_none();
            if first {
                *gone = Some(reason.into());
            }
            first
        });
    }

    /// Notes that the server no longer accepts the session.
    pub(super) fn expire(&self) {
        self.expired.send_replace(true);
    }

    pub(super) fn is_expired(&self) -> bool {
        *self.expired.borrow()
    }

    /// Whether it takes new requests.
    pub(super) fn is_open(&self) -> bool {
        self.ended().is_none() && !self.is_expired()
    }

    /// Resolves with the reason when it takes no more requests.
    pub(super) async fn left(&self) -> Arc<str> {
        let mut expired = self.expired.subscribe();
        tokio::select! {
            why = self.end_reached() => why,
            _ = expired.wait_for(|expired| *expired) => EXPIRED.into(),
        }
    }

    /// Ends the connection on behalf of the host.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.end("the host closed it");
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The reason of its end, if it ended.
    pub(super) fn ended(&self) -> Option<Arc<str>> {
        self.gone.borrow().clone()
    }

    /// Resolves with the reason when it ended.
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
