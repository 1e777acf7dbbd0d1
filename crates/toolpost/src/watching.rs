//! Hearing that a configuration file changed. Folders are watched, not files: editors put a new file in the place of
//! the old one, and a file may appear that was not there.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// An editor writes in several steps; a change is taken up when it has been quiet for so long,
const QUIET: Duration = Duration::from_millis(200);
/// and at the latest after so long.
const AT_LATEST: Duration = Duration::from_secs(2);

/// Watches files, there or not, until it is dropped.
pub(crate) struct ConfigFileWatcher {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    changed: mpsc::Sender<()>,
    changes: mpsc::Receiver<()>,
    watcher: Option<RecommendedWatcher>,
}

impl ConfigFileWatcher {
    /// Where the system cannot watch, nothing is ever heard; the operator is told.
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

    /// Looks anew where the files lie: a folder may be there that was not. To be called before they are read, so that
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
                // One word that waits to be heard is enough.
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
                    "configuration files cannot be watched ({error}); SIGHUP has them read again"
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

/// The nearest folder of each file that is there, each once.
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

/// Whether an event may mean that a file is another one now.
fn concerns(files: &[PathBuf], event: &notify::Result<Event>) -> bool {
    let Ok(event) = event else { return true };
    match event.kind {
        // Reading a file is an event too, and a change must not be heard of because of our own look at it.
        EventKind::Access(_) => return false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => {}
    }
    let about = |path: &PathBuf| {
        // The file, or a folder above it that is made or taken away.
        files.iter().any(|file| file.starts_with(path))
            // What a link leads through changes beside it.
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
