//! Routes each message of a server: an answer to its request, a notice to its call, a question to the caller. The task
//! that read the message routes it, so that the last notice of a call cannot come after its answer.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    super::{
        consult::{self, UpstreamQuestionAnswer},
        desk::{McpMessageRouter, UpstreamNotice, UpstreamQuestionAdmission},
    },
    UpstreamWire,
    message::{HostMessage, UpstreamMessage, id_of},
};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;

impl UpstreamWire {
    /// Routes a message. `origin`: the request that got it in its response.
    pub(super) fn route(self: &Arc<Self>, message: UpstreamMessage, origin: Option<u64>) {
        self.desk.heard();
        if self.desk.ended().is_some() {
            return;
        }
        match message {
            // An error without an id can only belong to the single request of a handshake.
            UpstreamMessage::Answer { id, answer } if id.is_null() => {
                if self.context.get().is_none() {
                    self.desk.answer(self.last_id(), answer);
                }
            }
            UpstreamMessage::Answer { id, answer } => self.desk.answer(id_of(&id), answer),
            UpstreamMessage::Question { id, method, params } => {
                self.put_question(id, method, params, origin);
            }
            UpstreamMessage::Notification { method, params } => {
                route_notification(&self.desk, &method, &params);
            }
        }
    }

    /// Puts a question to its caller, in a task of its own: a person may take long to answer, and the reading task
    /// must go on.
    fn put_question(
        self: &Arc<Self>,
        id: Value,
        method: String,
        params: Value,
        origin: Option<u64>,
    ) {
        let key = text_of(&id);
        let withdrawn = match self.desk.question(key.clone()) {
            UpstreamQuestionAdmission::New(withdrawn) => withdrawn,
            UpstreamQuestionAdmission::Twice => {
                let kind = "questions with an id that is still open";
                return self.desk.nuisance(kind);
            }
            UpstreamQuestionAdmission::TooMuch => {
                return self.desk.end("it has too many open questions");
            }
        };
        let wire = Arc::clone(self);
        tokio::spawn(async move {
            let answer = tokio::select! {
                answer = wire.answer_to(&method, params, origin) => answer,
                () = withdrawn.notified() => return,
                _ = wire.desk.end_reached() => return,
            };
            wire.desk.question_answered(&key);
            let _ = wire.send(HostMessage::answer(id, answer)).await;
        });
    }

    async fn answer_to(
        &self,
        method: &str,
        mut params: Value,
        origin: Option<u64>,
    ) -> UpstreamQuestionAnswer {
        let refuse = |code: i32, message: &str| UpstreamQuestionAnswer::Refused {
            code,
            message: message.to_owned(),
        };
        if method == "ping" {
            return UpstreamQuestionAnswer::Value(json!({}));
        }
        let Some(kind) = consult::kind_of(method, &params) else {
            return refuse(METHOD_NOT_FOUND, method);
        };
        let request = match origin {
            Some(id) => self.desk.of(id),
            None => self.desk.asker(),
        };
        let request = request.as_deref();
        let Some((request, call)) =
            request.and_then(|request| Some((request, request.call.as_ref()?)))
        else {
            let why = "the call that this request belongs to is unknown";
            return refuse(INVALID_REQUEST, why);
        };
        if let Value::Object(members) = &mut params {
            // `_meta` concerns only the server and the host.
            members.remove("_meta");
        }
        let _open = request.asking();
        consult::ask(call, &self.desk.server, kind, params).await
    }
}

/// Routes a notification.
fn route_notification(desk: &McpMessageRouter, method: &str, params: &Value) {
    let subscription = &params["_meta"][SUBSCRIPTION_ID];
    match method {
        "notifications/cancelled" => {
            let id = &params["requestId"];
            desk.question_withdrawn(&text_of(id));
            desk.on_subscription(id_of(id), |id, _| desk.answer(Some(id), Ok(Value::Null)));
        }
        "notifications/subscriptions/acknowledged" => {
            desk.on_subscription(id_of(subscription), |_, opened| opened.notify_one());
        }
        _ if !subscription.is_null() => desk.on_subscription(id_of(subscription), |_, _| {
            if let Some(notice) = notice_of(method, params) {
                desk.tell(notice);
            }
        }),
        "notifications/progress" if params["progress"].is_number() => desk.progress(
            id_of(&params["progressToken"]),
            params["progress"].as_f64().unwrap_or_default(),
            params["total"].as_f64(),
            params["message"].as_str().map(str::to_owned),
        ),
        "notifications/message" if params.get("data").is_some() => {
            let level = params["level"].as_str().unwrap_or("info");
            desk.log(level, params["logger"].as_str(), &params["data"]);
        }
        _ => match notice_of(method, params) {
            Some(notice) => desk.tell(notice),
            None => desk.nuisance("notifications of an unknown kind"),
        },
    }
}

/// The notice of a notification that belongs to no call.
fn notice_of(method: &str, params: &Value) -> Option<UpstreamNotice> {
    match method {
        "notifications/tools/list_changed" => Some(UpstreamNotice::Tools),
        "notifications/resources/list_changed" => Some(UpstreamNotice::Resources),
        "notifications/prompts/list_changed" => Some(UpstreamNotice::Prompts),
        "notifications/resources/updated" => {
            Some(UpstreamNotice::Updated(params["uri"].as_str()?.to_owned()))
        }
        _ => None,
    }
}

fn text_of(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
