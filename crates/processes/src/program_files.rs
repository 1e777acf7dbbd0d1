//! The files in the roots that a command names as its program or script, identified by their content. An operator's
//! approval is for these files: the host reads them when it asks, and again before the command starts.
//!
//! Only names in the text are followed. Files that a script reads in turn are not found, nor names that the shell
//! computes. A file can also change between the last check and the start of the process. The sandbox limits the effects
//! of such a command.

mod interpreter;
mod names;

use std::{
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use rustix::fs::Stat;
use toolpost_model::{ProgramContent, ProgramFile, ToolFailure};

use self::names::IfAbsent;
pub use self::names::{CommandStart, ProgramLookup};
use crate::workspace::{LocatedPath, PathError, PathTarget, Workspace, digest, open_regular};

/// The largest file that is hashed for a question. A larger one is identified by size, inode and time of change.
const READ_BYTES: u64 = 4 << 20;
/// The most files of one question.
const MOST_FILES: usize = 64;
/// The files that interpreters run if they get a folder.
const IN_FOLDERS: [&str; 3] = ["__main__.py", "index.js", "package.json"];

/// The files that a shell text names, including those in variables for its commands: `PAGER` names a program, too.
pub fn in_text<'a>(
    text: &str,
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    start: &CommandStart<'_>,
) -> Vec<ProgramLookup> {
    names::in_text(&toolpost_command::analyze_with(text, variables), start)
}

/// The files that one command names in its words. The words are parsed as by a shell, so that names behind `timeout` or
/// in `sh -c` are found, too.
pub fn in_words<'a>(
    words: &[String],
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    start: &CommandStart<'_>,
) -> Vec<ProgramLookup> {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
        .collect();
    in_text(&quoted.join(" "), variables, start)
}

/// Looks the files up. Blocks.
pub fn find(
    workspace: &Workspace,
    lookups: &[ProgramLookup],
) -> Result<Vec<ProgramFile>, ToolFailure> {
    let mut found: Vec<ProgramFile> = Vec::new();
    for lookup in lookups {
        for (name, path) in &lookup.alternatives {
            let Some(files) = look_up(workspace, name, path) else {
                continue;
            };
            let exists = files
                .iter()
                .any(|file| file.content != ProgramContent::Absent);
            if exists || lookup.if_absent == IfAbsent::Told {
                found.extend(
                    files
                        .into_iter()
                        .filter(|file| !is_known(&found, file))
                        .collect::<Vec<_>>(),
                );
            }
            if exists {
                break;
            }
        }
        if found.len() > MOST_FILES {
            let message = format!(
                "the command names more than {MOST_FILES} programs and scripts of the workspace, too many for a \
                 person to approve; split it"
            );
            return Err(ToolFailure::invalid(message)
                .code("too_many_programs")
                .untouched());
        }
    }
    Ok(found)
}

/// Whether any of the names is lexically in the roots. Otherwise there is nothing to look up.
pub fn concern(workspace: &Workspace, lookups: &[ProgramLookup]) -> bool {
    let mut paths = lookups.iter().flat_map(|lookup| &lookup.alternatives);
    paths.any(|(_, path)| inside(workspace, path).is_some())
}

/// Whether the file is already listed, under this or another name. If a name later leads to another file, that file is
/// listed as well, which counts as a change.
fn is_known(found: &[ProgramFile], file: &ProgramFile) -> bool {
    found
        .iter()
        .any(|known| known.name == file.name || known.path == file.path)
}

/// The path as text, if the workspace accepts it. `..` may lead from one root to another.
fn inside(workspace: &Workspace, path: &Path) -> Option<String> {
    let taken = |path: &Path| {
        path.to_str()
            .filter(|text| workspace.request(text).is_ok())
            .map(str::to_owned)
    };
    taken(path).or_else(|| taken(&lexical(path)))
}

/// Removes `.` and `..` lexically.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

/// The file at a path, or the files that a folder stands for. `None` if it is outside of the roots.
fn look_up(workspace: &Workspace, name: &str, path: &Path) -> Option<Vec<ProgramFile>> {
    let text = inside(workspace, path)?;
    let requested = workspace.request(&text).ok()?;
    let lexical = requested.lexical();
    let file = |place: &Path, content| {
        let path = workspace.absolute(place).to_string_lossy().into_owned();
        vec![ProgramFile {
            name: name.to_owned(),
            path,
            content,
        }]
    };
    let located = match workspace.locate(&requested) {
        Ok(located) => located,
        Err(error) => return Some(file(&lexical, without_content(&error))),
    };
    match &located.found {
        PathTarget::Directory(_) => {
            let inner = IN_FOLDERS.iter().filter_map(|inner| {
                let name = format!("{}/{inner}", name.trim_end_matches('/'));
                let files = look_up(workspace, &name, &path.join(inner))?;
                let exists = files
                    .iter()
                    .all(|file| file.content != ProgramContent::Absent);
                exists.then_some(files)
            });
            let inner: Vec<ProgramFile> = inner.flatten().collect();
            let reason = "it is a directory".to_owned();
            Some(match inner.is_empty() {
                true => file(&located.path, ProgramContent::Unreadable { reason }),
                false => inner,
            })
        }
        PathTarget::Entry { .. } => {
            let content =
                content_of(&located, name).unwrap_or_else(|error| without_content(&error));
            Some(file(&located.path, content))
        }
        PathTarget::Missing { .. } => Some(file(&located.whole_path(), ProgramContent::Absent)),
    }
}

fn without_content(error: &PathError) -> ProgramContent {
    match error {
        PathError::Leaves {
            link: Some(followed),
            ..
        } => ProgramContent::Outside {
            target: followed.target.to_string_lossy().into_owned(),
        },
        PathError::NotFound { .. } => ProgramContent::Absent,
        other => ProgramContent::Unreadable {
            reason: other.to_string(),
        },
    }
}

fn content_of(located: &LocatedPath, given: &str) -> Result<ProgramContent, PathError> {
    let PathTarget::Entry { parent, name, .. } = &located.found else {
        return Ok(ProgramContent::Absent);
    };
    let (file, stat) = open_regular(parent, name, given)?;
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > READ_BYTES {
        return Ok(identity(&stat));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // One byte more than the limit, so that a file that grows during the read is noticed.
    file.take(READ_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| PathError::Io {
            given: given.to_owned(),
            source,
        })?;
    let read = bytes.len() as u64;
    Ok(match read > READ_BYTES {
        true => identity(&stat),
        false => ProgramContent::Digest {
            sha256: digest::of_bytes(&bytes),
            bytes: read,
        },
    })
}

fn identity(stat: &Stat) -> ProgramContent {
    ProgramContent::Identity {
        bytes: u64::try_from(stat.st_size).unwrap_or_default(),
        inode: format!("{}:{}", stat.st_dev, stat.st_ino),
        changed_at: format!("{}.{:09}", stat.st_ctime, stat.st_ctime_nsec),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests lay out files")]
mod tests {
    use std::{fs, path::Path};

    use toolpost_model::ProgramContent;

    use super::{CommandStart, MOST_FILES, READ_BYTES, Workspace, find, in_text, in_words};

    fn look(workspace: &Workspace, text: &str) -> Vec<(String, String, ProgramContent)> {
        let start = CommandStart {
            directory: workspace.path(),
            search_path: "/usr/bin",
        };
        let files = find(workspace, &in_text(text, [], &start)).unwrap();
        let place = |path: &str| {
            let relative = Path::new(path)
                .strip_prefix(workspace.path())
                .unwrap_or(Path::new(path));
            relative.display().to_string()
        };
        files
            .into_iter()
            .map(|file| (file.name, place(&file.path), file.content))
            .collect()
    }

    #[test]
    fn a_file_is_known_by_its_content_its_place_and_its_absence() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        fs::create_dir_all(root.join("dir")).unwrap();
        fs::write(root.join("a.sh"), "one").unwrap();
        fs::write(root.join("dir/__main__.py"), "main").unwrap();
        std::os::unix::fs::symlink("a.sh", root.join("link.sh")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/env", root.join("away.sh")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let one = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed".to_owned();
        let one = ProgramContent::Digest {
            sha256: one,
            bytes: 3,
        };
        let named = |name: &str, path: &str, content: ProgramContent| {
            (name.to_owned(), path.to_owned(), content)
        };
        assert_eq!(
            look(&workspace, "sh a.sh"),
            [named("a.sh", "a.sh", one.clone())]
        );
        assert_eq!(
            look(&workspace, "./link.sh"),
            [named("./link.sh", "a.sh", one.clone())]
        );
        assert_eq!(
            look(&workspace, "sh new.sh"),
            [named("new.sh", "new.sh", ProgramContent::Absent)]
        );
        assert_eq!(
            look(&workspace, "sh no/new.sh"),
            [named("no/new.sh", "no/new.sh", ProgramContent::Absent)]
        );
        let target = "/usr/bin/env".to_owned();
        assert_eq!(
            look(&workspace, "./away.sh"),
            [named(
                "./away.sh",
                "away.sh",
                ProgramContent::Outside { target }
            )]
        );
        assert_eq!(
            look(&workspace, "/usr/bin/env true; ls a.sh"),
            [],
            "not inside, not run"
        );
        let inside = look(&workspace, "python3 dir");
        assert_eq!(
            (inside[0].0.as_str(), inside[0].1.as_str()),
            ("dir/__main__.py", "dir/__main__.py")
        );
        assert_eq!(
            look(&workspace, "sh a.sh; sh a.sh").len(),
            1,
            "once is enough"
        );
        let outside = format!("sh {}/../w/a.sh", root.display());
        assert_eq!(look(&workspace, &outside)[0].2, one);

        fs::write(
            root.join("a.sh"),
            vec![b'x'; usize::try_from(READ_BYTES).unwrap() + 1],
        )
        .unwrap();
        let large = look(&workspace, "sh a.sh").remove(0).2;
        assert!(
            matches!(large, ProgramContent::Identity { .. }),
            "{large:?}"
        );
        assert_eq!(look(&workspace, "sh a.sh")[0].2, large);
        fs::write(
            root.join("a.sh"),
            vec![b'y'; usize::try_from(READ_BYTES).unwrap() + 1],
        )
        .unwrap();
        assert_ne!(
            look(&workspace, "sh a.sh")[0].2,
            large,
            "the time of its change is another"
        );
    }

    #[test]
    fn more_files_than_a_person_can_approve_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let start = CommandStart {
            directory: workspace.path(),
            search_path: "",
        };
        let text = |count: usize| {
            (0..count)
                .map(|n| format!("./x{n}"))
                .collect::<Vec<_>>()
                .join(";")
        };
        assert_eq!(
            find(&workspace, &in_text(&text(MOST_FILES), [], &start))
                .unwrap()
                .len(),
            MOST_FILES
        );
        let refused = find(&workspace, &in_text(&text(MOST_FILES + 1), [], &start)).unwrap_err();
        assert_eq!(refused.code.as_deref(), Some("too_many_programs"));
    }

    #[test]
    fn the_words_of_a_declared_command_are_read_like_a_text() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let start = CommandStart {
            directory: workspace.path(),
            search_path: "/usr/bin",
        };
        let words = ["timeout", "5", "sh", "it's here.sh"].map(str::to_owned);
        let found = find(&workspace, &in_words(&words, [], &start)).unwrap();
        assert_eq!(found[0].name, "it's here.sh");
    }
}
