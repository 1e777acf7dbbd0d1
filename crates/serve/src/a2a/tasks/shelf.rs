//! The tasks in memory: running tasks, and the latest ended ones.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::super::task::A2aTask;

/// The most ended tasks in memory. Older ones are rebuilt from the record.
const KEPT: usize = 200;
/// The approximate memory of all ended tasks together.
const KEPT_BYTES: usize = 16 << 20;

/// The creation of a task. A repeated message shares the creation of the first.
#[derive(Clone)]
pub(super) struct TaskCreation {
    /// The digest of the message.
    pub(super) digest: String,
    pub(super) task: Arc<OnceCell<Arc<A2aTask>>>,
}

impl TaskCreation {
    /// The task once it exists. `None`: the creation failed or has not begun.
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
    /// By task id.
    beginnings: HashMap<String, TaskCreation>,
    /// Increases with every access to a task.
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

    /// Keeps a task, or returns the one that was kept meanwhile; and whether the given task is new.
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

    /// The creation under a task id: the first one, if there are several messages.
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

    /// The creation of a task whose calls are still being recorded.
    pub(super) fn still_beginning(&self, id: &str) -> Option<TaskCreation> {
        self.shelf
            .lock()
            .beginnings
            .get(id)
            .filter(|beginning| !beginning.task.initialized())
            .cloned()
    }

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

    /// Removes the ended tasks that were not used for the longest time.
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
        // Removes a tenth more than needed, so that not every new task causes a search.
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
