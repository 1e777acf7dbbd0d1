//! The file tools: namespace `files`, one tool per file.
//!
//! Each tool parses its path by the lexical rule (`check`, no I/O), finds the place beneath the workspace's descriptor
//! (`effects` and `execute`, through [`Workspace::locate`]) and uses descriptors from there on. A path string is never
//! opened twice, so a process that swaps names in between gains nothing.

mod apply_patch;
mod delete_file;
mod diff;
mod edit_file;
mod entry_type;
mod file_info;
mod incoming;
mod lines;
mod list_directory;
mod move_file;
mod read_error;
mod read_file;
mod write_file;
mod writing;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use toolpost_model::{
    AccessKind, CancelSupport, Declaration, DynTool, EffectClass, Effects, ExecutionKind,
    InputRefusal, ResourceAccess, ResourceKey, ToolKind,
};
use toolpost_processes::{
    LastLink, PathTarget, PlaceCaution, PlaceEffect, Workspace, cautioned, folders_in_the_making,
    shown,
};

pub(super) use self::{
    incoming::{IncomingFile, SavedFile, check_incoming, incoming_effects},
    read_file::LineWindow,
};

use super::{declaration, workspace_tool::on_workspace};

/// The file tools on one workspace.
pub(super) fn tools(workspace: &Arc<Workspace>) -> Vec<Arc<dyn DynTool>> {
    vec![
        on_workspace::<read_file::ReadFile>(workspace),
        on_workspace::<write_file::WriteFile>(workspace),
        on_workspace::<edit_file::EditFile>(workspace),
        on_workspace::<apply_patch::ApplyPatch>(workspace),
        on_workspace::<move_file::MoveFile>(workspace),
        on_workspace::<delete_file::DeleteFile>(workspace),
        on_workspace::<list_directory::ListDirectory>(workspace),
        on_workspace::<file_info::FileInfo>(workspace),
    ]
}

/// The common declaration of the file tools. `In` and `Out` give the schemas.
fn declare<In: JsonSchema, Out: JsonSchema>(
    name: &str,
    description: &str,
    access: ResourceAccess,
) -> Declaration {
    let (class, reach) = match access {
        ResourceAccess::Read => (EffectClass::Read, AccessKind::FileRead),
        ResourceAccess::Write => (EffectClass::Write, AccessKind::FileWrite),
    };
    let mut declaration =
        declaration::declare::<In, Out>(ToolKind::File, "files", name, description, class);
    declaration.tags = vec!["files".to_owned(), class.as_str().to_owned()];
    let interface = &mut declaration.interface;
    interface.execution.kind = ExecutionKind::EmbeddedRuntime;
    interface.execution.cancel = CancelSupport::Cooperative;
    interface.rendering.subject_argument = Some("path".to_owned());
    interface.permission.access = vec![reach];
    declaration
}

/// Adds the other roots to the description, because an agent could not guess their paths.
fn tell_roots(declaration: &mut Declaration, workspace: &Workspace) {
    let told: Vec<String> = workspace
        .roots()
        .skip(1)
        .map(|(path, access)| match access {
            ResourceAccess::Read => format!("`{}` (read-only)", path.display()),
            ResourceAccess::Write => format!("`{}`", path.display()),
        })
        .collect();
    if !told.is_empty() {
        let more = format!(" Absolute paths beneath {} work too.", told.join(" and "));
        declaration.description.push_str(&more);
    }
}

/// The effects of a tool that only reads `path`: on the real place, regardless of the path's spelling.
pub(super) fn read_effects(workspace: &Workspace, path: &str) -> Option<Effects> {
    let requested = workspace.request(path).ok()?;
    let place = workspace
        .locate(&requested)
        .map_or_else(|_| requested.lexical(), |located| located.whole_path());
    Some(Effects::of(EffectClass::Read).using(key(workspace, &place), ResourceAccess::Read))
}

/// A path that a call changes.
#[derive(Clone, Copy)]
pub(super) struct PathChange<'a> {
    path: &'a str,
    /// Missing directories above it are created.
    create_directories: bool,
    last_link: LastLink,
    /// The result shows or compares the old content, or gives it a name under which it can be read.
    reveals: bool,
}

impl<'a> PathChange<'a> {
    /// A change of a file's content that does not reveal the old content.
    pub(super) fn content(path: &'a str) -> Self {
        Self {
            path,
            create_directories: false,
            last_link: LastLink::Follow,
            reveals: false,
        }
    }

    /// A change of the name itself, which may be a link.
    pub(super) fn name(path: &'a str) -> Self {
        Self {
            last_link: LastLink::Keep,
            ..Self::content(path)
        }
    }

    /// Also creates missing directories above the path.
    pub(super) fn with_directories(self, create_directories: bool) -> Self {
        Self {
            create_directories,
            ..self
        }
    }

    /// Also reveals the old content, so that a call that may not read it may not do this either.
    pub(super) fn revealing(self) -> Self {
        Self {
            reveals: true,
            ..self
        }
    }
}

/// Adds the resources of a change of one path to `effects`, and the caution if the place is protected.
pub(super) fn change_effects(
    workspace: &Workspace,
    effects: Effects,
    touch: PathChange<'_>,
) -> Option<Effects> {
    let PathChange {
        path,
        create_directories,
        last_link,
        reveals,
    } = touch;
    let requested = workspace.request(path).ok()?;
    let located = match last_link {
        LastLink::Follow => workspace.locate(&requested),
        LastLink::Keep => workspace.locate_name(&requested),
    };
    let (place, used) = match located {
        Ok(located) => {
            let used = match &located.found {
                // Creating directories changes the topmost new one; a lock on it covers everything beneath.
                PathTarget::Missing { rest, .. } if create_directories && rest.len() > 1 => {
                    located.path.join(&rest[0])
                }
                PathTarget::Missing { .. }
                | PathTarget::Entry { .. }
                | PathTarget::Directory(_) => located.whole_path(),
            };
            (located.whole_path(), used)
        }
        Err(_) => (requested.lexical(), requested.lexical()),
    };
    let caution = workspace.caution(&requested, &place);
    let mut effects = effects.using(key(workspace, &used), ResourceAccess::Write);
    if workspace.guards_repositories() {
        // A repository consists of several pieces. Two calls at the same time could each create one, and neither check
        // would see the other's. Locks on the folders that could become a repository let the second call run after the
        // first, when its piece exists.
        for folder in folders_in_the_making(&place) {
            effects = effects.using(key(workspace, folder), ResourceAccess::Write);
        }
    }
    if used != place {
        // The lock on the directory covers the file, but rules need the file's own path.
        effects = effects.using(key(workspace, &place), ResourceAccess::Write);
    }
    if reveals {
        effects = effects.using(key(workspace, &place), ResourceAccess::Read);
    }
    Some(match caution {
        Some(caution) => with_caution(workspace, effects, caution),
        None => effects,
    })
}

/// Adds a caution about one place.
fn with_caution(workspace: &Workspace, effects: Effects, caution: PlaceCaution) -> Effects {
    match caution.effect {
        PlaceEffect::RunsCode => cautioned(effects, Some(caution.text)),
        PlaceEffect::SteersAgents => {
            effects.with_path_caution(key(workspace, &caution.place), caution.text)
        }
    }
}

/// Adds all cautions.
fn with_cautions(workspace: &Workspace, effects: Effects, found: Vec<PlaceCaution>) -> Effects {
    found.into_iter().fold(effects, |effects, caution| {
        with_caution(workspace, effects, caution)
    })
}

/// Adds a caution if all changes together make a repository, while each change by itself is only a piece of one.
fn with_repositories(workspace: &Workspace, effects: Effects) -> Effects {
    let changed = effects
        .uses
        .iter()
        .filter(|used| used.access == ResourceAccess::Write);
    let changed = changed
        .filter_map(|used| used.key.as_str().strip_prefix("path:"))
        .map(PathBuf::from);
    let changed: Vec<PathBuf> = changed.collect();
    match workspace.repository_caution(&changed) {
        Some(caution) if effects.caution.is_none() => with_caution(workspace, effects, caution),
        Some(_) | None => effects,
    }
}

/// The note that entries were skipped, without their names.
pub(super) fn kept_by_rules(entries: u64) -> String {
    let noun = if entries == 1 { "entry" } else { "entries" };
    format!("rules hide {entries} {noun} from this call")
}

/// Refuses a text that is not a digest.
fn check_digest(expected_sha256: Option<&str>) -> Result<(), InputRefusal> {
    match expected_sha256 {
        Some(digest)
            if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            let message = format!(
                "`{}` is not a SHA-256, which has 64 hexadecimal digits",
                shown(digest)
            );
            Err(InputRefusal::invalid("/expected_sha256", message))
        }
        Some(_) | None => Ok(()),
    }
}

/// The resource key of a place. Names that differ only in bytes that are not UTF-8 share a key and thereby exclude each
/// other, which is harmless.
fn key(workspace: &Workspace, place: &Path) -> ResourceKey {
    ResourceKey::path(&workspace.absolute(place).to_string_lossy())
}
