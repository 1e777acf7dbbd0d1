//! Follows one call of a task to its end.
//!
//! The call runs in the background and is watched from outside. If a task waited for the handle of its call, the
//! shutdown of the host would end the call together with its waiting caller. A call in the background keeps its open
//! question for the next host.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::sync::mpsc;
use toolpost_core::{EventDelivery, EventInterest, EventListener, ModuleEvent};
use toolpost_model::{Event, Stage};

use super::{
    A2aServerFace,
    task::{A2aTask, TaskCallState},
};
use crate::clock;

/// The time to wait until a restored task has asked its questions again, and the interval of the checks.
const PATIENCE: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(2);

/// The most events of modules that wait for the task. Further events are on record, but not in the task.
const WAITING_EVENTS: usize = 64;

/// Passes the events of modules from a call to the task that follows it.
pub(super) struct ModuleEventListener(mpsc::Sender<ModuleEvent>);

impl ModuleEventListener {
    pub(super) fn new() -> (Self, mpsc::Receiver<ModuleEvent>) {
        let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
        (Self(sender), receiver)
    }
}

impl EventListener for ModuleEventListener {
    fn wants(&self) -> EventInterest {
        EventInterest::ToolEvents
    }

    fn awaits_answer(&self) -> bool {
        false
    }

    fn hear(&self, event: Event) -> EventDelivery {
        let is_taken = ModuleEvent::of(&event).is_none_or(|event| self.0.try_send(event).is_ok());
        if is_taken {
            EventDelivery::Taken
        } else {
            EventDelivery::Lost
        }
    }
}

/// Follows every running call of a task, each in its own tokio task. `module_events` are in the order of the calls. A
/// restored task has none and gets the recorded events at the end of the call.
pub(super) fn all(
    face: &Arc<A2aServerFace>,
    task: &Arc<A2aTask>,
    module_events: Vec<mpsc::Receiver<ModuleEvent>>,
) {
    let mut module_events = module_events.into_iter();
    for (place, standing) in task.standing().into_iter().enumerate() {
        let events = module_events.next();
        match standing {
            TaskCallState::Running | TaskCallState::Asked(_) => {
                tokio::spawn(one(Arc::clone(face), Arc::clone(task), place, events));
            }
            TaskCallState::Over(_) => {}
        }
    }
}

async fn one(
    face: Arc<A2aServerFace>,
    task: Arc<A2aTask>,
    place: usize,
    mut module_events: Option<mpsc::Receiver<ModuleEvent>>,
) {
    let host = &face.host;
    let id = task.calls[place].invocation_id;
    let mut questions = host.approval_changes();
    let mut over = pin!(host.no_longer_runs(id));
    look_for_a_question(&face, &task, place).await;
    loop {
        tokio::select! {
            biased;
            () = &mut over => break,
            changed = questions.changed() => {
                if changed.is_err() { break }
                look_for_a_question(&face, &task, place).await;
            }
            event = next_event(&mut module_events) => match event {
                Some(event) => task.module_event(place, &event),
                None => module_events = None,
            },
        }
    }
    // The call releases its listener before it is over, so all its events are in the channel now.
    while let Some(event) = module_events
        .as_mut()
        .and_then(|events| events.try_recv().ok())
    {
        task.module_event(place, &event);
    }
    match host.recorded_call(id, &task.owner).await {
        Ok(Some(call)) => match call.end {
            Some(end) => task.ended_on_record(place, call.arguments.as_ref(), &end),
            // The question stays open on record, and the next host continues the call.
            None if host.health().shutting_down => return,
            None => task.lost(place, clock::now()),
        },
        Ok(None) => task.lost(place, clock::now()),
        Err(error) => {
            tracing::warn!(%error, "the end of a call could not be read");
            task.lost(place, clock::now());
        }
    }
    if task.is_over() {
        face.tasks.make_room();
    }
}

async fn next_event(events: &mut Option<mpsc::Receiver<ModuleEvent>>) -> Option<ModuleEvent> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

/// Finds the open questions of a restored task before its first reader sees it. Shortly after a start, the host may not
/// have asked them again yet, so this waits a little.
pub(super) async fn open_questions(face: &A2aServerFace, task: &A2aTask) {
    let wait = async {
        for place in 0..task.calls.len() {
            while is_about_to_ask(face, task, place).await {
                tokio::time::sleep(GLANCE).await;
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, wait).await;
}

/// Adds a call's question to the task if it is open. Otherwise returns whether the call may ask soon.
async fn is_about_to_ask(face: &A2aServerFace, task: &A2aTask, place: usize) -> bool {
    let host = &face.host;
    let id = task.calls[place].invocation_id;
    match task.standing()[place] {
        TaskCallState::Over(_) | TaskCallState::Asked(_) => return false,
        TaskCallState::Running => {}
    }
    let recorded = host.recorded_call(id, &task.owner).await.ok().flatten();
    let Some(asked) = recorded.and_then(|call| call.question) else {
        return false;
    };
    if let Some(question) = host.approval(asked) {
        task.asked(place, &question);
        return false;
    }
    let seen = host.invocation(id, &task.owner).await.ok().flatten();
    let is_before = seen
        .and_then(|seen| seen.stage)
        .is_some_and(|stage| stage <= Stage::AwaitApproval);
    is_before && host.closed_approval(asked).is_none()
}

/// Notices a new or an answered question of a call.
pub(super) async fn look_for_a_question(face: &A2aServerFace, task: &A2aTask, place: usize) {
    let host = &face.host;
    let id = task.calls[place].invocation_id;
    match task.standing()[place] {
        TaskCallState::Over(_) => {}
        TaskCallState::Asked(question) => {
            if host.approval(question).is_none() {
                task.answered(question, clock::now());
            }
        }
        TaskCallState::Running => {
            // For a running call, its stage answers this without a read of the journal.
            let seen = host.invocation(id, &task.owner).await.ok().flatten();
            if seen.and_then(|seen| seen.stage) != Some(Stage::AwaitApproval) {
                return;
            }
            let recorded = host.recorded_call(id, &task.owner).await.ok().flatten();
            let question = recorded
                .and_then(|call| call.question)
                .and_then(|id| host.approval(id));
            if let Some(question) = question {
                task.asked(place, &question);
            }
        }
    }
}
