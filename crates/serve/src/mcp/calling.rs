//! `tools/call`, and all other requests that a tool answers.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolpost_core::{
    CallRequest, CallTimeLimits, EventDelivery, EventInterest, EventListener, Patience,
    RecordedResult,
};
use toolpost_model::{
    ApprovalStatus, BoxFuture, ConsultKind, ConsultableCaller, ErrorClass, Event, EventBody,
    InvocationId, LogLevel, ModelInput, ToolProgress, ToolResult,
};

use super::{
    approving, artifacts,
    asked::McpRequest,
    bridge::ConsultBridge,
    deferral::{self, DeferralTool},
    exchange::{ExchangeOutlet, ExchangeResult, NotificationWishes},
    fault::McpFault,
    meta::{McpClientCapabilities, McpLogLevel, RequestMeta},
    peer::McpPeer,
    result, wire,
};
use crate::http::formats::promised_output;

/// The time that an operator has for an answer in the client. The call itself waits less.
const OPERATOR_PATIENCE: Duration = Duration::from_secs(600);

/// Answers `tools/call`.
pub(super) async fn call(
    peer: &McpPeer,
    mut asked: McpRequest,
    outlet: &ExchangeOutlet,
) -> ExchangeResult {
    match deferral::meant(peer, asked.name()?) {
        Some(DeferralTool::Search) => return deferral::search(peer, &asked).await,
        Some(DeferralTool::Call) => {
            asked = match deferral::unwrap(peer, asked) {
                Ok(asked) => asked,
                Err(outcome) => return outcome,
            };
        }
        None => {}
    }
    let tool = asked.name()?.to_owned();
    let input = ModelInput::Text(asked.arguments.take().unwrap_or_else(|| "{}".into()));
    let McpCallAnswer { answer, lacked } = run(peer, tool, input, &mut asked.meta, outlet).await;
    let result = answer.result();
    let Some(error) = &result.error else {
        let promised = promised(peer, result).await;
        return Ok(result::of_call(result, promised.as_ref(), peer.version));
    };
    if error.class == ErrorClass::UnknownTool {
        let hint = error
            .hint
            .as_deref()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        return Err(McpFault::invalid_params(format!("{}{hint}", error.message)));
    }
    match lacked {
        Some(kind) => Err(missing_capability(kind)),
        None => Ok(result::of_call(result, None, peer.version)),
    }
}

/// The structured content of a result that was stored as an artifact, if the tool's output schema promises the client
/// such content.
async fn promised(peer: &McpPeer, result: &ToolResult) -> Option<Value> {
    if result.structured_content.is_some() || result.artifacts.is_empty() {
        return None;
    }
    let surface = peer.face.host.surface(&peer.session);
    let (entry, _) = surface.find(result.tool_id.as_ref()?.as_str())?;
    promised_output(entry.declaration())?;
    artifacts::structured(peer, result).await
}

/// The result of a call, and the kind of question that its client does not support. Only the stateless era reports that
/// kind.
pub(super) struct McpCallAnswer {
    pub(super) answer: Arc<RecordedResult>,
    pub(super) lacked: Option<ConsultKind>,
}

pub(super) fn missing_capability(kind: ConsultKind) -> McpFault {
    McpFault::missing_capability(&match kind {
        ConsultKind::Elicitation => json!({ "elicitation": {} }),
        ConsultKind::UrlElicitation => json!({ "elicitation": { "url": {} } }),
        ConsultKind::Sampling => json!({ "sampling": {} }),
        ConsultKind::Roots => json!({ "roots": {} }),
    })
}

/// Runs a tool for a request, with the request's id, caller and notification wishes.
pub(super) async fn run(
    peer: &McpPeer,
    tool: String,
    input: ModelInput,
    meta: &mut RequestMeta,
    outlet: &ExchangeOutlet,
) -> McpCallAnswer {
    let bridge = Arc::new(ConsultBridge::to(peer, outlet));
    let patience = Patience::Approval(peer.face.settings.approval_wait);
    let mut call = CallRequest::new(Arc::clone(&peer.session), tool, input)
        .record_face(peer.came_by)
        .identify(std::mem::take(&mut meta.identity))
        .limit_times(CallTimeLimits::of_patience(patience))
        .consult(Arc::clone(&bridge) as Arc<dyn ConsultableCaller>);
    call.meta = meta.for_the_tool();
    let operator = peer.may_approve().then(|| Arc::clone(&bridge));
    let wishes = NotificationWishes {
        progress_token: meta.progress_token.take(),
        level: peer.level,
    };
    let hears = wishes.progress_token.is_some() || wishes.level.is_some();
    // A client of the stateless era may repeat its request with an answer and then request other notifications.
    let may_come_back = peer.stay.is_none() && peer.can != McpClientCapabilities::default();
    *outlet.wishes.lock() = wishes;
    let ear = |asks| {
        Arc::new(McpCallListener {
            outlet: outlet.clone(),
            asks,
            last: Mutex::new(None),
        })
    };
    let answer = match operator {
        None => {
            if hears || may_come_back {
                call = call.notify(ear(None));
            }
            peer.face.host.call(call).await
        }
        Some(operator) => {
            let (asks, asked) = mpsc::channel(4);
            with_operator(peer, call.notify(ear(Some(asks))), operator, asked).await
        }
    };
    let lacked = bridge
        .lacked()
        .filter(|_| peer.is_modern() && answer.result().is_error);
    McpCallAnswer { answer, lacked }
}

/// Runs a call and asks the operator behind the client when the call needs approval. The call waits no longer than any
/// other, but the operator may answer later.
async fn with_operator(
    peer: &McpPeer,
    call: CallRequest,
    operator: Arc<ConsultBridge>,
    mut asked: mpsc::Receiver<InvocationId>,
) -> Arc<RecordedResult> {
    // When the second call runs, the answer to its question is there.
    let again = call.clone();
    let mut work = std::pin::pin!(peer.face.host.call(call));
    let mut asking: Option<BoxFuture<'static, bool>> = None;
    let answer = loop {
        let answering = async {
            match asking.as_mut() {
                Some(asking) => asking.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = &mut work => break answer,
            _ = answering => asking = None,
            Some(id) = asked.recv() => {
                asking = Some(ask(peer, &operator, id));
            }
        }
    };
    // A question that was asked at the very end of the wait is still sent to the operator.
    let unasked = asked.try_recv().ok();
    let asking = asking.or_else(|| unasked.map(|id| ask(peer, &operator, id)));
    let class = answer.result().error.as_ref().map(|error| error.class);
    let Some(asking) = asking.filter(|_| class == Some(ErrorClass::ApprovalPending)) else {
        return answer;
    };
    let heard = tokio::time::timeout(OPERATOR_PATIENCE, asking);
    match &peer.stay {
        // This client holds its request open, so it gets its answer now. A late answer of the operator applies when the
        // same call is sent again.
        Some(stay) => {
            let over = stay.over.clone();
            tokio::spawn(async move { over.run_until_cancelled(heard).await });
            answer
        }
        // This client already got the question as its answer and holds no request open until it returns with the
        // operator's answer. Then the call is made again.
        None => match heard.await {
            Ok(true) => peer.face.host.call(again).await,
            Ok(false) | Err(_) => answer,
        },
    }
}

fn ask(
    peer: &McpPeer,
    operator: &Arc<ConsultBridge>,
    id: InvocationId,
) -> BoxFuture<'static, bool> {
    Box::pin(approving::ask(peer.clone(), Arc::clone(operator), id))
}

/// Sends the events of a call that the client requested.
struct McpCallListener {
    outlet: ExchangeOutlet,
    asks: Option<mpsc::Sender<InvocationId>>,
    /// The last progress that was sent: progress must grow.
    last: Mutex<Option<f64>>,
}

impl McpCallListener {
    fn tell(&self, method: &str, params: &Value) -> EventDelivery {
        if self.outlet.mention(wire::notification(method, params)) {
            EventDelivery::Taken
        } else {
            EventDelivery::Lost
        }
    }

    fn progress(&self, done: Option<f64>, total: Option<f64>, message: &str) -> EventDelivery {
        let Some(token) = self.outlet.wishes.lock().progress_token.clone() else {
            return EventDelivery::Taken;
        };
        let progress = {
            let mut last = self.last.lock();
            let next = match (*last, done) {
                (None, done) => done.unwrap_or_default(),
                (Some(last), Some(done)) if done > last => done,
                // A message without a number still advances the progress, by a very small step.
                (Some(last), _) => last + 0.001,
            };
            *last = Some(next);
            next
        };
        let mut params = json!({ "progressToken": token, "progress": number(progress) });
        if let Some(total) = total {
            params["total"] = number(total);
        }
        if !message.is_empty() {
            params["message"] = json!(message);
        }
        self.tell("notifications/progress", &params)
    }

    fn log(&self, level: McpLogLevel, logger: &str, data: &Value) -> EventDelivery {
        if self
            .outlet
            .wishes
            .lock()
            .level
            .is_none_or(|least| level < least)
        {
            return EventDelivery::Taken;
        }
        let params = json!({ "level": level.as_str(), "logger": logger, "data": data });
        self.tell("notifications/message", &params)
    }
}

/// Writes whole numbers as integers.
fn number(value: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is checked to be whole and small"
    )]
    let whole = value as i64;
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(whole)
    } else {
        json!(value)
    }
}

impl EventListener for McpCallListener {
    fn wants(&self) -> EventInterest {
        EventInterest::ToolEvents
    }

    fn hear(&self, event: Event) -> EventDelivery {
        match event.body {
            EventBody::Progress(ToolProgress {
                message,
                percent,
                done,
                total,
            }) => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "a progress is shown, not counted with"
                )]
                let (done, total) = match (done, percent) {
                    (Some(done), _) => (Some(done as f64), total.map(|total| total as f64)),
                    (None, Some(percent)) => (Some(percent), Some(100.0)),
                    (None, None) => (None, total.map(|total| total as f64)),
                };
                self.progress(done, total, &message)
            }
            EventBody::Status { message } => self.progress(None, None, &message),
            EventBody::Log { level, message } => {
                self.log(McpLogLevel::of(level), "tool", &Value::from(message))
            }
            EventBody::Custom { name, mut data } if name == EventBody::MODULE_EVENT => {
                if let Some(fields) = data.as_object_mut() {
                    fields.insert("invocation_id".to_owned(), json!(event.invocation_id));
                }
                self.log(
                    McpLogLevel::of(LogLevel::Info),
                    EventBody::MODULE_EVENT,
                    &data,
                )
            }
            EventBody::Approval(ApprovalStatus::Pending { ask_id, .. }) => {
                if let Some(asks) = &self.asks {
                    let _ = asks.try_send(ask_id);
                }
                self.progress(None, None, "waits for a person's approval")
            }
            EventBody::Approval(ApprovalStatus::Granted { .. })
            | EventBody::Stage { .. }
            | EventBody::Artifact { .. }
            | EventBody::Kept(_)
            | EventBody::Output(_)
            | EventBody::Custom { .. }
            | EventBody::Message { .. } => EventDelivery::Taken,
        }
    }
}
