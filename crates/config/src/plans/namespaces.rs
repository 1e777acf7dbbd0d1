//! Files of bundles by the bundles' names: `mine:behaviors/x` is the file `behaviors/x.yaml` of the bundle `mine`.
//!
//! Amplifier keeps a registry of names on the user's machine. Here a name means a bundle of the same plan: the current
//! one, the one at the root of its repository, one that includes it, or one that was read before.

use std::path::{Component, Path, PathBuf};

use toolpost_amplifier::BundleHeader;

use super::BundleOrigin;
use crate::file;

/// The files that make a folder the root of a bundle.
const ROOTS: [&str; 3] = ["bundle.md", "bundle.yaml", "bundle.yml"];

/// The facts of a bundle that its includes depend on.
#[derive(Clone, Debug)]
pub(super) struct BundleScope {
    /// Its real file.
    file: PathBuf,
    origin: BundleOrigin,
    /// The folder that its includes may not leave.
    repository: Option<PathBuf>,
    own: Option<BundleNamespace>,
    /// The bundle at the root of its repository, read when a name needs it.
    root: RootNamespace,
}

#[derive(Clone, Debug)]
enum RootNamespace {
    NotRead,
    Read(Option<BundleNamespace>),
}

/// A name, and the folder of its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BundleNamespace {
    name: String,
    folder: PathBuf,
    origin: BundleOrigin,
    /// The folder that its files may not leave.
    bound: PathBuf,
}

impl BundleScope {
    pub(super) fn new(
        header: &BundleHeader,
        path: &Path,
        real: PathBuf,
        origin: BundleOrigin,
        repository: Option<PathBuf>,
    ) -> Self {
        let own = BundleNamespace::of(header, path, &origin, repository.as_deref());
        Self {
            file: real,
            origin,
            repository,
            own,
            root: RootNamespace::NotRead,
        }
    }

    fn namespaces(&self) -> impl Iterator<Item = &BundleNamespace> {
        let root = match &self.root {
            RootNamespace::NotRead => None,
            RootNamespace::Read(root) => root.as_ref(),
        };
        self.own.iter().chain(root)
    }
}

impl BundleNamespace {
    fn of(
        header: &BundleHeader,
        path: &Path,
        origin: &BundleOrigin,
        repository: Option<&Path>,
    ) -> Option<Self> {
        let name = header.name.clone()?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let chosen = header.namespace_root.as_ref().map(|root| folder.join(root));
        let bound = |folder: &Path| repository.unwrap_or(folder).to_owned();
        let inside =
            chosen.filter(|chosen| repository.is_none_or(|root| file::is_inside(chosen, root)));
        let folder = inside.unwrap_or_else(|| folder.to_owned());
        // A file that the operator's own plan names is a local file.
        let origin = match origin {
            BundleOrigin::Operator => BundleOrigin::Local,
            BundleOrigin::Local | BundleOrigin::Fetched(_) => origin.clone(),
        };
        Some(Self {
            name,
            bound: bound(&folder),
            folder,
            origin,
        })
    }

    /// The file of a path, with the endings that bundles leave out. `Err`: it lies outside of the folder.
    fn file(&self, path: &Path) -> Result<Option<PathBuf>, String> {
        let place = self.folder.join(path);
        let ended = |ending: &str| {
            let mut name = place.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let endings = [".yaml", ".yml", ".md"].map(ended);
        let Some(found) = file::first_of([place.clone()].into_iter().chain(endings)) else {
            return Ok(None);
        };
        let found = file::plan_in(&found);
        match file::is_inside(&found, &self.bound) {
            true => Ok(Some(found)),
            false => Err(outside(&found, &self.bound)),
        }
    }
}

fn outside(path: &Path, folder: &Path) -> String {
    format!(
        "`{}` is not a file inside of `{}`, after links are followed",
        path.display(),
        folder.display()
    )
}

/// The names that includes can use at this point.
#[derive(Debug, Default)]
pub(super) struct IncludeNamespaces {
    /// The current bundles, each included by the one before.
    within: Vec<BundleScope>,
    /// The names of all bundles that were read.
    known: Vec<BundleNamespace>,
}

impl IncludeNamespaces {
    pub(super) fn enter(&mut self, scope: BundleScope) {
        self.known.extend(scope.own.clone());
        self.within.push(scope);
    }

    pub(super) fn leave(&mut self) {
        self.within.pop();
    }

    pub(super) fn leave_to(&mut self, depth: usize) {
        self.within.truncate(depth);
    }

    pub(super) fn depth(&self) -> usize {
        self.within.len()
    }

    pub(super) fn is_being_read(&self, real: &Path) -> bool {
        self.within.iter().any(|scope| scope.file == real)
    }

    /// Why the current bundle may not include a path: it leads out of the bundle's repository.
    pub(super) fn refuse_outside(&self, path: &Path) -> Option<String> {
        let repository = self.within.last()?.repository.as_ref()?;
        (!file::is_inside(&file::plan_in(path), repository)).then(|| outside(path, repository))
    }

    /// The origin of files that the current bundle includes by path.
    pub(super) fn origin_of_includes(&self) -> BundleOrigin {
        match self.within.last().map(|scope| &scope.origin) {
            Some(origin @ BundleOrigin::Fetched(_)) => origin.clone(),
            Some(BundleOrigin::Operator | BundleOrigin::Local) | None => BundleOrigin::Local,
        }
    }

    /// The file at the root of the current bundle's repository, while its name is unknown. It is searched for once.
    pub(super) fn unread_root(&mut self) -> Option<PathBuf> {
        let scope = self.within.last_mut()?;
        match scope.root {
            RootNamespace::Read(_) => return None,
            RootNamespace::NotRead => scope.root = RootNamespace::Read(None),
        }
        let repository = scope
            .repository
            .clone()
            .or_else(|| file::repository_of(&scope.file))?;
        let repository = file::real_path(&repository);
        let above = scope.file.parent()?.ancestors().skip(1);
        let inside = above.take_while(|folder| folder.starts_with(&repository));
        inside
            .map(Path::to_owned)
            .find_map(|folder| file::first_of(ROOTS.map(|name| folder.join(name))))
    }

    /// Sets the name of the bundle at that root.
    pub(super) fn name_root(&mut self, header: &BundleHeader, path: &Path) {
        let Some(scope) = self.within.last_mut() else {
            return;
        };
        let root = BundleNamespace::of(header, path, &scope.origin, scope.repository.as_deref());
        scope.root = RootNamespace::Read(root);
    }

    /// The file of a bundle by the bundle's name. `Err`: the reason for which there is none.
    pub(super) fn find(
        &self,
        namespace: &str,
        path: &str,
    ) -> Result<(PathBuf, BundleOrigin), String> {
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let written = Path::new(path);
        if path.trim().is_empty() || !written.components().all(is_plain) {
            return Err(format!(
                "`{}` is not a path inside a bundle",
                path.escape_debug()
            ));
        }
        let nearest = self.within.iter().rev().flat_map(BundleScope::namespaces);
        let mut named = nearest
            .chain(&self.known)
            .filter(|known| known.name == namespace)
            .peekable();
        if named.peek().is_none() {
            return Err(format!(
                "no bundle of this plan is named `{}`, and the host does not read the agent's registry; write its address",
                namespace.escape_debug()
            ));
        }
        for known in named {
            if let Some(file) = known.file(written)? {
                return Ok((file, known.origin.clone()));
            }
        }
        Err(format!(
            "the bundle `{namespace}` has no file `{}`",
            path.escape_debug()
        ))
    }
}
