//! The entry point in a Python package's metadata, by which hosts find `mount` once the package is installed.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::{check::CheckName, report::ValidationCheck};

/// The group of Amplifier's entry points.
const GROUP: &str = "amplifier.modules";

#[derive(Deserialize)]
struct PyProject {
    project: Option<PyprojectTable>,
    tool: Option<OtherTools>,
}

#[derive(Deserialize)]
struct PyprojectTable {
    #[serde(default, rename = "entry-points")]
    entry_points: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct OtherTools {
    poetry: Option<PoetryTable>,
}

/// Poetry's own tables, which are older than the standard ones.
#[derive(Deserialize)]
struct PoetryTable {
    #[serde(default)]
    plugins: BTreeMap<String, BTreeMap<String, String>>,
}

/// The module's name in its own entry point, if it has one.
pub(super) fn module_id(text: &str) -> Option<String> {
    entries(text).ok()?.into_iter().next().map(|(id, _)| id)
}

/// Every entry point of the group.
fn entries(text: &str) -> Result<Vec<(String, String)>, toml::de::Error> {
    let project: PyProject = toml::from_str(text)?;
    let standard = project
        .project
        .map(|project| project.entry_points)
        .unwrap_or_default();
    let poetry = project
        .tool
        .and_then(|tool| tool.poetry)
        .map(|poetry| poetry.plugins)
        .unwrap_or_default();
    Ok([standard, poetry]
        .into_iter()
        .filter_map(|mut table| table.remove(GROUP))
        .flatten()
        .collect())
}

/// Checks the text of a `pyproject.toml`. `None`: there is none. `package` is the import name of the module.
pub(super) fn check(text: Option<&str>, package: Option<&str>) -> ValidationCheck {
    let name = CheckName::EntryPoint;
    let Some(text) = text else {
        // The module is found by its path without an entry point.
        let message = "`pyproject.toml` is missing, so hosts find the module only by its path";
        return ValidationCheck::failed(name, message).mildly();
    };
    let entries = match entries(text) {
        Ok(entries) => entries,
        Err(error) => {
            return ValidationCheck::failed(
                name,
                format!("`pyproject.toml` cannot be read: {}", error.message()),
            );
        }
    };
    if entries.is_empty() {
        let package = package.unwrap_or("my_package");
        return ValidationCheck::failed(
            name,
            format!(
                "`pyproject.toml` has no entry point in the group `{GROUP}`\nhint: add \
                 [project.entry-points.\"{GROUP}\"] with my-tool = \"{package}:mount\""
            ),
        );
    }
    let fits = |target: &str| {
        let (module, function) = target.split_once(':').unwrap_or((target, ""));
        function.trim() == "mount" && package.is_none_or(|package| module.trim() == package)
    };
    match entries.iter().find(|(_, target)| fits(target)) {
        Some((id, target)) => ValidationCheck::passed(name, format!("`{id}` is `{target}`")),
        None => {
            let (id, target) = &entries[0];
            let wanted = package.unwrap_or("my_package");
            ValidationCheck::failed(
                name,
                format!("`{id}` is `{target}`, but `mount` is at `{wanted}:mount`"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::CheckSeverity;

    #[test]
    fn the_entry_point_must_lead_to_mount() {
        let entry = |target: &str| {
            format!("[project.entry-points.\"amplifier.modules\"]\nmy-tool = \"{target}\"\n")
        };
        for (text, passed, severity) in [
            (Some(entry("pkg:mount")), true, CheckSeverity::Info),
            (Some(entry("other:mount")), false, CheckSeverity::Error),
            (Some(entry("pkg:start")), false, CheckSeverity::Error),
            (Some(entry("pkg")), false, CheckSeverity::Error),
            (
                Some("[tool.poetry.plugins.\"amplifier.modules\"]\nx = \"pkg:mount\"".to_owned()),
                true,
                CheckSeverity::Info,
            ),
            (
                Some("[project]\nname = \"x\"".to_owned()),
                false,
                CheckSeverity::Error,
            ),
            (Some("[project".to_owned()), false, CheckSeverity::Error),
            (None, false, CheckSeverity::Warning),
        ] {
            let check = super::check(text.as_deref(), Some("pkg"));
            assert_eq!(
                (check.passed, check.severity),
                (passed, severity),
                "{text:?}: {}",
                check.message
            );
        }
    }
}
