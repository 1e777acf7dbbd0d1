//! The state of an A2E connection in a relay. After a change of hosts, the relay repeats the handshake with the next
//! host, which resumes the session, and sends the open requests again. If an earlier host began a call, the next host
//! answers it from the record.

use bytes::Bytes;
use toolpost_a2e::{
    Body, ErrorCode, ErrorMessage, HandshakeResponse, Message,
    codec::{MessageFraming, MessageHeading, ReaderSide, decode, encode},
};

use super::{tools::LIST_CHANGED, wire::too_large};
use crate::join::{HostChange, HostLine, OpenRequests, RelayedProtocol};

/// The id of the relay's own handshake.
const REPLAYED: &str = "toolpost-rejoin";

/// The state of one agent's conversation.
#[derive(Default)]
pub(crate) struct A2eRelay {
    /// The latest handshake that the agent sent.
    offered: Option<Message>,
    /// The handshake that a host accepted.
    accepted: Option<Message>,
    session: Option<String>,
    open: OpenRequests,
    is_over: bool,
}

impl A2eRelay {
    fn note_handshake(&mut self, line: &[u8]) {
        let Ok(Message {
            body: Body::HandshakeResponse(response),
            ..
        }) = decode(line, ReaderSide::Agent)
        else {
            return;
        };
        let is_offered = self
            .offered
            .as_ref()
            .is_some_and(|offered| offered.id == response.req_id);
        if response.ok && is_offered {
            self.accepted = self.offered.take();
            self.session = Some(response.session_id);
        } else if !response.ok && self.accepted.is_none() {
            // The host ends the conversation.
            self.is_over = true;
        }
    }

    fn refuse_handshake(&mut self, id: &str, reason: &str) -> Bytes {
        self.is_over |= self.accepted.is_none();
        line(Body::HandshakeResponse(HandshakeResponse {
            req_id: id.to_owned(),
            ok: false,
            reason: reason.to_owned(),
            ..HandshakeResponse::default()
        }))
    }

    fn wants_list_changes(&self) -> bool {
        match &self.accepted {
            Some(Message {
                body: Body::HandshakeRequest(request),
                ..
            }) => request.extensions.iter().any(|asked| asked == LIST_CHANGED),
            Some(_) | None => false,
        }
    }
}

impl RelayedProtocol for A2eRelay {
    fn note_agent_line(&mut self, line: &Bytes) {
        let Some(heading) = MessageHeading::read(line) else {
            return;
        };
        match &*heading.kind {
            "handshake/req" => {
                self.offered = decode(line, ReaderSide::Host).ok();
                self.open.add(&heading.id, Some(line));
            }
            "shutdown" => self.is_over = true,
            // The next host answers recorded calls from the record, including calls of plugins.
            _ => self.open.add(&heading.id, Some(line)),
        }
    }

    fn forget_agent_line(&mut self, line: &Bytes) {
        if let Some(heading) = MessageHeading::read(line) {
            self.open.remove(&heading.id);
        }
    }

    fn note_host_line(&mut self, line: &[u8]) -> HostLine {
        let Some(heading) = MessageHeading::read(line).filter(MessageHeading::is_answer) else {
            return HostLine::Forward;
        };
        if heading.req_id == REPLAYED {
            return match decode(line, ReaderSide::Agent) {
                Ok(Message {
                    body: Body::HandshakeResponse(response),
                    ..
                }) if response.ok => HostLine::Withhold,
                Ok(_) | Err(_) => HostLine::Refused,
            };
        }
        self.open.remove(&heading.req_id);
        if heading.kind == "handshake/resp" {
            self.note_handshake(line);
        }
        HostLine::Forward
    }

    fn change_host(&mut self) -> HostChange {
        let mut change = HostChange::default();
        for id in self.open.take_interrupted() {
            let reason = "the host stopped before it answered, and the request is too large to be sent to the next one; \
                 it may or may not have taken effect";
            let error = ErrorMessage::new(ErrorCode::RuntimeError, reason).to(id);
            change.to_agent.push(line(Body::Error(error)));
        }
        if let Some(accepted) = &self.accepted {
            let handshake = Message {
                id: REPLAYED.to_owned(),
                ..accepted.clone()
            };
            change
                .to_host
                .push(encode(&handshake, MessageFraming::Line).into());
        }
        if self.wants_list_changes() {
            change.to_agent.push(line(Body::tool_list_changed()));
        }
        change.to_host.extend(self.open.lines());
        change
    }

    fn refuse(&mut self, line: &[u8], reason: &str) -> Option<Bytes> {
        let heading = MessageHeading::read(line)?;
        match &*heading.kind {
            "handshake/req" => Some(self.refuse_handshake(&heading.id, reason)),
            "shutdown" => {
                self.is_over = true;
                None
            }
            _ => Some(error(&heading.id, reason)),
        }
    }

    fn refuse_open(&mut self, reason: &str) -> Vec<Bytes> {
        let offered = self.offered.take().map(|offered| offered.id);
        let open = self.open.take_all();
        let refused = open.into_iter().map(|id| match &offered {
            Some(offered) if *offered == id => self.refuse_handshake(&id, reason),
            Some(_) | None => error(&id, reason),
        });
        refused.collect()
    }

    fn refuse_long_line(&self, head: &[u8], limit: usize) -> Bytes {
        line(Body::Error(*too_large(head, limit)))
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

fn line(body: Body) -> Bytes {
    encode(&Message::new(body), MessageFraming::Line).into()
}

fn error(id: &str, reason: &str) -> Bytes {
    line(Body::Error(
        ErrorMessage::new(ErrorCode::RuntimeError, reason)
            .to(id)
            .retryable(),
    ))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::{A2eRelay, HostLine, RelayedProtocol};

    fn said(relay: &mut A2eRelay, message: &Value) {
        relay.note_agent_line(&Bytes::from(format!("{message}\n")));
    }

    fn heard(relay: &mut A2eRelay, message: &Value) -> HostLine {
        relay.note_host_line(format!("{message}\n").as_bytes())
    }

    fn read(lines: &[Bytes]) -> Vec<Value> {
        lines
            .iter()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// The relay of an admitted agent.
    fn known() -> A2eRelay {
        let mut relay = A2eRelay::default();
        said(
            &mut relay,
            &json!({ "type": "handshake/req", "id": "h", "agent_caps": ["tools"] }),
        );
        heard(
            &mut relay,
            &json!({ "type": "handshake/resp", "req_id": "h", "session_id": "abc" }),
        );
        relay
    }

    #[test]
    fn the_session_goes_on_and_what_waits_is_sent_again() {
        let mut relay = known();
        assert_eq!(relay.session(), Some("abc"));
        said(
            &mut relay,
            &json!({ "type": "tool/call/req", "id": "c", "tool_name": "echo", "arguments": {} }),
        );
        said(
            &mut relay,
            &json!({ "type": "memory/store/req", "id": "m" }),
        );
        heard(
            &mut relay,
            &json!({ "type": "tool/event", "req_id": "c", "kind": "status", "seq": 1 }),
        );
        let change = relay.change_host();
        let to_host = read(&change.to_host);
        let kinds: Vec<&Value> = to_host.iter().map(|line| &line["type"]).collect();
        assert_eq!(
            kinds,
            ["handshake/req", "tool/call/req", "memory/store/req"]
        );
        assert_eq!(change.to_agent.len(), 0);
        let answer =
            json!({ "type": "handshake/resp", "req_id": to_host[0]["id"], "session_id": "abc" });
        assert_eq!(heard(&mut relay, &answer), HostLine::Withhold);
        let answer =
            json!({ "type": "tool/call/resp", "req_id": "c", "data": { "success": true } });
        assert_eq!(heard(&mut relay, &answer), HostLine::Forward);
        heard(
            &mut relay,
            &json!({ "type": "memory/store/resp", "req_id": "m" }),
        );
        // A call without an id cannot be matched with its answer, so it is not sent again.
        said(
            &mut relay,
            &json!({ "type": "tool/call/req", "tool_name": "echo", "arguments": {} }),
        );
        assert_eq!(
            relay.change_host().to_host.len(),
            1,
            "nothing waits any more"
        );
    }

    #[test]
    fn an_agent_that_leaves_or_is_refused_needs_no_other_host() {
        let mut relay = known();
        assert!(!relay.is_over());
        said(&mut relay, &json!({ "type": "shutdown", "id": "s" }));
        assert!(relay.is_over());
        let mut relay = A2eRelay::default();
        let handshake = json!({ "type": "handshake/req", "id": "h" }).to_string();
        let refusal = relay
            .refuse(handshake.as_bytes(), "other settings")
            .unwrap();
        let [refusal] = &read(&[refusal])[..] else {
            panic!("one answer")
        };
        assert_eq!(
            (&refusal["ok"], &refusal["reason"]),
            (&json!(false), &json!("other settings"))
        );
        assert!(relay.is_over());
    }
}
