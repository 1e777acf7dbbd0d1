//! Turns merged plans into the modules to mount.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{ModuleId, ModuleKind, ModuleSource, PlannedModule};

use super::{
    MountPlan, NoteWeight, PlanNote,
    entry::{ModuleOverride, PlanEntry},
    merge,
};

impl MountPlan {
    /// The modules, in their order: tools, then hooks. An entry that cannot be mounted stays, under its `id` and with
    /// a source that gives the reason: it may be a guard, and the loader of the modules must report it as missing.
    pub fn settle(&self) -> (Vec<PlannedModule>, Vec<PlanNote>) {
        let mut modules: Vec<PlannedModule> = Vec::new();
        let mut notes = Vec::new();
        for kind in [ModuleKind::Tool, ModuleKind::Hook] {
            for entry in &self.entries(kind).list {
                let mut unusable = |why: String| {
                    let place = entry.place.clone();
                    let message = why.clone();
                    notes.push(PlanNote {
                        place,
                        weight: NoteWeight::Warning,
                        message,
                    });
                    PlannedModule {
                        kind,
                        id: ModuleId::new(entry.key.as_str()),
                        source: Some(ModuleSource::Unspoken {
                            text: entry.key.clone(),
                            why,
                        }),
                        config: Map::new(),
                        place: entry.place.clone(),
                    }
                };
                let Some(module) = &entry.module else {
                    modules.push(unusable("no plan names the module of this `id`".to_owned()));
                    continue;
                };
                if modules
                    .iter()
                    .any(|known| known.kind == kind && known.id.as_str() == module)
                {
                    let why = format!(
                        "`{module}` is planned twice under different ids, and is mounted once"
                    );
                    modules.push(unusable(why));
                    continue;
                }
                let over = self.override_of(entry, module);
                let config = match &over {
                    Some(over) => merge::merge_tables(entry.config.clone(), over.config.clone()),
                    None => entry.config.clone(),
                };
                modules.push(PlannedModule {
                    kind,
                    id: ModuleId::new(module.as_str()),
                    source: over
                        .and_then(|over| over.source)
                        .or_else(|| entry.source.clone()),
                    config: settled(config),
                    place: entry.place.clone(),
                });
            }
        }
        (modules, notes)
    }

    /// The override of an entry: by its module, then by its `id`, which is more exact.
    fn override_of(&self, entry: &PlanEntry, module: &str) -> Option<ModuleOverride> {
        let of_module = self.overrides.get(module).cloned();
        let of_id = self
            .overrides
            .get(&entry.key)
            .filter(|_| entry.key != module)
            .cloned();
        match (of_module, of_id) {
            (Some(mut under), Some(over)) => {
                under.lay(over);
                Some(under)
            }
            (under, over) => over.or(under),
        }
    }
}

fn settled(config: Map<String, Value>) -> Map<String, Value> {
    config
        .into_iter()
        .map(|(key, value)| (key, merge::settle(value)))
        .collect()
}

/// Applies sources from the environment: `AMPLIFIER_MODULE_TOOL_BASH` overrides the source of `tool-bash` in any plan.
/// Relative paths begin in `base`. A value that is no source is reported and ignored.
pub fn override_sources(
    modules: &mut [PlannedModule],
    base: &Path,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Vec<PlanNote> {
    let mut notes = Vec::new();
    for module in modules {
        let upper = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let name: String = "AMPLIFIER_MODULE_"
            .chars()
            .chain(module.id.as_str().chars().map(upper))
            .collect();
        let Some(mut text) = lookup(&name).filter(|text| !text.trim().is_empty()) else {
            continue;
        };
        super::at_home(&mut text, lookup);
        match ModuleSource::parse(&text, base) {
            Ok(source) => module.source = Some(source),
            Err(error) => notes.push(PlanNote {
                place: name,
                weight: NoteWeight::Warning,
                message: format!(
                    "{error}; `{}` is loaded from the source in its plan",
                    module.id
                ),
            }),
        }
    }
    notes
}
