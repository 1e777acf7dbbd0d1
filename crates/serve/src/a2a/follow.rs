//! Following one call of a task to its end.
//!
//! The call is looked at from outside and not waited for: a call that somebody waits for is given up when the host goes, while
//! one that nobody waits for keeps its open question for the next host.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::sync::mpsc;
use toolpost_core::{EventDelivery, EventInterest, EventListener, ModuleEvent};
use toolpost_model::{Event, Stage};

use super::{
    A2aServerFace,
    task::{A2aTask, TaskCallState},
};
use crate::clock;

/// How long a task from the record is waited for at most to ask its questions again, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(2);

/// Events of modules that wait until the task takes them. More are lost to the task, not to the record.
const WAITING_EVENTS: usize = 64;

/// Hands the events of modules from a call to the task that follows it.
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

/// Follows every call of a task that has not ended, each in a task of its own. `module_events` are by the places of the
/// calls; a task that was put together from the record has none and gets those on record at the end of the call.
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
    // The call gave its listener back before it was over, so the rest of its events are here already.
    while let Some(event) = module_events
        .as_mut()
        .and_then(|events| events.try_recv().ok())
    {
        task.module_event(place, &event);
    }
    match host.recorded_call(id, &task.owner).await {
        Ok(Some(call)) => match call.end {
            Some(end) => task.ended_on_record(place, call.arguments.as_ref(), &end),
            // Its question stays open on record, and the next host goes on with it.
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

/// Finds the questions of a task that was put together from the record, before anybody is told of it. Shortly after its
/// start a host has not asked them again yet; that is waited for.
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

/// Tells of a call's question if it is open, otherwise whether it may be in a moment.
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

/// Tells of a question that came up or went.
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
            // Of a call that runs, this is known without a look at the record.
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
