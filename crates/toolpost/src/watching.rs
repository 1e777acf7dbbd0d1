//! Watches configuration files for changes. It watches folders, not files: editors replace the old file by a new one,
//! and a missing file may appear.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// An editor writes in several steps; a change is applied after this much quiet time,
const QUIET: Duration = Duration::from_millis(200);
/// and at the latest after this time.
const AT_LATEST: Duration = Duration::from_secs(2);

/// Watches existing and missing files until it is dropped.
pub(crate) struct ConfigFileWatcher {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    changed: mpsc::Sender<()>,
    changes: mpsc::Receiver<()>,
    watcher: Option<RecommendedWatcher>,
}

impl ConfigFileWatcher {
    /// If the system cannot watch files, no change is ever reported; the operator gets a warning.
    pub(crate) fn on(files: Vec<PathBuf>) -> Self {
        let (changed, changes) = mpsc::channel(1);
        let mut watch = Self {
            files,
            folders: Vec::new(),
            changed,
            changes,
            watcher: None,
        };
        watch.follow();
        watch
    }

    /// Updates the watched folders, since a missing folder may exist now. Call it before the files are read, so that
    /// no change falls between the two.
    pub(crate) fn follow(&mut self) {
        let folders = folders(&self.files);
        if folders == self.folders {
            return;
        }
        let changed = self.changed.clone();
        let files = self.files.clone();
        let tell = move |event: notify::Result<Event>| {
            if concerns(&files, &event) {
                // One pending notification is enough.
                let _ = changed.try_send(());
            }
        };
        let watcher = notify::recommended_watcher(tell).and_then(|mut watcher| {
            for folder in &folders {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        self.folders = folders;
        self.watcher = match watcher {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                tracing::warn!(
                    "configuration files cannot be watched ({error}); send SIGHUP to reload them"
                );
                None
            }
        };
    }

    /// Waits for a change, and then for quiet.
    pub(crate) async fn wait_for_change(&mut self) {
        self.changes.recv().await;
        let quiet = async {
            while tokio::time::timeout(QUIET, self.changes.recv())
                .await
                .is_ok()
            {}
        };
        let _ = tokio::time::timeout(AT_LATEST, quiet).await;
    }
}

/// The nearest existing folder of each file, each once.
fn folders(files: &[PathBuf]) -> Vec<PathBuf> {
    let nearest = |file: &PathBuf| {
        file.ancestors()
            .skip(1)
            .find(|folder| folder.is_dir())
            .map(Path::to_owned)
    };
    let mut folders: Vec<PathBuf> = files.iter().filter_map(nearest).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Whether an event may mean that a file changed.
fn concerns(files: &[PathBuf], event: &notify::Result<Event>) -> bool {
    let Ok(event) = event else { return true };
    match event.kind {
        // Reading a file is an event too, and the host's own reads must not count as changes.
        EventKind::Access(_) => return false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => {}
    }
    let about = |path: &PathBuf| {
        // The file, or a folder above it that was created or removed.
        files.iter().any(|file| file.starts_with(path))
            // A link's target can change through a file beside it.
            || files.iter().any(|file| file.parent() == path.parent() && file.is_symlink())
    };
    event.need_rescan() || event.paths.iter().any(about)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use notify::{
        Event, EventKind,
        event::{AccessKind, CreateKind},
    };

    use super::concerns;

    #[test]
    fn only_the_files_themselves_and_the_way_to_them_count() {
        let files = [
            PathBuf::from("/w/toolpost.yaml"),
            PathBuf::from("/h/.config/toolpost/toolpost.yaml"),
        ];
        let made = EventKind::Create(CreateKind::Any);
        for (kind, path, expected) in [
            (made, "/w/toolpost.yaml", true),
            (made, "/w/toolpost.yaml.swp", false),
            (made, "/w/other", false),
            (made, "/h/.config/toolpost", true),
            (made, "/h/.config/other", false),
            (
                EventKind::Access(AccessKind::Any),
                "/w/toolpost.yaml",
                false,
            ),
        ] {
            let event = Ok(Event::new(kind).add_path(path.into()));
            assert_eq!(concerns(&files, &event), expected, "{path}");
        }
    }
}
