//! Requests that wait until their client returns with answers: questions in the stateless era.
//!
//! The call keeps waiting in this host, and the client carries only a sealed name for it. The alternative, to run the
//! call again with the answers, would execute the part before the question twice, and would lose the locks and the
//! state that the call held when it asked.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use toolpost_model::{ConsultKind, ConsultQuestion, ConsultReply, ModelInput, Principal};
use uuid::Uuid;

use super::{
    asked::{McpMethod, McpRequest},
    exchange::{McpExchange, NotificationWishes, QuestionRound},
    fault::McpFault,
    seal::{RoundTicket, SealBinding, SealKey},
    wire::{self, McpReply},
};

/// The most waiting requests, of all callers and of one caller.
const MOST: usize = 1_024;
const MOST_OF_ONE: usize = 128;
/// The time that a client has to return. The call itself may give up earlier.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

pub(super) struct WaitingRounds {
    key: SealKey,
    since: Instant,
    waiting: Mutex<HashMap<Uuid, WaitingExchange>>,
}

struct WaitingExchange {
    exchange: McpExchange,
    principal: Principal,
    round: u64,
    until: Instant,
    questions: Vec<ConsultQuestion>,
    answers: oneshot::Sender<Vec<ConsultReply>>,
}

/// A request that continues with its answers, or must be asked again.
pub(super) enum RoundContinuation {
    GoesOn(McpExchange),
    AskedAgain(McpReply),
}

impl Default for WaitingRounds {
    fn default() -> Self {
        Self {
            key: SealKey::random(),
            since: Instant::now(),
            waiting: Mutex::default(),
        }
    }
}

impl WaitingRounds {
    /// Keeps a request with questions, and returns the result that contains them.
    pub(super) fn keep(
        &self,
        mut exchange: McpExchange,
        round: QuestionRound,
        principal: &Principal,
        digest: &[u8; 32],
    ) -> Result<McpReply, McpFault> {
        exchange.go_on_alone();
        // The client receives no notifications until it returns, and then requests its own.
        exchange.heed(NotificationWishes::default());
        let QuestionRound { questions, answers } = round;
        let principal = principal.clone();
        let until = Instant::now() + PATIENCE;
        let waiting = WaitingExchange {
            exchange,
            principal,
            round: 1,
            until,
            questions,
            answers,
        };
        self.put(Uuid::new_v4(), waiting, digest)
    }

    fn put(
        &self,
        id: Uuid,
        waiting: WaitingExchange,
        digest: &[u8; 32],
    ) -> Result<McpReply, McpFault> {
        let ticket = RoundTicket {
            exchange: id,
            round: waiting.round,
            expires: self.age_at(waiting.until),
        };
        let state = self.key.seal(ticket, &bound(&waiting.principal, digest));
        let told = input_required(&waiting.questions, &state);
        self.sweep();
        let mut table = self.waiting.lock();
        let of_one = table
            .values()
            .filter(|kept| kept.principal == waiting.principal)
            .count();
        if table.len() >= MOST || of_one >= MOST_OF_ONE {
            drop(table);
            // Dropping the exchange cancels its call, which must not happen under the lock.
            drop(waiting);
            return Err(McpFault::internal(
                "too many requests are waiting for answers",
            ));
        }
        table.insert(id, waiting);
        Ok(told)
    }

    /// The age of this host at a moment, in milliseconds.
    fn age_at(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.since).as_millis()).unwrap_or(u64::MAX)
    }

    /// Finds the request that a client returns to, and passes it the answers.
    pub(super) fn take_up(
        &self,
        state: &str,
        answers: &Map<String, Value>,
        principal: &Principal,
        digest: &[u8; 32],
    ) -> Result<RoundContinuation, McpFault> {
        let refused = || {
            McpFault::invalid_params(
                "`requestState` was not issued by this host for this request, or has expired",
            )
        };
        let ticket = self
            .key
            .open(state, &bound(principal, digest))
            .ok_or_else(refused)?;
        if ticket.expires <= self.age_at(Instant::now()) {
            return Err(refused());
        }
        let mut waiting = {
            let mut table = self.waiting.lock();
            // The state of an earlier round names the same request, but its questions were answered already.
            match table.get(&ticket.exchange) {
                Some(kept) if kept.round == ticket.round && kept.principal == *principal => {}
                Some(_) | None => return Err(refused()),
            }
            table.remove(&ticket.exchange).ok_or_else(refused)?
        };
        let complete = waiting
            .questions
            .iter()
            .all(|question| is_answered(question, answers));
        if !complete {
            waiting.round += 1;
            return self
                .put(ticket.exchange, waiting, digest)
                .map(RoundContinuation::AskedAgain);
        }
        let answer = |question: &ConsultQuestion| {
            let value = answers.get(&question.key).cloned().unwrap_or_default();
            ConsultReply {
                key: question.key.clone(),
                value,
            }
        };
        // If the call has given up meanwhile, its end comes next.
        let answered = waiting.questions.iter().map(answer).collect();
        let _ = waiting.answers.send(answered);
        Ok(RoundContinuation::GoesOn(waiting.exchange))
    }

    /// Removes the requests whose clients did not return in time. A call that no longer waits for its answer continues,
    /// and its client can still fetch the result.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let gone: Vec<WaitingExchange> = {
            let mut table = self.waiting.lock();
            let gone: Vec<Uuid> = table
                .iter()
                .filter(|(_, kept)| kept.until <= now)
                .map(|(id, _)| *id)
                .collect();
            gone.iter().filter_map(|id| table.remove(id)).collect()
        };
        // Dropped outside of the lock, because dropping cancels their calls.
        drop(gone);
    }
}

fn bound<'a>(principal: &'a Principal, digest: &'a [u8; 32]) -> SealBinding<'a> {
    SealBinding {
        role: principal.role.as_str(),
        principal: principal.name.as_str(),
        request: digest,
    }
}

/// The digest of a request: its method, the name or address, and the arguments. Equal requests have equal digests.
pub(super) fn digest(asked: &McpRequest) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let method: &[u8] = match asked.method {
        McpMethod::ReadResource => b"read",
        McpMethod::GetPrompt => b"prompt",
        McpMethod::CallTool => b"call",
        // None of these methods asks questions.
        McpMethod::Initialize
        | McpMethod::Ping
        | McpMethod::SetLevel
        | McpMethod::Discover
        | McpMethod::Listen
        | McpMethod::ListTools
        | McpMethod::ListResources
        | McpMethod::ListTemplates
        | McpMethod::Subscribe
        | McpMethod::Unsubscribe
        | McpMethod::ListPrompts
        | McpMethod::Complete
        | McpMethod::Other => b"",
    };
    let arguments = asked.arguments.clone().map(ModelInput::Text);
    let compact = arguments
        .as_ref()
        .map(ModelInput::compact)
        .unwrap_or_default();
    let name = asked
        .name
        .as_deref()
        .or(asked.uri.as_deref())
        .unwrap_or_default();
    for part in [method, name.as_bytes(), compact.as_bytes()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

pub(super) fn method(kind: ConsultKind) -> &'static str {
    match kind {
        ConsultKind::Elicitation | ConsultKind::UrlElicitation => "elicitation/create",
        ConsultKind::Sampling => "sampling/createMessage",
        ConsultKind::Roots => "roots/list",
    }
}

fn input_required(questions: &[ConsultQuestion], state: &str) -> McpReply {
    let mut requests = Map::new();
    for question in questions {
        let mut request = json!({ "method": method(question.kind) });
        let has_params = question
            .params
            .as_object()
            .is_some_and(|params| !params.is_empty());
        if has_params || question.kind != ConsultKind::Roots {
            request["params"] = question.params.clone();
        }
        requests.insert(question.key.clone(), request);
    }
    McpReply::Text(wire::json(&json!({
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": state,
    })))
}

/// Whether the answers contain a valid answer to a question.
fn is_answered(question: &ConsultQuestion, answers: &Map<String, Value>) -> bool {
    let Some(answer) = answers.get(&question.key).and_then(Value::as_object) else {
        return false;
    };
    match question.kind {
        ConsultKind::Elicitation | ConsultKind::UrlElicitation => {
            matches!(
                answer.get("action").and_then(Value::as_str),
                Some("accept" | "decline" | "cancel")
            )
        }
        ConsultKind::Sampling => answer.contains_key("content"),
        ConsultKind::Roots => answer.get("roots").is_some_and(Value::is_array),
    }
}
