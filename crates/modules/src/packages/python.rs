//! The Python interpreter of this machine: its path, its version and the modules that are installed in it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cap_std::{ambient_authority, fs::Dir};
use serde::Deserialize;
use toolpost_model::SandboxProfile;

use crate::{
    running::{ModuleSetupCommand, RunError, run},
    supply::{ModuleSupply, SetupProgressSink},
};

use super::{PackagesError, text};

/// The time limit of an interpreter's answer.
const TIME: Duration = Duration::from_secs(60);
/// The oldest version that has the syntax of the bridge.
const OLDEST: (u32, u32) = (3, 10);

/// Prints the interpreter's facts. Its arguments are modules and packages, each as `id:package`, with an empty package
/// for a module that must be installed already.
const QUESTIONS: &str = r#"
import importlib.metadata as metadata, importlib.util, json, sys, sysconfig

def installed(asked):
    module, package = asked.split(":", 1)
    names = [package] if package else [module, "amplifier-module-" + module]
    for name in names:
        try:
            metadata.distribution(name)
            return True
        except metadata.PackageNotFoundError:
            pass
    if package:
        return False
    if any(entry.name == module for entry in metadata.entry_points(group="amplifier.modules")):
        return True
    return importlib.util.find_spec("amplifier_module_" + module.replace("-", "_")) is not None

print(json.dumps({
    "version": list(sys.version_info[:3]),
    "executable": getattr(sys, "_base_executable", None) or sys.executable,
    "prefixes": sorted({sys.prefix, sys.base_prefix, sys.exec_prefix}),
    "site": sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}),
    "abi": sysconfig.get_config_var("SOABI") or "",
    "installed": [installed(asked) for asked in sys.argv[1:]],
}))
"#;

/// The facts that an interpreter reported.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PythonInterpreter {
    version: (u32, u32, u32),
    /// The interpreter itself, not the link or script that led to it.
    pub(super) executable: PathBuf,
    pub(super) prefixes: Vec<PathBuf>,
    /// The folders of its own packages.
    pub(super) site: Vec<PathBuf>,
    abi: String,
    /// The answers about the modules, in their order.
    pub(super) installed: Vec<bool>,
}

impl PythonInterpreter {
    pub(super) async fn ask(
        supply: &ModuleSupply,
        found: &Path,
        folder: &Path,
        modules: &[(&str, &str)],
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<Self, PackagesError> {
        let mut argv = vec![
            found.as_os_str().to_owned(),
            "-I".into(),
            "-c".into(),
            QUESTIONS.into(),
        ];
        argv.extend(
            modules
                .iter()
                .map(|(id, package)| format!("{id}:{package}").into()),
        );
        let errand = ModuleSetupCommand {
            argv,
            folder: folder.to_owned(),
            readable: prefixes_of(found),
            variables: Vec::new(),
            profile: SandboxProfile::ReadOnly,
            time_limit: TIME,
        };
        let answer = run(supply, errand, progress)
            .await
            .map_err(PackagesError::Python)?;
        let python: Self =
            serde_json::from_str(answer.trim()).map_err(|source| PackagesError::Answer {
                python: found.to_owned(),
                source,
            })?;
        let (major, minor, _) = python.version;
        match (major, minor) < OLDEST {
            true => Err(PackagesError::TooOld {
                python: found.to_owned(),
                version: python.version(),
            }),
            false => Ok(python),
        }
    }

    pub(super) fn version(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// The properties that installed packages depend on.
    pub(super) fn identity(&self) -> String {
        format!("{} {} {}", text(&self.executable), self.version(), self.abi)
    }
}

/// The interpreter to use: the operator's, or the first `python3` on the path.
pub(super) fn find(supply: &ModuleSupply) -> Result<PathBuf, PackagesError> {
    let wanted = supply
        .python
        .clone()
        .unwrap_or_else(|| PathBuf::from("python3"));
    let found = if wanted.components().count() > 1 {
        is_program(&wanted).then(|| wanted.clone())
    } else {
        on_path(supply, &wanted)
    };
    found.ok_or_else(|| PackagesError::NoPython {
        wanted: text(&wanted),
    })
}

/// A program of this name on the path.
pub(super) fn on_path(supply: &ModuleSupply, name: &Path) -> Option<PathBuf> {
    let path = supply.environment.get("PATH").unwrap_or_default();
    path.split(':')
        .map(|folder| Path::new(folder).join(name))
        .find(|place| is_program(place))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        && rustix::fs::stat(path).is_ok_and(|found| {
            rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::RegularFile
        })
}

/// The folders that an interpreter needs, derived from its path alone: its own folder, and `/opt/python` for
/// `/opt/python/bin/python3`, both for the link and for its target.
pub(super) fn prefixes_of(python: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut place = python.to_owned();
    // Environments made from environments are links to links, and rarely deeper than this.
    for _ in 0..4 {
        let above = place
            .parent()
            .and_then(Path::parent)
            .filter(|above| is_prefix(above));
        found.extend(above.map(Path::to_owned));
        found.push(place.clone());
        let Ok(target) = rustix::fs::readlink(&place, Vec::new()) else {
            break;
        };
        let target = PathBuf::from(String::from_utf8_lossy(target.as_bytes()).into_owned());
        place = place.parent().unwrap_or(Path::new("/")).join(target);
    }
    found.dedup();
    found
}

/// Whether a folder is Python's own. The folder above `~/bin` is a home folder, not a prefix.
fn is_prefix(folder: &Path) -> bool {
    let Ok(dir) = Dir::open_ambient_dir(folder, ambient_authority()) else {
        return false;
    };
    let names = dir.read_dir("lib").into_iter().flatten().flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    dir.exists("pyvenv.cfg")
        || names.any(|name| name.starts_with("python3") || name.starts_with("pypy3"))
}

/// The packages of an environment, as `name==version`.
pub(super) async fn frozen(
    supply: &ModuleSupply,
    (python, folder): (&Path, &Path),
    readable: Vec<PathBuf>,
    progress: &mut SetupProgressSink<'_>,
) -> Result<Vec<String>, RunError> {
    const LIST: &str = "import importlib.metadata as m\n\
                        print('\\n'.join(sorted(f\"{d.metadata['Name']}=={d.version}\" for d in m.distributions())))";
    let errand = ModuleSetupCommand {
        argv: vec![
            python.as_os_str().to_owned(),
            "-I".into(),
            "-c".into(),
            LIST.into(),
        ],
        folder: folder.to_owned(),
        readable,
        variables: Vec::new(),
        profile: SandboxProfile::ReadOnly,
        time_limit: TIME,
    };
    let listed = run(supply, errand, progress).await?;
    Ok(listed
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}
