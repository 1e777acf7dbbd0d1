//! Mount plans and bundles: the modules that a host mounts, with their sources and configuration.
//!
//! A [`MountPlan`] is read from a value (the caller parses the YAML), laid over others and settled into
//! [`PlannedModule`](crate::PlannedModule)s. A host of tools uses only `tools` and `hooks`; the other sections of a
//! plan belong to the agent and are accepted with a note.

mod entry;
mod expand;
mod merge;
mod sections;
mod settle;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use serde_json::Value;

use crate::{ModuleKind, ModuleSource, ModuleSourceError};

use entry::{ModuleOverride, PlanEntryList};

pub use settle::override_sources;

/// A parsed plan, not yet settled. Plans are laid over one another with [`MountPlan::over`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MountPlan {
    tools: PlanEntryList,
    hooks: PlanEntryList,
    overrides: BTreeMap<String, ModuleOverride>,
    header: BundleHeader,
    includes: Vec<BundleIncludeEntry>,
}

/// The header of a bundle, under `bundle`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleHeader {
    /// The namespace of its own files: with the name `mine`, `mine:behaviors/x` is a file of the bundle.
    pub name: Option<String>,
    /// The folder of the namespace, relative to the bundle, if it is not the bundle's own.
    pub namespace_root: Option<String>,
}

/// One entry under `includes`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleIncludeEntry {
    /// The included bundle.
    pub target: IncludeTarget,
    /// Its place: `bundle.yaml: includes[0]`.
    pub place: String,
}

/// The target of an entry under `includes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeTarget {
    /// A file, a folder or an address.
    Source(ModuleSource),
    /// A file of a bundle by the bundle's name: `foundation:behaviors/agents`.
    Named {
        /// The bundle's name.
        namespace: String,
        /// The file in it, often without its ending.
        path: String,
    },
}

/// An included bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// Its source.
    pub source: ModuleSource,
    /// Its place: `bundle.yaml: includes[0]`.
    pub place: String,
}

/// A remark about a plan for its author. It is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNote {
    /// File and section.
    pub place: String,
    /// Whether it needs attention.
    pub weight: NoteWeight,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for PlanNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// The importance of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteWeight {
    /// For information.
    Info,
    /// Probably a mistake.
    Warning,
}

/// An error in a plan, under the name that Amplifier's own validator has for the check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message} ({check})")]
pub struct PlanError {
    /// File and section.
    pub place: String,
    /// The check: `tools[0]_module_required`.
    pub check: String,
    /// The error in plain words.
    pub message: String,
}

/// All errors of a plan; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PlanErrors(pub Vec<PlanError>);

/// The facts of a plan's file.
#[derive(Clone, Copy)]
pub struct PlanFile<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// The folder for relative sources.
    pub folder: &'a Path,
    /// The values of variables.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl MountPlan {
    /// Reads a mount plan or a bundle.
    pub fn read(value: &Value, file: PlanFile<'_>) -> Result<(Self, Vec<PlanNote>), PlanErrors> {
        let mut reading = PlanDiagnostics {
            file,
            notes: Vec::new(),
            errors: Vec::new(),
            unset: BTreeSet::new(),
        };
        let plan = sections::read(value, &mut reading);
        if !reading.unset.is_empty() {
            let names: Vec<String> = reading
                .unset
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            let message = format!(
                "no value and no default for {}, so an empty text replaces it",
                names.join(", ")
            );
            reading.note("", NoteWeight::Warning, message);
        }
        if reading.errors.is_empty() {
            Ok((plan, reading.notes))
        } else {
            Err(PlanErrors(reading.errors))
        }
    }

    /// The included bundles, in their order: each overrides the one before, and this plan overrides all.
    pub fn includes(&self) -> &[BundleIncludeEntry] {
        &self.includes
    }

    /// The header.
    pub fn header(&self) -> &BundleHeader {
        &self.header
    }

    /// This plan laid over another: entries with the same `id` or `module` merge, new ones follow. Includes and names
    /// are dropped: the caller has read them before it lays plans over one another.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        let mut overrides = under.overrides;
        for (id, over) in self.overrides {
            overrides.entry(id).or_default().lay(over);
        }
        Self {
            tools: self.tools.over(under.tools),
            hooks: self.hooks.over(under.hooks),
            overrides,
            header: BundleHeader::default(),
            includes: Vec::new(),
        }
    }

    fn entries(&self, kind: ModuleKind) -> &PlanEntryList {
        match kind {
            ModuleKind::Tool => &self.tools,
            ModuleKind::Hook => &self.hooks,
        }
    }
}

struct PlanDiagnostics<'a> {
    file: PlanFile<'a>,
    notes: Vec<PlanNote>,
    errors: Vec<PlanError>,
    /// Variables without a value.
    unset: BTreeSet<String>,
}

impl PlanDiagnostics<'_> {
    fn place(&self, section: &str) -> String {
        if section.is_empty() {
            self.file.name.to_owned()
        } else {
            format!("{}: {section}", self.file.name)
        }
    }

    fn note(&mut self, section: &str, weight: NoteWeight, message: impl Into<String>) {
        self.notes.push(PlanNote {
            place: self.place(section),
            weight,
            message: message.into(),
        });
    }

    fn error(&mut self, section: &str, check: impl Into<String>, message: impl Into<String>) {
        self.errors.push(PlanError {
            place: self.place(section),
            check: check.into(),
            message: message.into(),
        });
    }

    fn expanded(&mut self, mut value: Value) -> Value {
        expand::expand(&mut value, self.file.lookup, &mut self.unset);
        value
    }

    fn source(&mut self, section: &str, value: &Value) -> Option<ModuleSource> {
        let mut value = self.expanded(value.clone());
        match &mut value {
            Value::String(text) => at_home(text, self.file.lookup),
            Value::Object(table) => {
                if let Some(Value::String(path)) = table.get_mut("path") {
                    at_home(path, self.file.lookup);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
        }
        match ModuleSource::of_value(&value, self.file.folder) {
            Ok(source) => Some(source),
            // A plan for several machines may name schemes that only another host supports.
            Err(error @ ModuleSourceError::Scheme(..)) => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                Some(ModuleSource::Unspoken {
                    text,
                    why: error.to_string(),
                })
            }
            Err(error) => {
                self.error(section, format!("{section}_source_type"), error.to_string());
                None
            }
        }
    }
}

/// Replaces `~` at the start of a path with the home folder, if it is known.
fn at_home(text: &mut String, lookup: &dyn Fn(&str) -> Option<String>) {
    let rest = text
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    if let (Some(rest), Some(home)) = (rest, lookup("HOME").filter(|home| home.starts_with('/'))) {
        *text = format!("{home}{rest}");
    }
}

/// The kind of a value, for messages.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

#[cfg(test)]
mod tests;
