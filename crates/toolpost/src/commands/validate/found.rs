//! The module at a path, as far as it can be identified without running any of it.

use std::path::{Path, PathBuf};

use toolpost_amplifier::{ModuleId, ModuleTransport, ModuleType};
use toolpost_modules::{ResolveError, resolve_folder};

use crate::environment;

use super::{check::CheckName, entry_point, report::ValidationCheck};

/// A module to validate.
pub(super) struct ModuleCandidate {
    /// Its name in reports and as a namespace of tools.
    pub(super) id: ModuleId,
    /// Its path, as given.
    pub(super) path: PathBuf,
    /// The `pyproject.toml` of a Python module, if there is one.
    pub(super) pyproject: Option<String>,
}

/// Identifies the module at a path. If there is none, the checks give the reason.
pub(super) fn find(path: &Path) -> (Vec<ValidationCheck>, Option<ModuleCandidate>) {
    let resolved = match resolve_folder(path) {
        Ok(resolved) => resolved,
        Err(error) => return (vec![unresolved(path, &error)], None),
    };
    let pyproject = match &resolved.transport {
        ModuleTransport::Python => environment::pyproject_of(path),
        ModuleTransport::Wasm { .. }
        | ModuleTransport::Grpc { .. }
        | ModuleTransport::Rust { .. } => None,
    };
    let mut checks = Vec::new();
    if let Some(found) = resolved.module_type {
        checks.push(ValidationCheck::passed(
            CheckName::Manifest,
            format!("`amplifier.toml`: {}", runs_as(&resolved.transport)),
        ));
        checks.push(match found {
            ModuleType::Tool => ValidationCheck::passed(
                CheckName::ModuleType,
                "the manifest declares the type `tool`",
            ),
            other => ValidationCheck::failed(
                CheckName::ModuleType,
                format!("the manifest declares the type `{other}`, not `tool`"),
            ),
        });
    }
    checks.extend(
        resolved
            .notes
            .iter()
            .map(|note| ValidationCheck::failed(CheckName::Manifest, note).mildly()),
    );
    let id = ModuleId::new(module_id(path, pyproject.as_deref()));
    (
        checks,
        Some(ModuleCandidate {
            id,
            path: path.to_owned(),
            pyproject,
        }),
    )
}

fn unresolved(path: &Path, error: &ResolveError) -> ValidationCheck {
    let name = match error {
        ResolveError::Manifest { .. } => CheckName::Manifest,
        ResolveError::WrongType { .. } => CheckName::ModuleType,
        ResolveError::PathNotFound { .. }
        | ResolveError::NoArtifact { .. }
        | ResolveError::Io { .. } => CheckName::ModuleImportable,
    };
    let mut message = error.to_string();
    if name == CheckName::ModuleImportable && environment::is_crate_without_manifest(path) {
        message.push_str(
            "\nhint: for the crate here, add an `amplifier.toml` with `transport = \"rust\"`; see `toolpost new tool \
             --lang rust`",
        );
    }
    ValidationCheck::failed(name, message)
}

fn runs_as(transport: &ModuleTransport) -> String {
    match transport {
        ModuleTransport::Python => "a Python package".to_owned(),
        ModuleTransport::Wasm { sha256: None, .. } => "a WebAssembly component".to_owned(),
        ModuleTransport::Wasm {
            sha256: Some(_), ..
        } => "a WebAssembly component with a digest".to_owned(),
        ModuleTransport::Grpc { endpoint } => format!("a service at `{endpoint}`"),
        ModuleTransport::Rust { name } => format!("the program `{name}`"),
    }
}

/// Its name in its own entry point, or else the name of its folder.
fn module_id(path: &Path, pyproject: Option<&str>) -> String {
    if let Some(id) = pyproject.and_then(entry_point::module_id) {
        return id;
    }
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or("module");
    let bare = name
        .strip_prefix("amplifier_module_")
        .or_else(|| name.strip_prefix("amplifier-module-"));
    bare.unwrap_or(name).replace('_', "-")
}
