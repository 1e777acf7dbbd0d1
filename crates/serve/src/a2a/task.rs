//! One task: its calls, and a log of their visible changes. Readers go through the log at their own speed, so a slow
//! reader delays no other, and a late one misses nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;
use toolpost_a2a::{
    ToolEvent,
    wire::{
        self, Artifact, ArtifactUpdate, Message, Part, StatusUpdate, StreamItem, TaskState,
        TaskStatus,
    },
};
use toolpost_core::{EndOnRecord, ModuleEvent};
use toolpost_model::{
    InvocationId, Outcome, PermissionRequest, Principal, ResultContent, ToolResult,
};

use super::telling;
use crate::feed::module_event_json;

/// The approximate memory of a task without the arguments and results of its calls.
const ROOM: usize = 2 << 10;

/// The most events of modules in the log for each call.
const MODULE_EVENTS: usize = 64;

/// A call of a task, as recorded.
pub(super) struct CallOfTask {
    pub(super) invocation_id: InvocationId,
    pub(super) tool_call_id: String,
    pub(super) tool: String,
    /// The arguments of the model without secrets; `None` if the host did not read them.
    pub(super) input: Option<Value>,
    pub(super) began_at: Timestamp,
}

pub(super) struct NewTask {
    pub(super) id: String,
    pub(super) context_id: String,
    pub(super) owner: Principal,
    pub(super) message_id: String,
    pub(super) calls: Vec<CallOfTask>,
    /// The number of calls in the message that were never begun.
    pub(super) missing: usize,
    pub(super) tells_events: bool,
    pub(super) digest: Option<String>,
}

pub(super) struct A2aTask {
    pub(super) id: String,
    pub(super) context_id: String,
    pub(super) owner: Principal,
    pub(super) calls: Vec<CallOfTask>,
    /// Whether the readers accept tool events.
    pub(super) tells_events: bool,
    /// The digest of the message, if the record has it.
    pub(super) digest: Option<String>,
    missing: usize,
    /// The message that created the task.
    user: Message,
    state: Mutex<TaskRunState>,
    /// The length of the log.
    grown: watch::Sender<usize>,
}

struct TaskRunState {
    log: Vec<TaskLogEntry>,
    calls: Vec<TaskCallState>,
    /// The open questions, oldest first.
    questions: Vec<TaskQuestion>,
    /// The reasons of failed calls, by position.
    failures: BTreeMap<usize, String>,
    /// For each call, the numbers of the modules' events in the log.
    module_events: Vec<BTreeSet<u64>>,
    /// The approximate memory of the task.
    bytes: usize,
}

impl TaskRunState {
    /// Adds a status to the log. Calls that end at the same time may be noticed in another order, so the times in the
    /// log are kept from going backwards.
    fn push(&mut self, state: TaskState, message: Option<Arc<Message>>, at: Timestamp) {
        let (_, _, before) = last_status(&self.log);
        self.log.push(TaskLogEntry::Status {
            state,
            message,
            at: at.max(before),
        });
    }
}

pub(super) struct TaskQuestion {
    pub(super) place: usize,
    pub(super) ask_id: InvocationId,
    pub(super) reason: String,
    pub(super) asked_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

/// The state of a call of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskCallState {
    Running,
    /// A person is asked about the call.
    Asked(InvocationId),
    /// The call has ended. `None`: the outcome is unknown.
    Over(Option<Outcome>),
}

#[derive(Clone)]
enum TaskLogEntry {
    Status {
        state: TaskState,
        message: Option<Arc<Message>>,
        at: Timestamp,
    },
    Artifact(Arc<Artifact>),
    /// A module emitted an event during a call. `state` is the state of the task before.
    ModuleEvent {
        state: TaskState,
        message: Arc<Message>,
        at: Timestamp,
    },
}

impl TaskLogEntry {
    /// The message of an entry that is about the state, and not about a call.
    fn comment(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Status {
                message: Some(message),
                ..
            } if message.extensions.is_empty() => Some(message),
            Self::Status { .. } | Self::Artifact(_) | Self::ModuleEvent { .. } => None,
        }
    }
}

impl A2aTask {
    /// A submitted task with running calls.
    pub(super) fn new(making: NewTask) -> Arc<Self> {
        let NewTask {
            id,
            context_id,
            owner,
            message_id,
            calls,
            missing,
            tells_events,
            digest,
        } = making;
        let began_at = calls
            .iter()
            .map(|call| call.began_at)
            .min()
            .unwrap_or_default();
        let user = telling::remade(&message_id, &calls, &id, &context_id);
        let call_count = calls.len();
        let calls_bytes: usize = calls
            .iter()
            .filter_map(|call| call.input.as_ref())
            .map(memory_of)
            .sum();
        let standing = vec![TaskCallState::Running; call_count];
        let submitted = TaskLogEntry::Status {
            state: TaskState::Submitted,
            message: None,
            at: began_at,
        };
        let state = Mutex::new(TaskRunState {
            log: vec![submitted],
            calls: standing,
            questions: Vec::new(),
            failures: BTreeMap::new(),
            module_events: vec![BTreeSet::new(); call_count],
            // The arguments are stored three times: in the call, in the user's message and in the event of the call's
            // start.
            bytes: ROOM + calls_bytes * 3,
        });
        let grown = watch::Sender::new(1);
        let task = Self {
            id,
            context_id,
            owner,
            calls,
            tells_events,
            digest,
            missing,
            user,
            state,
            grown,
        };
        for call in &task.calls {
            let told = task.tells_events.then(|| telling::begun(call));
            task.change(|task, state| {
                let message = match &told {
                    Some(event) => task.event(state, event),
                    None => task.comment(state, format!("`{}` was called", call.tool), None),
                };
                state.push(TaskState::Working, Some(message), call.began_at);
            });
        }
        Arc::new(task)
    }

    fn change(&self, change: impl FnOnce(&Self, &mut TaskRunState)) {
        let mut state = self.state.lock();
        change(self, &mut state);
        let length = state.log.len();
        drop(state);
        self.grown
            .send_if_modified(|known| std::mem::replace(known, length) != length);
    }

    /// The id of the next message, the same for the same position in the log.
    fn message_id(&self, state: &TaskRunState) -> String {
        format!("{}-{}", self.id, state.log.len())
    }

    fn event(&self, state: &TaskRunState, event: &ToolEvent) -> Arc<Message> {
        let message = telling::event_message(self.message_id(state), event);
        Arc::new(message.within(&self.id, &self.context_id))
    }

    fn comment(
        &self,
        state: &TaskRunState,
        text: String,
        metadata: Option<Map<String, Value>>,
    ) -> Arc<Message> {
        let message = Message::agent(self.message_id(state), vec![Part::text(text)]);
        let mut message = message.within(&self.id, &self.context_id);
        message.metadata = metadata;
        Arc::new(message)
    }

    /// Adds a question about a call.
    pub(super) fn asked(&self, place: usize, asked: &PermissionRequest) {
        self.change(|task, state| {
            if state.calls[place] != TaskCallState::Running {
                return;
            }
            state.calls[place] = TaskCallState::Asked(asked.ask_id);
            let asked_at = asked.asked_at;
            let expires_at = asked.expires_at;
            let reason = asked.decision.reason.text.clone();
            state.questions.push(TaskQuestion {
                place,
                ask_id: asked.ask_id,
                reason,
                asked_at,
                expires_at,
            });
            state
                .questions
                .sort_by_key(|question| (question.asked_at, question.place));
            task.tell_questions(state, asked_at);
        });
    }

    /// Adds a status with the open questions, if there are any. Only open questions are shown, so that operators do not
    /// answer closed ones.
    fn tell_questions(&self, state: &mut TaskRunState, at: Timestamp) {
        if let Some((text, metadata)) = telling::questions(&self.calls, &state.questions) {
            let message = Some(self.comment(state, text, Some(metadata)));
            state.push(TaskState::InputRequired, message, at);
        }
    }

    /// Removes an answered question. All calls that waited for it continue.
    pub(super) fn answered(&self, question: InvocationId, at: Timestamp) {
        self.change(|task, state| {
            let before = state.questions.len();
            for standing in state
                .calls
                .iter_mut()
                .filter(|call| **call == TaskCallState::Asked(question))
            {
                *standing = TaskCallState::Running;
            }
            state.questions.retain(|open| open.ask_id != question);
            if state.questions.len() == before {
                return;
            }
            if state.questions.is_empty() {
                state.push(TaskState::Working, None, at);
            }
            task.tell_questions(state, at);
        });
    }

    /// Adds an event of a module. Readers that do not accept tool events do not get it.
    pub(super) fn module_event(&self, place: usize, event: &ModuleEvent) {
        if !self.tells_events {
            return;
        }
        self.change(|task, state| {
            let held = &mut state.module_events[place];
            if matches!(state.calls[place], TaskCallState::Over(_))
                || held.len() >= MODULE_EVENTS
                || !held.insert(event.seq)
            {
                return;
            }
            let told = module_event_json(&task.calls[place].tool_call_id, event);
            state.bytes += memory_of(&told);
            let message = Message::agent(task.message_id(state), vec![Part::data(told)]);
            let message = Arc::new(message.within(&task.id, &task.context_id));
            let (current, _, at) = last_status(&state.log);
            state.log.push(TaskLogEntry::ModuleEvent {
                state: current,
                message,
                at,
            });
        });
    }

    /// Ends a call with its recorded result. Recorded events of modules that the task missed come first.
    pub(super) fn ended_on_record(
        &self,
        place: usize,
        executed: Option<&Value>,
        end: &EndOnRecord,
    ) {
        for event in &end.module_events {
            self.module_event(place, event);
        }
        self.ended(place, executed, end.answer.result(), end.at);
    }

    /// Ends a call. `executed` are the final arguments of the call, which can differ from those in the message.
    pub(super) fn ended(
        &self,
        place: usize,
        executed: Option<&Value>,
        result: &ToolResult,
        at: Timestamp,
    ) {
        let call = &self.calls[place];
        let artifact = result
            .outcome
            .is_success()
            .then(|| Arc::new(telling::artifact(call, result)));
        let event = telling::ended(call, executed, result);
        let structured = result.structured_content.as_ref().map_or(0, memory_of);
        let content: usize = result.content.iter().map(ResultContent::size).sum();
        // The result is stored twice: in the event and in the artifact.
        let bytes = ROOM + 2 * (structured + content) + executed.map_or(0, memory_of);
        self.over(place, &event, artifact, (Some(result.outcome), bytes), at);
    }

    /// Ends a call that is not running and has no recorded end.
    pub(super) fn lost(&self, place: usize, at: Timestamp) {
        self.over(
            place,
            &telling::lost(&self.calls[place]),
            None,
            (None, ROOM),
            at,
        );
    }

    fn over(
        &self,
        place: usize,
        event: &ToolEvent,
        artifact: Option<Arc<Artifact>>,
        (outcome, bytes): (Option<Outcome>, usize),
        at: Timestamp,
    ) {
        self.change(|task, state| {
            if let TaskCallState::Over(_) = state.calls[place] {
                return;
            }
            let was_asked = matches!(state.calls[place], TaskCallState::Asked(_));
            state.calls[place] = TaskCallState::Over(outcome);
            state.bytes += bytes;
            let before = state.questions.len();
            state.questions.retain(|question| question.place != place);
            let still = open_state(state);
            // The end of a quick call may be noticed before the answer to its question. This status shows readers that
            // the task left `input-required`.
            if was_asked && still == TaskState::Working && outcome.is_some_and(Outcome::is_success)
            {
                state.push(still, None, at);
            }
            if task.tells_events {
                let message = Some(task.event(state, event));
                state.push(still, message, at);
            } else if still != last_status(&state.log).0 {
                state.push(still, None, at);
            }
            state.log.extend(artifact.map(TaskLogEntry::Artifact));
            if let ToolEvent::Error { error, .. } = event {
                state.failures.insert(place, error.message.clone());
            }
            if state.questions.len() != before {
                task.tell_questions(state, at);
            }
            let Some(end) = end_state(&state.calls, task.missing) else {
                return;
            };
            // Of several failures the task reports the one of the first call in the message, so that the report does
            // not depend on the speed of the calls.
            let why = state.failures.first_key_value().map(|(_, why)| why.clone());
            let why = why
                .into_iter()
                .chain(telling::not_begun(task.missing, task.calls.len()));
            let why = why.reduce(|why, more| format!("{why}\n{more}"));
            let message = why.map(|why| task.comment(state, why, None));
            state.push(end, message, at);
        });
    }

    /// A receiver of the log's length, for waiting for new entries.
    pub(super) fn grown(&self) -> watch::Receiver<usize> {
        self.grown.subscribe()
    }

    /// The approximate memory of the task.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    pub(super) fn length(&self) -> usize {
        self.state.lock().log.len()
    }

    pub(super) fn standing(&self) -> Vec<TaskCallState> {
        self.state.lock().calls.clone()
    }

    pub(super) fn task_state(&self) -> TaskState {
        last_status(&self.state.lock().log).0
    }

    pub(super) fn is_over(&self) -> bool {
        self.task_state().is_terminal()
    }

    /// The time of the last change of the state.
    pub(super) fn changed_at(&self) -> Timestamp {
        last_status(&self.state.lock().log).2
    }

    /// The task as it was when the log had the given length.
    pub(super) fn snapshot(&self, length: usize) -> wire::Task {
        let state = self.state.lock();
        let log = &state.log[..length.min(state.log.len())];
        let (current, comment, at) = last_status(log);
        let mut history = vec![self.user.clone()];
        let mut artifacts = Vec::new();
        for entry in log {
            match entry {
                TaskLogEntry::Status {
                    message: Some(message),
                    ..
                } => {
                    let is_current = comment.is_some_and(|comment| Arc::ptr_eq(comment, message));
                    if !is_current {
                        history.push((**message).clone());
                    }
                }
                TaskLogEntry::Status { message: None, .. } => {}
                TaskLogEntry::ModuleEvent { message, .. } => history.push((**message).clone()),
                TaskLogEntry::Artifact(artifact) => artifacts.push((**artifact).clone()),
            }
        }
        let message = comment.map(|message| (**message).clone());
        let status = TaskStatus {
            state: current,
            message,
            timestamp: Some(told(at)),
        };
        let id = self.id.clone();
        let context_id = self.context_id.clone();
        wire::Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata: None,
        }
    }

    /// The item at a position of the log, and whether it is the last one.
    pub(super) fn item(&self, place: usize) -> Option<(StreamItem, bool)> {
        let entry = self.state.lock().log.get(place)?.clone();
        let (state, message, at, last) = match entry {
            TaskLogEntry::Status { state, message, at } => {
                (state, message, at, state.is_terminal())
            }
            TaskLogEntry::ModuleEvent { state, message, at } => (state, Some(message), at, false),
            TaskLogEntry::Artifact(artifact) => {
                let update = ArtifactUpdate {
                    task_id: self.id.clone(),
                    context_id: self.context_id.clone(),
                    artifact: (*artifact).clone(),
                    append: false,
                    last_chunk: true,
                    metadata: None,
                };
                return Some((StreamItem::Artifact(update), false));
            }
        };
        let update = StatusUpdate {
            task_id: self.id.clone(),
            context_id: self.context_id.clone(),
            status: TaskStatus {
                state,
                message: message.map(|message| (*message).clone()),
                timestamp: Some(told(at)),
            },
            last,
            metadata: None,
        };
        Some((StreamItem::Status(update), last))
    }
}

/// The approximate memory of a value. A list of small objects takes eleven times the length of its JSON, so the length
/// of the text is no measure.
fn memory_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(memory_of).sum(),
            // A key, its hash and its slot in the table.
            Value::Object(members) => {
                let member = size_of::<String>() + 2 * size_of::<usize>();
                members
                    .iter()
                    .map(|(key, value)| member + key.len() + memory_of(value))
                    .sum()
            }
        }
}

fn told(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// The last state in a log, its message, and its time. Every log begins with a status.
fn last_status(log: &[TaskLogEntry]) -> (TaskState, Option<&Arc<Message>>, Timestamp) {
    let status = |entry: &TaskLogEntry| match entry {
        TaskLogEntry::Status { state, at, .. } => Some((*state, *at)),
        TaskLogEntry::Artifact(_) | TaskLogEntry::ModuleEvent { .. } => None,
    };
    let Some((state, at)) = log.iter().rev().find_map(status) else {
        return (TaskState::Submitted, None, Timestamp::UNIX_EPOCH);
    };
    // The message from the beginning of this state remains valid until the state changes, regardless of later entries
    // about calls.
    let since = log
        .iter()
        .rev()
        .take_while(|entry| status(entry).is_none_or(|(then, _)| then == state));
    (state, since.filter_map(TaskLogEntry::comment).next(), at)
}

/// The state of a task with running calls.
fn open_state(state: &TaskRunState) -> TaskState {
    if state.questions.is_empty() {
        TaskState::Working
    } else {
        TaskState::InputRequired
    }
}

/// The state of a task without running calls.
fn end_state(calls: &[TaskCallState], missing: usize) -> Option<TaskState> {
    let outcome = |call: &TaskCallState| match call {
        TaskCallState::Over(outcome) => Some(*outcome),
        TaskCallState::Running | TaskCallState::Asked(_) => None,
    };
    let ends: Vec<Option<Outcome>> = calls.iter().map(outcome).collect::<Option<_>>()?;
    let succeeded = |end: &Option<Outcome>| end.is_some_and(Outcome::is_success);
    Some(if missing == 0 && ends.iter().all(succeeded) {
        TaskState::Completed
    } else if ends.contains(&Some(Outcome::Canceled)) {
        TaskState::Canceled
    } else {
        TaskState::Failed
    })
}
