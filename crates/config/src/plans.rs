//! Mount plans and bundles on disk: YAML, or Markdown that begins with YAML. What they mean is known to
//! `toolpost-amplifier`; here they are found and read, with the bundles they build on.

use std::path::{Path, PathBuf};

use toolpost_amplifier::{Include, ModuleSource, NoteWeight, Plan, PlanFile, PlanNote};

use crate::{
    ConfigError, ConfigErrors,
    error::{Complaint, Source},
    file, read_config, yaml,
};

/// Bundles that build on bundles.
const DEEPEST: usize = 8;
/// Files that one plan is made of.
const MOST_FILES: usize = 64;

/// What reading plans needs from outside.
#[derive(Clone, Copy)]
pub struct PlanReader<'a> {
    /// The values of variables: `${NAME}` in a plan.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
    /// Where a bundle is that must be fetched first, if it has been.
    pub find: &'a dyn Fn(&ModuleSource) -> Option<PathBuf>,
}

/// A plan that was read, with everything it builds on.
#[derive(Clone, Debug, Default)]
pub struct LoadedPlan {
    /// What it says.
    pub plan: Plan,
    /// What somebody should know.
    pub notes: Vec<PlanNote>,
    /// Bundles it builds on that must be fetched first.
    pub missing: Vec<Include>,
    /// All bundles it builds on that lie elsewhere, here or not.
    pub bundles: Vec<Include>,
    /// The files it was read from, with their texts.
    pub files: Vec<(PathBuf, String)>,
}

impl PlanReader<'_> {
    /// Reads a plan. Relative sources in it begin in its folder.
    pub fn read(self, path: &Path) -> Result<LoadedPlan, ConfigErrors> {
        let mut loaded = LoadedPlan::default();
        let plan = self.read_into(path, &mut loaded, &mut Vec::new())?;
        loaded.plan = plan;
        Ok(loaded)
    }

    fn read_into(
        self,
        path: &Path,
        loaded: &mut LoadedPlan,
        within: &mut Vec<PathBuf>,
    ) -> Result<Plan, ConfigErrors> {
        let path = file::plan_in(path);
        let name = path.display().to_string();
        let whole = |message: &str| ConfigErrors::from(ConfigError::of_file(&name, message));
        let real = file::real_path(&path);
        if within.contains(&real) {
            return Err(whole("the bundle builds on itself"));
        }
        if within.len() >= DEEPEST || loaded.files.len() >= MOST_FILES {
            return Err(whole("too many bundles build on one another"));
        }
        let text = read_config(&path)?;
        let (plan, notes) = self.parse(&text, &name, &path)?;
        loaded.notes.extend(notes);
        loaded.files.push((path, text));
        within.push(real);
        let mut under = Plan::default();
        for include in plan.includes() {
            let place = match &include.source {
                ModuleSource::Path(path) => Some(path.clone()),
                ModuleSource::Package(_) => {
                    let message = format!("`{}` is no file and no address, and is left out", include.source);
                    let place = include.place.clone();
                    loaded.notes.push(PlanNote { place, weight: NoteWeight::Warning, message });
                    continue;
                }
                ModuleSource::Git { .. } | ModuleSource::Archive { .. } => {
                    loaded.bundles.push(include.clone());
                    (self.find)(&include.source)
                }
                ModuleSource::Unspoken { .. } => None,
            };
            match place {
                Some(place) => under = self.read_into(&place, loaded, within)?.over(under),
                None => loaded.missing.push(include.clone()),
            }
        }
        within.pop();
        Ok(plan.over(under))
    }

    fn parse(self, text: &str, name: &str, path: &Path) -> Result<(Plan, Vec<PlanNote>), ConfigErrors> {
        let text = match path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md")) {
            true => front_matter(text).ok_or_else(|| {
                let hint = "begin it with a line `---`, the plan, and another such line".to_owned();
                let complaint = Complaint::new(crate::Position::default(), "the file holds no plan");
                ConfigErrors::from(Source { name, text: "" }.error(complaint.hint(hint)))
            })?,
            false => text,
        };
        let value = yaml::read_foreign(Source { name, text })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let file = PlanFile { name, folder: &folder, lookup: self.lookup };
        Plan::read(&value, file).map_err(|errors| {
            let message = |error: toolpost_amplifier::PlanError| {
                let place = error.place.strip_prefix(name).unwrap_or(&error.place).trim_start_matches(": ");
                let place = if place.is_empty() { String::new() } else { format!("`{place}`: ") };
                ConfigError::of_file(name, format!("{place}{} ({})", error.message, error.check))
            };
            ConfigErrors::of(errors.0.into_iter().map(message).collect())
        })
    }
}

/// The YAML between two lines of `---` at the beginning.
fn front_matter(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let body = text.strip_prefix("---")?.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')?;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(&body[..at]);
        }
        at += line.len();
    }
    None
}
