//! What lies at a path, as far as that can be told without running any of it.

use std::path::{Path, PathBuf};

use toolpost_amplifier::{ModuleId, ModuleType, Transport};
use toolpost_sources::{ResolveError, resolve_folder};

use crate::environment;

use super::{check::CheckName, entry_point, report::Check};

/// A module that can be tried.
pub(super) struct Found {
    /// What it is called in reports and as a collection of tools.
    pub(super) id: ModuleId,
    /// Where it is, as it was named.
    pub(super) path: PathBuf,
    /// The `pyproject.toml` of a Python module, where there is one.
    pub(super) pyproject: Option<String>,
}

/// Looks at a path. Without a module there, the checks say why.
pub(super) fn find(path: &Path) -> (Vec<Check>, Option<Found>) {
    let resolved = match resolve_folder(path) {
        Ok(resolved) => resolved,
        Err(error) => return (vec![unresolved(path, &error)], None),
    };
    let pyproject = match &resolved.transport {
        Transport::Python => environment::pyproject_of(path),
        Transport::Wasm { .. } | Transport::Grpc { .. } | Transport::Rust { .. } => None,
    };
    let mut checks = Vec::new();
    if let Some(found) = resolved.module_type {
        checks.push(Check::passed(
            CheckName::Manifest,
            format!("`amplifier.toml`: {}", runs_as(&resolved.transport)),
        ));
        checks.push(match found {
            ModuleType::Tool => Check::passed(
                CheckName::ModuleType,
                "its manifest says that it brings tools",
            ),
            other => Check::failed(
                CheckName::ModuleType,
                format!("its manifest says that it is a module of type `{other}`"),
            ),
        });
    }
    checks.extend(
        resolved
            .notes
            .iter()
            .map(|note| Check::failed(CheckName::Manifest, note).mildly()),
    );
    let id = ModuleId::new(module_id(path, pyproject.as_deref()));
    (
        checks,
        Some(Found {
            id,
            path: path.to_owned(),
            pyproject,
        }),
    )
}

fn unresolved(path: &Path, error: &ResolveError) -> Check {
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
            "\nhint: there is a `Cargo.toml`; hosts run a crate whose `amplifier.toml` says `transport = \"rust\"`, see \
             `toolpost new tool --lang rust`",
        );
    }
    Check::failed(name, message)
}

fn runs_as(transport: &Transport) -> String {
    match transport {
        Transport::Python => "a Python package".to_owned(),
        Transport::Wasm { sha256: None, .. } => "a WebAssembly component".to_owned(),
        Transport::Wasm {
            sha256: Some(_), ..
        } => "a WebAssembly component with a digest".to_owned(),
        Transport::Grpc { endpoint } => format!("a service at `{endpoint}`"),
        Transport::Rust { name } => format!("the program `{name}`"),
    }
}

/// What its own entry point calls it, or its folder does.
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
