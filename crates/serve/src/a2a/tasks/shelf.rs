//! The tasks in memory: those under way, and the last that ended.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::super::task::A2aTask;

/// Ended tasks that stay in memory. The others are on record.
const KEPT: usize = 200;
/// The room that they may take together, about.
const KEPT_BYTES: usize = 16 << 20;

/// What becomes of a message: whoever sends it again gets the same task.
#[derive(Clone)]
pub(super) struct TaskCreation {
    /// What it asks for.
    pub(super) digest: String,
    pub(super) task: Arc<OnceCell<Arc<A2aTask>>>,
}

impl TaskCreation {
    /// The task, once it is there. `None`: nothing came of the message, or nobody has begun with it yet.
    pub(super) async fn outcome(&self) -> Option<Arc<A2aTask>> {
        let nothing = || async { Err::<Arc<A2aTask>, ()>(()) };
        self.task.get_or_try_init(nothing).await.ok().cloned()
    }
}

#[derive(Default)]
pub(in super::super) struct TaskShelf {
    shelf: Mutex<TaskTable>,
}

#[derive(Default)]
struct TaskTable {
    tasks: HashMap<String, TaskTableEntry>,
    /// By the ids of their tasks.
    beginnings: HashMap<String, TaskCreation>,
    /// Counts looks at tasks.
    looks: u64,
}

struct TaskTableEntry {
    task: Arc<A2aTask>,
    looked_at: u64,
}

impl TaskShelf {
    pub(super) fn get(&self, id: &str) -> Option<Arc<A2aTask>> {
        let mut shelf = self.shelf.lock();
        shelf.looks += 1;
        let looks = shelf.looks;
        let kept = shelf.tasks.get_mut(id)?;
        kept.looked_at = looks;
        Some(Arc::clone(&kept.task))
    }

    /// Keeps a task, or returns the one that somebody else kept in the same moment; and whether it is new.
    pub(super) fn keep(&self, task: Arc<A2aTask>) -> (Arc<A2aTask>, bool) {
        let mut shelf = self.shelf.lock();
        shelf.looks += 1;
        let looked_at = shelf.looks;
        if let Some(kept) = shelf.tasks.get(&task.id) {
            return (Arc::clone(&kept.task), false);
        }
        shelf.tasks.insert(
            task.id.clone(),
            TaskTableEntry {
                task: Arc::clone(&task),
                looked_at,
            },
        );
        drop(shelf);
        self.make_room();
        (task, true)
    }

    /// What becomes of the message that a task is made of: of the one that came first.
    pub(super) fn beginning(&self, id: &str, digest: &str) -> TaskCreation {
        let mut shelf = self.shelf.lock();
        let new = || TaskCreation {
            digest: digest.to_owned(),
            task: Arc::default(),
        };
        shelf
            .beginnings
            .entry(id.to_owned())
            .or_insert_with(new)
            .clone()
    }

    /// A task whose calls are only just being put on record.
    pub(super) fn still_beginning(&self, id: &str) -> Option<TaskCreation> {
        self.shelf
            .lock()
            .beginnings
            .get(id)
            .filter(|beginning| !beginning.task.initialized())
            .cloned()
    }

    /// Nothing came of a message.
    pub(super) fn forget_beginning(&self, id: &str) {
        let mut shelf = self.shelf.lock();
        if shelf
            .beginnings
            .get(id)
            .is_some_and(|beginning| !beginning.task.initialized())
        {
            shelf.beginnings.remove(id);
        }
    }

    /// Lets go of the ended tasks that nobody looked at for longest.
    pub(in super::super) fn make_room(&self) {
        let mut shelf = self.shelf.lock();
        let ended = shelf.tasks.values().filter(|kept| kept.task.is_over());
        let mut ended: Vec<(u64, Arc<A2aTask>)> = ended
            .map(|kept| (kept.looked_at, Arc::clone(&kept.task)))
            .collect();
        let mut count = ended.len();
        let mut bytes = ended.iter().map(|(_, task)| task.bytes()).sum::<usize>();
        if count <= KEPT && bytes <= KEPT_BYTES {
            return;
        }
        ended.sort_unstable_by_key(|(looked_at, _)| *looked_at);
        // A few more than needed, so that this is not done for each task anew.
        for (_, task) in ended {
            if count <= KEPT - KEPT / 10 && bytes <= KEPT_BYTES {
                break;
            }
            shelf.tasks.remove(&task.id);
            (count, bytes) = (count - 1, bytes - task.bytes());
        }
        let TaskTable {
            tasks, beginnings, ..
        } = &mut *shelf;
        beginnings.retain(|_, beginning| {
            beginning
                .task
                .get()
                .is_none_or(|task| tasks.contains_key(&task.id))
        });
    }
}
