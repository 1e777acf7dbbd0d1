//! Following one call of a task to its end.
//!
//! The call is looked at from outside and not waited for: a call that somebody waits for is given up when the host goes, while
//! one that nobody waits for keeps its open question for the next host.

use std::{pin::pin, sync::Arc};

use toolpost_model::Stage;

use super::{
    Face,
    task::{Standing, Task},
};
use crate::clock;

/// Follows every call of a task that has not ended, each in a task of its own.
pub(super) fn all(face: &Arc<Face>, task: &Arc<Task>) {
    for (place, standing) in task.standing().into_iter().enumerate() {
        match standing {
            Standing::Running | Standing::Asked(_) => {
                tokio::spawn(one(Arc::clone(face), Arc::clone(task), place));
            }
            Standing::Over(_) => {}
        }
    }
}

async fn one(face: Arc<Face>, task: Arc<Task>, place: usize) {
    let host = &face.host;
    let id = task.calls[place].invocation_id;
    let mut questions = host.approval_changes();
    let mut over = pin!(host.no_longer_runs(id));
    loop {
        look_for_a_question(&face, &task, place).await;
        tokio::select! {
            biased;
            () = &mut over => break,
            changed = questions.changed() => if changed.is_err() { break },
        }
    }
    match host.recorded_call(id, &task.owner).await {
        Ok(Some(call)) => match call.end {
            Some(end) => task.ended(place, end.answer.result(), end.at),
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

/// Tells of a question that came up or went.
pub(super) async fn look_for_a_question(face: &Face, task: &Task, place: usize) {
    let (host, id) = (&face.host, task.calls[place].invocation_id);
    match task.standing()[place] {
        Standing::Over(_) => {}
        Standing::Asked(question) => {
            if host.approval(question).is_none() {
                task.answered(question, clock::now());
            }
        }
        Standing::Running => {
            // Of a call that runs, this is known without a look at the record.
            let seen = host.invocation(id, &task.owner).await.ok().flatten();
            if seen.and_then(|seen| seen.stage) != Some(Stage::AwaitApproval) {
                return;
            }
            let recorded = host.recorded_call(id, &task.owner).await.ok().flatten();
            let question = recorded.and_then(|call| call.question).and_then(|id| host.approval(id));
            if let Some(question) = question {
                task.asked(place, &question);
            }
        }
    }
}
