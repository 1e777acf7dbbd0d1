//! Reads the output of a bridge process: its lines, its pipes, its end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, future::FusedFuture as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::{OwnedReadHalf, pipe::Receiver},
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use toolpost_model::{CallContext, EventBody, LogLevel, NestedCall, OutputStream};
use toolpost_processes::OutputEvents;
use toolpost_sandbox::SandboxedProcess;

use super::{
    super::{
        CoreInUse,
        plugin::{self, PluginOutlet},
        protocol::{
            BridgeLineTag, BridgeOrder, BridgeOutputStream, BridgeRequest, NumberedBridgeOrder,
            UnsolicitedBridgeLine,
        },
        source::ASK,
    },
    BridgeExit, BridgeRequestRegistry,
};

/// How long a process may clean up after the host has closed its channel.
const LAST_MOMENT: Duration = Duration::from_secs(3);
/// How long to wait for remaining output after the end of the process.
const DRAIN: Duration = Duration::from_millis(200);
/// How much of its standard error is kept for the report of its end.
const LAST_WORDS: usize = 2000;
/// How many lines are read before other tasks get a turn.
const LINES_AT_ONCE: u64 = 64;
/// The most lines outside of calls that are logged in the life of a process.
const MOST_LINES: usize = 500;

/// A notice that belongs to no single call.
#[derive(Debug)]
pub(in super::super) enum BridgeNotice {
    /// A line for the operator.
    Line(String),
    /// The tools of a mount changed.
    Tools { mount: u64 },
    /// A module blocks its event loop where it cannot be canceled.
    Stuck { module: String },
    /// A module registered data.
    Capability {
        mount: u64,
        name: String,
        value: Value,
    },
}

/// The host's side of a running call, for its events and requests.
pub(super) struct CallSide {
    context: CallContext,
    streams: Mutex<[OutputEvents; 2]>,
}

impl CallSide {
    pub(super) fn new(context: CallContext) -> Self {
        let events = |stream| OutputEvents::new(context.clone(), stream);
        let streams = Mutex::new([events(OutputStream::Stdout), events(OutputStream::Stderr)]);
        Self { context, streams }
    }

    fn printed(&self, stream: BridgeOutputStream, bytes: &[u8]) {
        let mut streams = self.streams.lock();
        let events = match stream {
            BridgeOutputStream::Stdout => &mut streams[0],
            BridgeOutputStream::Stderr => &mut streams[1],
        };
        events.add(bytes);
        if events.due().is_some_and(|due| due <= Instant::now()) {
            events.send();
        }
    }

    pub(super) fn finish(&self) {
        self.streams
            .lock()
            .iter_mut()
            .for_each(OutputEvents::finish);
    }
}

/// Reads the output of a process and routes it.
pub(super) struct BridgeOutputReader {
    pub(super) desk: Arc<BridgeRequestRegistry>,
    pub(super) orders: mpsc::WeakUnboundedSender<Vec<u8>>,
    pub(super) told: mpsc::UnboundedSender<BridgeNotice>,
    pub(super) outlet: Arc<PluginOutlet>,
    /// A longer line is not one of the protocol.
    pub(super) longest: usize,
    /// How many lines outside of calls were logged.
    pub(super) lines: AtomicUsize,
}

type BridgeReadySender = oneshot::Sender<Result<CoreInUse, String>>;

/// Runs a process until its end, and reports the end to all waiting requests.
pub(super) async fn keep(
    mut process: SandboxedProcess,
    lines: OwnedReadHalf,
    ears: BridgeOutputReader,
    ready: BridgeReadySender,
    mut ending: mpsc::UnboundedReceiver<String>,
    gone: watch::Sender<Option<Arc<BridgeExit>>>,
) {
    let stdout = process.take_stdout();
    let stderr = process.take_stderr();
    let last_words = Mutex::new(Vec::new());
    let heard = async {
        tokio::join!(
            ears.hear_pipe(stdout, BridgeOutputStream::Stdout, &last_words),
            ears.hear_pipe(stderr, BridgeOutputStream::Stderr, &last_words)
        )
    };
    let mut heard = std::pin::pin!(heard.fuse());
    // A flood on the pipes would use up this task's budget, and the answers would wait for its end.
    let mut lines = std::pin::pin!(tokio::task::unconstrained(ears.hear(lines, Some(ready))));
    let mut unwanted = false;
    let because = loop {
        tokio::select! {
            // The pipes come first. A child of a call writes to a pipe before the tool's answer is written to the
            // socket, but both can be ready when this task wakes up. If the answer were read first, it would end the
            // call, and the output would be logged as belonging to no call. `unconstrained` above is the price of this
            // order.
            biased;
            _ = &mut heard => {}
            why = &mut lines => break why,
            _ = process.wait() => {
                // The last lines may not be read yet.
                break timeout(DRAIN, &mut lines).await.ok().flatten();
            }
            because = ending.recv() => match because {
                Some(because) => break Some(because),
                // The process is no longer needed. The end of its input makes it clean up.
                None => {
                    tokio::select! {
                        _ = process.wait() => {}
                        _ = &mut lines => {}
                        () = async { loop { (&mut heard).await; } } => {}
                        () = tokio::time::sleep(LAST_MOMENT) => {}
                    }
                    unwanted = true;
                    break Some("it is no longer needed".to_owned());
                }
            },
        }
    };
    let ended = match because {
        Some(_) => Some(process.kill().await),
        None => timeout(LAST_MOMENT, process.wait()).await.ok(),
    };
    process.kill().await;
    if !heard.is_terminated() {
        let _ = timeout(DRAIN, heard).await;
    }
    let words = last_words.lock();
    let last_words = String::from_utf8_lossy(&words).into_owned();
    let told = Arc::new(BridgeExit {
        ended,
        because,
        unwanted,
        last_words,
    });
    let _ = gone.send(Some(Arc::clone(&told)));
    ears.desk.fail(&told);
}

impl BridgeOutputReader {
    /// Handles every line. `Some`: the process broke the protocol and must be ended.
    async fn hear(
        &self,
        mut lines: OwnedReadHalf,
        mut ready: Option<BridgeReadySender>,
    ) -> Option<String> {
        let mut buffer: Vec<u8> = Vec::with_capacity(64 << 10);
        let mut looked = 0;
        for turn in 1_u64.. {
            if turn % LINES_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            while let Some(at) = memchr(&buffer[looked..]) {
                let rest = buffer.split_off(looked + at + 1);
                let mut line = std::mem::replace(&mut buffer, rest);
                line.pop();
                looked = 0;
                self.heard(line, &mut ready);
            }
            looked = buffer.len();
            if buffer.len() > self.longest {
                return Some(format!(
                    "it wrote a line of more than {} bytes",
                    self.longest
                ));
            }
            match lines.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
        None
    }

    fn heard(&self, line: Vec<u8>, ready: &mut Option<BridgeReadySender>) {
        let Ok(tag) = serde_json::from_slice::<BridgeLineTag>(&line) else {
            let _ = self.told.send(BridgeNotice::Line(
                "a line of the bridge cannot be read".to_owned(),
            ));
            return;
        };
        if let Some(id) = tag.id {
            if let Some(waiter) = self.desk.waiting.lock().remove(&id) {
                if let Some(call) = &waiter.call {
                    call.finish();
                }
                let _ = waiter.answer.send(Ok(line));
            }
            return;
        }
        match serde_json::from_slice::<UnsolicitedBridgeLine>(&line) {
            Ok(word) => self.word(word, ready),
            Err(error) => {
                let line = format!("a `{}` of the bridge cannot be read: {error}", tag.kind);
                let _ = self.told.send(BridgeNotice::Line(line));
            }
        }
    }

    fn word(&self, word: UnsolicitedBridgeLine, ready: &mut Option<BridgeReadySender>) {
        if let UnsolicitedBridgeLine::Push { mount, .. }
        | UnsolicitedBridgeLine::Capability { mount, .. }
        | UnsolicitedBridgeLine::Tools { mount } = &word
            && !self.desk.mounts.lock().contains(mount)
        {
            return self.line(
                "a module sent a message for another session; the message is ignored".to_owned(),
            );
        }
        match word {
            UnsolicitedBridgeLine::Ready { core, note } => {
                if let Some(note) = note {
                    let _ = self.told.send(BridgeNotice::Line(note));
                }
                if let Some(ready) = ready.take() {
                    let _ = ready.send(Ok(core));
                }
            }
            UnsolicitedBridgeLine::Refused { message } => {
                if let Some(ready) = ready.take() {
                    let _ = ready.send(Err(message));
                }
            }
            UnsolicitedBridgeLine::Ask { ask, call, what } => self.asked(ask, call, what),
            UnsolicitedBridgeLine::Output { call, stream, text } => {
                if let Some(call) = self.desk.call(call) {
                    call.printed(stream, text.as_bytes());
                }
            }
            UnsolicitedBridgeLine::Event {
                call,
                event,
                at,
                data,
            } => {
                if let Some(call) = self.desk.call(call) {
                    let at = at.and_then(|at| at.parse().ok());
                    let body = EventBody::module_event(&event, call.context.session_id(), at, data);
                    call.context.emit(body);
                }
            }
            UnsolicitedBridgeLine::PluginEvent { call, kind, data } => {
                if let Some(call) = self.desk.call(call) {
                    call.context.emit(plugin::event_body(kind, data));
                }
            }
            UnsolicitedBridgeLine::Push { mount, message } => self.outlet.push(mount, message),
            UnsolicitedBridgeLine::Audit { entry } => self.outlet.audit(entry),
            UnsolicitedBridgeLine::Note {
                call,
                level,
                message,
                status,
            } => self.noted(call, &level, message, status),
            UnsolicitedBridgeLine::Capability { mount, name, value } => {
                let _ = self
                    .told
                    .send(BridgeNotice::Capability { mount, name, value });
            }
            UnsolicitedBridgeLine::Mounting { mount, place } => {
                self.desk
                    .mounting
                    .lock()
                    .entry(mount)
                    .or_default()
                    .insert(place);
            }
            UnsolicitedBridgeLine::Settled { mount, place } => {
                self.desk
                    .mounting
                    .lock()
                    .entry(mount)
                    .or_default()
                    .remove(&place);
            }
            UnsolicitedBridgeLine::Stuck { module } => {
                let _ = self.told.send(BridgeNotice::Stuck { module });
            }
            UnsolicitedBridgeLine::Tools { mount } => {
                let _ = self.told.send(BridgeNotice::Tools { mount });
            }
        }
    }

    fn noted(&self, call: Option<u64>, level: &str, message: String, status: bool) {
        match call.and_then(|call| self.desk.call(call)) {
            Some(call) if status => call.context.status(message),
            Some(call) => call.context.log(level_of(level), message),
            None => self.line(message),
        }
    }

    /// Logs a line for the operator, up to the limit.
    fn line(&self, line: String) {
        if self.lines.fetch_add(1, Ordering::Relaxed) < MOST_LINES {
            let _ = self.told.send(BridgeNotice::Line(line));
        }
    }

    /// Serves the request of a call in a task of its own, beside the other messages.
    fn asked(&self, ask: u64, call: u64, what: BridgeRequest) {
        let Some(orders) = self.orders.upgrade() else {
            return;
        };
        let Some(call) = self.desk.call(call) else {
            send(
                &orders,
                BridgeOrder::Refuse {
                    ask,
                    error: "the call has ended".to_owned(),
                },
            );
            return;
        };
        tokio::spawn(async move {
            let nested = match &what {
                BridgeRequest::Tool { tool, arguments } => {
                    NestedCall::new(tool.clone(), arguments.clone())
                }
                BridgeRequest::Approval { prompt, options } => {
                    NestedCall::new(ASK, json!({ "question": prompt, "options": options }))
                }
                BridgeRequest::Message { plugin, message } => plugin::nested_call(plugin, message),
            };
            let order = match (call.context.call_tool(nested).await, what) {
                (Ok(result), BridgeRequest::Tool { .. }) => {
                    let told = toolpost_amplifier::of_result(&result);
                    let mut value = told.to_value();
                    value["text"] = json!(result.model_text());
                    BridgeOrder::Answer { ask, value }
                }
                (Ok(result), BridgeRequest::Approval { .. }) => {
                    let reason = result.error.as_ref().map(|error| error.message.clone());
                    let value =
                        json!({ "approved": result.outcome.is_success(), "reason": reason });
                    BridgeOrder::Answer { ask, value }
                }
                (Ok(result), BridgeRequest::Message { message, .. }) => {
                    let answered = plugin::nested_answer(&message, &result);
                    BridgeOrder::Answer {
                        ask,
                        value: json!({ "message": answered }),
                    }
                }
                (Err(failure), _) => BridgeOrder::Refuse {
                    ask,
                    error: format!("{}: {}", failure.class, failure.message),
                },
            };
            send(&orders, order);
        });
    }

    /// Output that bypasses Python, of libraries and of children. It belongs to the running call if there is exactly
    /// one.
    async fn hear_pipe(
        &self,
        pipe: Option<Receiver>,
        stream: BridgeOutputStream,
        last_words: &Mutex<Vec<u8>>,
    ) {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = vec![0; 16 << 10];
        loop {
            let Some(length) = pipe
                .read(&mut buffer)
                .await
                .ok()
                .filter(|length| *length > 0)
            else {
                return;
            };
            let bytes = &buffer[..length];
            if stream == BridgeOutputStream::Stderr {
                let mut kept = last_words.lock();
                kept.extend_from_slice(bytes);
                let over = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..over);
            }
            match self.desk.only_call() {
                Some(call) => call.printed(stream, bytes),
                None => {
                    let text = String::from_utf8_lossy(bytes);
                    let lines = text.lines().filter(|line| !line.trim().is_empty());
                    lines.for_each(|line| self.line(line.to_owned()));
                }
            }
        }
    }
}

fn send(orders: &mpsc::UnboundedSender<Vec<u8>>, order: BridgeOrder<'_>) {
    let mut line = serde_json::to_vec(&NumberedBridgeOrder { id: None, order }).unwrap_or_default();
    line.push(b'\n');
    let _ = orders.send(line);
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

fn level_of(word: &str) -> LogLevel {
    match word {
        "error" | "critical" => LogLevel::Error,
        "warning" => LogLevel::Warn,
        "debug" => LogLevel::Debug,
        _ => LogLevel::Info,
    }
}
