//! The state of an MCP connection in a relay. After a change of hosts, the relay repeats the handshake and the settings
//! of the session, and sends the open requests again. Tool calls are not repeated: the ids of MCP are no keys for
//! repeats, so the next host could not recognise the call and would run it again. It is unknown whether such a call
//! took effect, and the client is told so.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    asked::McpMethod,
    fault::McpFault,
    result,
    wire::{self, JsonRpcMessage, McpRequestId},
};
use crate::join::{HostChange, HostLine, OpenRequests, RelayedProtocol};

/// The prefix of the ids of the relay's own requests.
const REPLAYED: &str = "toolpost-rejoin-";
/// The most questions of hosts without an answer.
const MOST_QUESTIONS: usize = 256;
/// The most subscriptions that are repeated.
const MOST_SUBSCRIPTIONS: usize = 1_024;

#[derive(Default)]
pub(crate) struct McpRelay {
    /// The latest handshake that the client sent, with its id.
    offered: Option<(String, Bytes)>,
    /// The handshake that a host accepted.
    accepted: Option<Bytes>,
    is_initialized: bool,
    level: Option<Bytes>,
    subscriptions: BTreeMap<String, Bytes>,
    open: OpenRequests,
    /// The ids of the hosts' questions.
    questions: Vec<String>,
}

impl McpRelay {
    fn note_request(
        &mut self,
        id: &McpRequestId,
        method: McpMethod,
        params: Option<&RawValue>,
        line: &Bytes,
    ) {
        match method {
            McpMethod::Initialize => self.offered = Some((id.as_json().to_owned(), line.clone())),
            McpMethod::SetLevel => self.level = Some(line.clone()),
            McpMethod::Subscribe if self.subscriptions.len() < MOST_SUBSCRIPTIONS => {
                if let Some(uri) = uri(params) {
                    self.subscriptions.insert(uri, line.clone());
                }
            }
            McpMethod::Unsubscribe => {
                if let Some(uri) = uri(params) {
                    self.subscriptions.remove(&uri);
                }
            }
            _ => {}
        }
        let line = if method == McpMethod::CallTool {
            None
        } else {
            Some(line)
        };
        self.open.add(id.as_json(), line);
    }

    fn note_answer(
        &mut self,
        id: &McpRequestId,
        outcome: Result<&RawValue, &RawValue>,
    ) -> HostLine {
        let id = id.as_json();
        if id.trim_matches('"').starts_with(REPLAYED) {
            let is_handshake = id.trim_matches('"').strip_prefix(REPLAYED) == Some("0");
            return if is_handshake && outcome.is_err() {
                HostLine::Refused
            } else {
                HostLine::Withhold
            };
        }
        self.open.remove(id);
        if outcome.is_ok()
            && let Some((_, handshake)) = self.offered.take_if(|(offered, _)| offered == id)
        {
            self.accepted = Some(handshake);
        }
        HostLine::Forward
    }

    /// The messages that restore the session at the next host, each under an id of the relay's own.
    fn replayed(&self) -> Vec<Bytes> {
        let Some(handshake) = &self.accepted else {
            return Vec::new();
        };
        let told = self.level.iter().chain(self.subscriptions.values());
        let mut lines: Vec<Bytes> = [handshake]
            .into_iter()
            .chain(told)
            .enumerate()
            .filter_map(|(number, line)| under_id(line, &format!("{REPLAYED}{number}")))
            .collect();
        if self.is_initialized && !lines.is_empty() {
            lines.insert(
                1,
                line(&wire::notification("notifications/initialized", &json!({}))),
            );
        }
        lines
    }
}

impl RelayedProtocol for McpRelay {
    fn note_agent_line(&mut self, line: &Bytes) {
        let Ok(text) = std::str::from_utf8(line) else {
            return;
        };
        match wire::read(text) {
            Ok(JsonRpcMessage::Request { id, method, params }) => {
                self.note_request(&id, McpMethod::read(&method), params, line);
            }
            Ok(JsonRpcMessage::Notification { method, params }) => match &*method {
                "notifications/initialized" => self.is_initialized = true,
                "notifications/cancelled" => {
                    // A request that its client cancels gets no answer.
                    if let Some(id) = cancelled_id(params) {
                        self.open.remove(&id);
                    }
                }
                _ => {}
            },
            Ok(JsonRpcMessage::Response { id, .. }) => {
                self.questions.retain(|asked| asked != id.as_json());
            }
            Err(_) => {}
        }
    }

    fn forget_agent_line(&mut self, line: &Bytes) {
        if let Ok(Ok(JsonRpcMessage::Request { id, .. })) =
            std::str::from_utf8(line).map(wire::read)
        {
            self.open.remove(id.as_json());
        }
    }

    fn note_host_line(&mut self, line: &[u8]) -> HostLine {
        let Ok(text) = std::str::from_utf8(line) else {
            return HostLine::Forward;
        };
        match wire::read(text) {
            Ok(JsonRpcMessage::Response { id, outcome }) => self.note_answer(&id, outcome),
            Ok(JsonRpcMessage::Request { id, .. }) => {
                if self.questions.len() < MOST_QUESTIONS {
                    self.questions.push(id.as_json().to_owned());
                }
                HostLine::Forward
            }
            Ok(JsonRpcMessage::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(id) = cancelled_id(params)
                {
                    self.questions.retain(|asked| *asked != id);
                }
                HostLine::Forward
            }
            Err(_) => HostLine::Forward,
        }
    }

    fn change_host(&mut self) -> HostChange {
        let mut change = HostChange::default();
        for question in self.questions.drain(..) {
            if let Ok(id) = serde_json::from_str::<Value>(&question) {
                let params =
                    json!({ "requestId": id, "reason": "the host that asked has stopped" });
                change.to_agent.push(line(&wire::notification(
                    "notifications/cancelled",
                    &params,
                )));
            }
        }
        let is_modern = self.accepted.is_none();
        for id in self.open.take_interrupted() {
            let answer = wire::answer_text(&id, &result::of_lost_call(is_modern));
            change.to_agent.push(line(&answer));
        }
        if self.is_initialized {
            // The next host's list does not contain the deferred tools that the session discovered.
            let changed = wire::notification("notifications/tools/list_changed", &json!({}));
            change.to_agent.push(line(&changed));
        }
        change.to_host = self.replayed();
        change.to_host.extend(self.open.lines());
        change
    }

    fn refuse(&mut self, text: &[u8], reason: &str) -> Option<Bytes> {
        match wire::read(std::str::from_utf8(text).ok()?) {
            Ok(JsonRpcMessage::Request { id, .. }) => {
                Some(line(&wire::refusal(Some(&id), &McpFault::internal(reason))))
            }
            Ok(JsonRpcMessage::Notification { .. } | JsonRpcMessage::Response { .. }) => None,
            Err((id, fault)) => Some(line(&wire::refusal(id.as_ref(), &fault))),
        }
    }

    fn refuse_open(&mut self, reason: &str) -> Vec<Bytes> {
        let fault = McpFault::internal(reason);
        let open = self.open.take_all();
        open.iter()
            .map(|id| line(&wire::refusal_text(Some(id), &fault)))
            .collect()
    }

    fn refuse_long_line(&self, _head: &[u8], limit: usize) -> Bytes {
        line(&wire::refusal(None, &McpFault::line_too_long(limit)))
    }

    /// An MCP session ends with its host; the client does not know its id.
    fn session(&self) -> Option<&str> {
        None
    }

    /// An MCP client disconnects by closing its end.
    fn is_over(&self) -> bool {
        false
    }
}

fn uri(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Addressed {
        uri: String,
    }
    wire::params::<Addressed>(params)
        .ok()
        .map(|addressed| addressed.uri)
}

fn cancelled_id(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct GivenUp<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    wire::params::<GivenUp<'_>>(params)
        .ok()
        .map(|given_up| given_up.request_id.get().to_owned())
}

/// The same request under another id.
fn under_id(line: &[u8], id: &str) -> Option<Bytes> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    message["id"] = Value::from(id);
    Some(format!("{message}\n").into())
}

fn line(message: &Bytes) -> Bytes {
    [message, &b"\n"[..]].concat().into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::{HostLine, McpRelay, RelayedProtocol};

    fn said(relay: &mut McpRelay, message: &Value) {
        relay.note_agent_line(&Bytes::from(format!("{message}\n")));
    }

    fn heard(relay: &mut McpRelay, message: &Value) -> HostLine {
        relay.note_host_line(format!("{message}\n").as_bytes())
    }

    fn read(lines: &[Bytes]) -> Vec<Value> {
        lines
            .iter()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    fn request(id: u32, method: &str, params: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// The relay of a client after the handshake.
    fn initialized() -> McpRelay {
        let mut relay = McpRelay::default();
        said(
            &mut relay,
            &request(1, "initialize", &json!({ "protocolVersion": "2025-06-18" })),
        );
        heard(
            &mut relay,
            &json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        );
        said(
            &mut relay,
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        );
        relay
    }

    #[test]
    fn the_next_host_is_told_the_handshake_and_what_waits() {
        let mut relay = initialized();
        said(
            &mut relay,
            &request(2, "resources/subscribe", &json!({ "uri": "a:b" })),
        );
        heard(
            &mut relay,
            &json!({ "jsonrpc": "2.0", "id": 2, "result": {} }),
        );
        said(
            &mut relay,
            &request(3, "tools/call", &json!({ "name": "shell" })),
        );
        said(&mut relay, &request(4, "tools/list", &json!({})));
        said(
            &mut relay,
            &request(5, "tools/call", &json!({ "name": "shell" })),
        );
        said(
            &mut relay,
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } }),
        );
        heard(&mut relay, &request(9, "elicitation/create", &json!({})));
        let change = relay.change_host();
        let to_host: Vec<Value> = read(&change.to_host)
            .iter()
            .map(|line| line["method"].clone())
            .collect();
        assert_eq!(
            to_host,
            [
                "initialize",
                "notifications/initialized",
                "resources/subscribe",
                "tools/list"
            ]
        );
        let to_agent = read(&change.to_agent);
        assert_eq!(
            to_agent[0]["params"]["requestId"], 9,
            "the question of the last host is withdrawn"
        );
        assert_eq!(
            (&to_agent[1]["id"], &to_agent[1]["result"]["isError"]),
            (&json!(3), &json!(true))
        );
        assert_eq!(
            to_agent.len(),
            3,
            "a call that its client gave up is not answered: {to_agent:?}"
        );
        for line in read(&change.to_host)
            .iter()
            .filter(|line| line["method"] != "tools/list")
        {
            if let Some(id) = line.get("id") {
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
                assert_eq!(heard(&mut relay, &answer), HostLine::Withhold);
            }
        }
        assert_eq!(
            heard(
                &mut relay,
                &json!({ "jsonrpc": "2.0", "id": 4, "result": {} })
            ),
            HostLine::Forward
        );
        assert_eq!(
            read(&relay.change_host().to_host).len(),
            3,
            "nothing waits any more"
        );
    }

    #[test]
    fn a_handshake_without_an_answer_is_sent_again_as_it_is() {
        let mut relay = McpRelay::default();
        let handshake = request(1, "initialize", &json!({}));
        said(&mut relay, &handshake);
        assert_eq!(read(&relay.change_host().to_host), [handshake]);
        assert_eq!(
            heard(
                &mut relay,
                &json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
            ),
            HostLine::Forward
        );
    }

    #[test]
    fn a_host_that_refuses_the_handshake_ends_the_session() {
        let mut relay = initialized();
        let change = relay.change_host();
        let id = read(&change.to_host)[0]["id"].clone();
        let refused =
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "full" } });
        assert_eq!(heard(&mut relay, &refused), HostLine::Refused);
    }

    #[test]
    fn a_call_that_could_not_be_sent_is_not_lost() {
        let mut relay = initialized();
        let call = Bytes::from(format!(
            "{}\n",
            request(3, "tools/call", &json!({ "name": "echo" }))
        ));
        relay.note_agent_line(&call);
        relay.forget_agent_line(&call);
        assert_eq!(
            read(&relay.change_host().to_agent).len(),
            1,
            "only the changed list is told"
        );
    }
}
