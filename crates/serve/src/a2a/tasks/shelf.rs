//! The tasks in memory: those under way, and the last that ended.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OnceCell;
use toolpost_model::SessionId;

use super::super::{asked::AskedCall, task::Task};

/// Ended tasks that stay in memory. The others are on record.
const KEPT: usize = 1_000;
/// The room that they may take together, about.
const KEPT_BYTES: usize = 64 << 20;

/// A message within its conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MessageKey {
    pub(super) session: SessionId,
    pub(super) message_id: String,
}

/// What becomes of a message: whoever sends it again gets the same task.
#[derive(Clone)]
pub(super) struct Beginning {
    pub(super) calls: Arc<[AskedCall]>,
    pub(super) task: Arc<OnceCell<Arc<Task>>>,
}

#[derive(Default)]
pub(in super::super) struct Tasks {
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    tasks: HashMap<String, Kept>,
    beginnings: HashMap<MessageKey, Beginning>,
    /// Counts looks at tasks.
    looks: u64,
}

struct Kept {
    task: Arc<Task>,
    looked_at: u64,
}

impl Tasks {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Task>> {
        let mut shelf = self.shelf();
        shelf.looks += 1;
        let looks = shelf.looks;
        let kept = shelf.tasks.get_mut(id)?;
        kept.looked_at = looks;
        Some(Arc::clone(&kept.task))
    }

    /// Keeps a task, or returns the one that somebody else kept in the same moment; and whether it is new.
    pub(super) fn keep(&self, task: Arc<Task>) -> (Arc<Task>, bool) {
        let mut shelf = self.shelf();
        shelf.looks += 1;
        let looked_at = shelf.looks;
        if let Some(kept) = shelf.tasks.get(&task.id) {
            return (Arc::clone(&kept.task), false);
        }
        shelf.tasks.insert(task.id.clone(), Kept { task: Arc::clone(&task), looked_at });
        drop(shelf);
        self.make_room();
        (task, true)
    }

    /// What becomes of a message: of the one that came first under that id.
    pub(super) fn beginning(&self, key: MessageKey, calls: Arc<[AskedCall]>) -> Beginning {
        let mut shelf = self.shelf();
        let new = || Beginning { calls, task: Arc::default() };
        shelf.beginnings.entry(key).or_insert_with(new).clone()
    }

    /// Nothing came of a message.
    pub(super) fn forget_beginning(&self, key: &MessageKey) {
        let mut shelf = self.shelf();
        if shelf.beginnings.get(key).is_some_and(|beginning| !beginning.task.initialized()) {
            shelf.beginnings.remove(key);
        }
    }

    /// Lets go of the ended tasks that nobody looked at for longest.
    pub(in super::super) fn make_room(&self) {
        let mut shelf = self.shelf();
        let ended = shelf.tasks.values().filter(|kept| kept.task.is_over());
        let mut ended: Vec<(u64, Arc<Task>)> =
            ended.map(|kept| (kept.looked_at, Arc::clone(&kept.task))).collect();
        let (mut count, mut bytes) = (ended.len(), ended.iter().map(|(_, task)| task.bytes()).sum::<usize>());
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
        let Shelf { tasks, beginnings, .. } = &mut *shelf;
        beginnings
            .retain(|_, beginning| beginning.task.get().is_none_or(|task| tasks.contains_key(&task.id)));
    }
}
