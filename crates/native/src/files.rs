//! The file tools: namespace `files`, one tool a file.
//!
//! Each tool parses its path by the lexical rule (`check`, no I/O), finds the place beneath the workspace's
//! descriptor (`effects` and `execute`, through [`Workspace::locate`]) and works on descriptors from there on.
//! A path string is never opened twice, so there is nothing to win by swapping what it names.

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

/// The file tools, all on one workspace.
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

/// What all file tools have in common. `In` and `Out` give the schemas.
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

/// Says in the description which roots there are besides the primary one: nobody could guess their paths.
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

/// What a tool that only reads `path` touches: the real place, however the path spells it.
pub(super) fn read_effects(workspace: &Workspace, path: &str) -> Option<Effects> {
    let requested = workspace.request(path).ok()?;
    let place = workspace
        .locate(&requested)
        .map_or_else(|_| requested.lexical(), |located| located.whole_path());
    Some(Effects::of(EffectClass::Read).using(key(workspace, &place), ResourceAccess::Read))
}

/// A path that a call will change.
#[derive(Clone, Copy)]
pub(super) struct PathChange<'a> {
    path: &'a str,
    /// Directories above it are made where they are missing.
    create_directories: bool,
    last_link: LastLink,
    /// What was there before comes to light: it is shown, compared, or gets a name under which it can be read.
    reveals: bool,
}

impl<'a> PathChange<'a> {
    /// The content of a file is replaced, and the old one not told.
    pub(super) fn content(path: &'a str) -> Self {
        Self {
            path,
            create_directories: false,
            last_link: LastLink::Follow,
            reveals: false,
        }
    }

    /// The name itself is changed, be it a link.
    pub(super) fn name(path: &'a str) -> Self {
        Self {
            last_link: LastLink::Keep,
            ..Self::content(path)
        }
    }

    /// Directories above it are made where they are missing.
    pub(super) fn with_directories(self, create_directories: bool) -> Self {
        Self {
            create_directories,
            ..self
        }
    }

    /// What was there before comes to light, so that whoever may not read it may not do this either.
    pub(super) fn revealing(self) -> Self {
        Self {
            reveals: true,
            ..self
        }
    }
}

/// Adds to `effects` what a change of one path touches, and whether somebody should look at it first.
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
                // Making directories changes the topmost of them, and what is beneath is covered by that.
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
        // Two calls at a time could each bring a piece of a repository, and neither would see the other's.
        for folder in folders_in_the_making(&place) {
            effects = effects.using(key(workspace, folder), ResourceAccess::Write);
        }
    }
    if used != place {
        // The lock above covers it, but rules speak of the file itself.
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

/// Adds a reason to look at one place.
fn with_caution(workspace: &Workspace, effects: Effects, caution: PlaceCaution) -> Effects {
    match caution.effect {
        PlaceEffect::RunsCode => cautioned(effects, Some(caution.text)),
        PlaceEffect::SteersAgents => {
            effects.with_path_caution(key(workspace, &caution.place), caution.text)
        }
    }
}

/// Adds all reasons that were found.
fn with_cautions(workspace: &Workspace, effects: Effects, found: Vec<PlaceCaution>) -> Effects {
    found.into_iter().fold(effects, |effects, caution| {
        with_caution(workspace, effects, caution)
    })
}

/// Adds a reason to look where all that is changed together makes a repository, of which each change by itself is only
/// a piece.
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

/// Says that something was passed over, and nothing of what it was.
pub(super) fn kept_by_rules(entries: u64) -> String {
    let noun = if entries == 1 {
        "entry is"
    } else {
        "entries are"
    };
    format!("{entries} {noun} kept from this call by rules")
}

/// Refuses what cannot be a digest.
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

/// The scheduler's name of a place in the workspace. Two names that differ only in bytes that are no UTF-8 share
/// a key and thereby wait for one another, which is harmless.
fn key(workspace: &Workspace, place: &Path) -> ResourceKey {
    ResourceKey::path(&workspace.absolute(place).to_string_lossy())
}
