//! Mount plans and bundles on disk: YAML, or Markdown that begins with YAML. `toolpost-amplifier` interprets them;
//! this module finds and reads them, with the bundles that they include.

mod namespaces;

use std::path::{Path, PathBuf};

use toolpost_amplifier::{
    BundleIncludeEntry, Include, IncludeTarget, ModuleSource, MountPlan, PlanFile, PlanNote,
};

use crate::{
    ConfigError, ConfigErrors,
    error::{ConfigComplaint, ConfigSourceText},
    file, read_config, yaml,
};

use namespaces::{BundleScope, IncludeNamespaces};

/// The deepest nesting of included bundles.
const DEEPEST: usize = 16;
/// The most files of one plan.
const MOST_FILES: usize = 256;

/// The inputs for reading plans.
#[derive(Clone, Copy)]
pub struct PlanReader<'a> {
    /// The values of variables: `${NAME}` in a plan.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
    /// The path of a bundle that must be fetched first, if it was fetched.
    pub find: &'a dyn Fn(&ModuleSource) -> Option<FetchedBundle>,
}

/// A bundle that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedBundle {
    /// Its folder, or its file.
    pub path: PathBuf,
    /// The folder of its checkout, which its includes may not leave.
    pub repository: PathBuf,
}

/// A plan with all its includes.
#[derive(Clone, Debug, Default)]
pub struct LoadedPlan {
    /// The merged plan.
    pub plan: MountPlan,
    /// Remarks for the operator.
    pub notes: Vec<PlanNote>,
    /// Missing bundles: they must be fetched first, or cannot be fetched at all.
    pub missing: Vec<Include>,
    /// All bundles from elsewhere, missing or not.
    pub bundles: Vec<Include>,
    /// The files it was read from, with their texts.
    pub files: Vec<(PathBuf, String)>,
}

impl PlanReader<'_> {
    /// Reads a plan. Relative sources in it begin in its folder.
    pub fn read(self, path: &Path) -> Result<LoadedPlan, ConfigErrors> {
        let mut reading = PlanReading {
            reader: self,
            loaded: LoadedPlan::default(),
            namespaces: IncludeNamespaces::default(),
        };
        // The operator's own plan may include any file that the operator can read.
        let plan = reading.read_bundle(path, BundleOrigin::Operator)?;
        Ok(LoadedPlan {
            plan,
            ..reading.loaded
        })
    }

    fn parse(
        self,
        text: &str,
        name: &str,
        path: &Path,
    ) -> Result<(MountPlan, Vec<PlanNote>), ConfigErrors> {
        let text = match path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("md"))
        {
            true => front_matter(text).ok_or_else(|| {
                let hint = "begin it with the plan between two lines `---`".to_owned();
                let complaint = ConfigComplaint::new(
                    crate::FilePosition::default(),
                    "the file contains no plan",
                );
                ConfigErrors::from(ConfigSourceText { name, text: "" }.error(complaint.hint(hint)))
            })?,
            false => text,
        };
        let value = yaml::read_foreign(ConfigSourceText { name, text })?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let file = PlanFile {
            name,
            folder: &folder,
            lookup: self.lookup,
        };
        MountPlan::read(&value, file).map_err(|errors| {
            let message = |error: toolpost_amplifier::PlanError| {
                let place = error
                    .place
                    .strip_prefix(name)
                    .unwrap_or(&error.place)
                    .trim_start_matches(": ");
                let place = if place.is_empty() {
                    String::new()
                } else {
                    format!("`{place}`: ")
                };
                ConfigError::of_file(name, format!("{place}{} ({})", error.message, error.check))
            };
            ConfigErrors::of(errors.0.into_iter().map(message).collect())
        })
    }
}

/// The origin of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BundleOrigin {
    /// The operator named it.
    Operator,
    /// A local file that a bundle named.
    Local,
    /// It was fetched into this folder.
    Fetched(PathBuf),
}

impl BundleOrigin {
    /// The folder that its includes may not leave.
    fn repository(&self, path: &Path) -> Option<PathBuf> {
        match self {
            Self::Operator => None,
            Self::Local => file::repository_of(path),
            Self::Fetched(repository) => Some(repository.clone()),
        }
    }
}

/// An include that can be read, or the reason for which it cannot.
enum IncludeLocation {
    Here(PathBuf, BundleOrigin),
    NotHere(Include),
}

struct PlanReading<'a> {
    reader: PlanReader<'a>,
    loaded: LoadedPlan,
    namespaces: IncludeNamespaces,
}

impl PlanReading<'_> {
    fn read_bundle(
        &mut self,
        path: &Path,
        origin: BundleOrigin,
    ) -> Result<MountPlan, ConfigErrors> {
        let path = file::plan_in(path);
        let name = path.display().to_string();
        let whole = |message: &str| ConfigErrors::from(ConfigError::of_file(&name, message));
        let real = file::real_path(&path);
        if self.namespaces.is_being_read(&real) {
            return match origin {
                // Its settings are merged already, so a second time adds nothing.
                BundleOrigin::Fetched(_) => Ok(MountPlan::default()),
                BundleOrigin::Operator | BundleOrigin::Local => {
                    Err(whole("the bundle includes itself"))
                }
            };
        }
        if self.namespaces.depth() >= DEEPEST || self.loaded.files.len() >= MOST_FILES {
            return Err(whole("too many included bundles"));
        }
        let text = read_config(&path)?;
        let (plan, notes) = self.reader.parse(&text, &name, &path)?;
        self.loaded.notes.extend(notes);
        self.loaded.files.push((path.clone(), text));
        let repository = origin.repository(&path);
        self.namespaces.enter(BundleScope::new(
            plan.header(),
            &path,
            real,
            origin,
            repository,
        ));
        let mut under = MountPlan::default();
        for include in plan.includes() {
            match self.locate(include) {
                IncludeLocation::Here(place, origin) => {
                    under = self.read_include(include, &place, origin)?.over(under);
                }
                IncludeLocation::NotHere(missing) => self.loaded.missing.push(missing),
            }
        }
        self.namespaces.leave();
        Ok(plan.over(under))
    }

    /// Reads an include. The operator cannot fix an error in a fetched file, so the bundle then counts as missing,
    /// like one that cannot be fetched.
    fn read_include(
        &mut self,
        include: &BundleIncludeEntry,
        path: &Path,
        origin: BundleOrigin,
    ) -> Result<MountPlan, ConfigErrors> {
        let is_fetched = matches!(origin, BundleOrigin::Fetched(_));
        let depth = self.namespaces.depth();
        match self.read_bundle(path, origin) {
            Err(errors) if is_fetched => {
                self.namespaces.leave_to(depth);
                let why = errors.to_string();
                self.loaded
                    .missing
                    .push(unusable(include, path.display().to_string(), why));
                Ok(MountPlan::default())
            }
            read => read,
        }
    }

    fn locate(&mut self, include: &BundleIncludeEntry) -> IncludeLocation {
        let source = match &include.target {
            IncludeTarget::Named { namespace, path } => {
                return self.locate_named(include, namespace, path);
            }
            IncludeTarget::Source(source) => source,
        };
        let written = || Include {
            source: source.clone(),
            place: include.place.clone(),
        };
        match source {
            ModuleSource::Path(path) => match self.namespaces.refuse_outside(path) {
                Some(why) => IncludeLocation::NotHere(unusable(include, source.to_string(), why)),
                None => IncludeLocation::Here(path.clone(), self.namespaces.origin_of_includes()),
            },
            ModuleSource::Git { .. } | ModuleSource::Archive { .. } => {
                self.loaded.bundles.push(written());
                match (self.reader.find)(source) {
                    Some(found) => {
                        IncludeLocation::Here(found.path, BundleOrigin::Fetched(found.repository))
                    }
                    None => IncludeLocation::NotHere(written()),
                }
            }
            ModuleSource::Package(name) => {
                let why = "it is neither a file nor an address, and the host does not read the agent's registry; write its \
                           address";
                IncludeLocation::NotHere(unusable(include, name.clone(), why.to_owned()))
            }
            ModuleSource::Unspoken { .. } => IncludeLocation::NotHere(written()),
        }
    }

    fn locate_named(
        &mut self,
        include: &BundleIncludeEntry,
        namespace: &str,
        path: &str,
    ) -> IncludeLocation {
        if let Some(root) = self.namespaces.unread_root() {
            self.read_root_name(&root);
        }
        match self.namespaces.find(namespace, path) {
            Ok((file, origin)) => IncludeLocation::Here(file, origin),
            Err(why) => {
                IncludeLocation::NotHere(unusable(include, format!("{namespace}:{path}"), why))
            }
        }
    }

    /// Reads the name of the bundle at the root of a repository, which bundles in its folders use for its files.
    fn read_root_name(&mut self, root: &Path) {
        let name = root.display().to_string();
        let Ok(text) = read_config(root) else { return };
        let Ok((plan, _)) = self.reader.parse(&text, &name, root) else {
            return;
        };
        // The name decides which files are read, so trust in the plan covers this text too.
        self.loaded.files.push((root.to_owned(), text));
        self.namespaces.name_root(plan.header(), root);
    }
}

/// An include that cannot be used counts as missing: it may plan a guard.
fn unusable(include: &BundleIncludeEntry, text: String, why: String) -> Include {
    Include {
        source: ModuleSource::Unspoken { text, why },
        place: include.place.clone(),
    }
}

/// The YAML between two lines of `---` at the beginning.
fn front_matter(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let body = text
        .strip_prefix("---")?
        .trim_start_matches([' ', '\t', '\r'])
        .strip_prefix('\n')?;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(&body[..at]);
        }
        at += line.len();
    }
    None
}
