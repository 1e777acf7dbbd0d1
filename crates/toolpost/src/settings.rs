//! From flags and files to one configuration: what is typed becomes what is used.

use std::path::{Path, PathBuf};

use anyhow::Context;
use sha2::{Digest, Sha256};
use toolpost_config::{
    A2eHostFile, ConfigError, ConfigFile, HostConfig, Layer, NetworkSection, Notice, RootAccess, RootEntry,
    RuleEntry, SandboxSection, Standing, read_config,
};
use toolpost_model::RuleOrigin;
use toolpost_serve::NativeHandover;
use toolpost_store::{DataDir, DataDirError, TrustStore};

use crate::{
    cli::{ConfineArgs, PlaceArgs, PolicyArgs},
    environment,
};

/// The name of a workspace's own configuration.
pub(crate) const PROJECT_FILE: &str = "toolpost.yaml";

/// Where a command works.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) workspace: PathBuf,
    pub(crate) data_dir: PathBuf,
}

/// The configuration a command uses, and what was ignored on the way.
pub(crate) struct Settings {
    pub(crate) place: Place,
    pub(crate) config: HostConfig,
    pub(crate) notices: Vec<Notice>,
    /// The workspace's file and whether it is trusted, where there is one.
    pub(crate) project: Option<Project>,
    /// The trusted file that was given.
    pub(crate) file: Option<PathBuf>,
}

impl Settings {
    /// What the native tools of a host need beside the configuration. Credentials are looked up here and not before:
    /// one that cannot be read is no reason not to look at the record or to be told by `doctor`.
    pub(crate) fn handover(&self) -> anyhow::Result<NativeHandover> {
        Ok(NativeHandover {
            program: environment::this_program(),
            credentials: environment::credentials(&self.config.network.credentials)?,
            own_files: self.file.iter().cloned().collect(),
        })
    }

    /// The same for a host that only shows its tools and never calls one.
    pub(crate) fn to_look_at(&self) -> (HostConfig, NativeHandover) {
        let mut config = self.config.clone();
        config.data_dir = None;
        config.network.credentials.clear();
        let program = environment::this_program();
        (
            config,
            NativeHandover {
                program,
                own_files: self.file.iter().cloned().collect(),
                ..NativeHandover::default()
            },
        )
    }
}

/// The configuration file found in a workspace.
pub(crate) struct Project {
    pub(crate) path: PathBuf,
    pub(crate) digest: [u8; 32],
    pub(crate) standing: Standing,
}

/// Only where a command works: for looking at the record, which must be readable whatever the workspace's own
/// file says.
pub(crate) fn locate(place: &PlaceArgs) -> anyhow::Result<Place> {
    place_of(place, trusted_layer(place)?.as_ref())
}

fn trusted_layer(place: &PlaceArgs) -> anyhow::Result<Option<Layer>> {
    let Some(path) = &place.config else { return Ok(None) };
    let text = read_config(path)?;
    let parsed = ConfigFile::parse(&text, &path.display().to_string())?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    Ok(Some(Layer::new(parsed, Standing::Trusted, RuleOrigin::Cli).relative_to(folder)))
}

/// The file of an A2E host, and the layer it makes.
pub(crate) fn a2e_file(path: &Path) -> anyhow::Result<(A2eHostFile, Layer)> {
    let text = read_config(path)?;
    let file = A2eHostFile::parse(&text, &path.display().to_string())?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let layer = Layer::new(file.parsed.clone(), Standing::Trusted, RuleOrigin::Cli).relative_to(folder);
    Ok((file, layer))
}

fn place_of(place: &PlaceArgs, trusted: Option<&Layer>) -> anyhow::Result<Place> {
    let configured = trusted.map(|layer| HostConfig::resolve(std::slice::from_ref(layer))).transpose()?;
    let configured = configured.map(|(config, _)| config).unwrap_or_default();
    let workspace = environment::workspace(place.workspace.as_deref().or(configured.workspace.as_deref()))?;
    let data_dir = match place.data_dir.clone().or(configured.data_dir) {
        Some(data_dir) => data_dir,
        None => environment::default_data_dir(&workspace)?,
    };
    Ok(Place { workspace, data_dir })
}

/// Reads every layer: the trusted file or the workspace's own, then the flags.
pub(crate) fn resolve(place: &PlaceArgs, policy: &PolicyArgs) -> anyhow::Result<Settings> {
    resolve_over(Vec::new(), place, policy)
}

/// The same over layers that came by another way.
pub(crate) fn resolve_over(
    mut layers: Vec<Layer>,
    place: &PlaceArgs,
    policy: &PolicyArgs,
) -> anyhow::Result<Settings> {
    let trusted = trusted_layer(place)?;
    let place_found = place_of(place, trusted.as_ref())?;
    layers.extend(trusted);
    let mut project = None;
    if place.config.is_none()
        && let Some((found, layer)) = project_layer(&place_found)?
    {
        project = Some(found);
        layers.push(layer);
    }
    layers.push(flags(policy)?);
    let (mut config, notices) = HostConfig::resolve(&layers)?;
    config.workspace = Some(place_found.workspace.clone());
    config.data_dir = Some(place_found.data_dir.clone());
    config.environment = environment::child_variables(&config);
    // The workspace's own file is protected by its name.
    let file = place.config.as_deref().map(environment::real_path);
    Ok(Settings { place: place_found, config, notices, project, file })
}

/// The workspace's own file: untrusted, so it may only restrict, until its very bytes were trusted.
fn project_layer(place: &Place) -> anyhow::Result<Option<(Project, Layer)>> {
    let path = place.workspace.join(PROJECT_FILE);
    let text = match read_config(&path) {
        Ok(text) => text,
        Err(error) if ConfigError::is_missing_file(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let standing = if is_trusted(place, &path, &digest)? { Standing::Trusted } else { Standing::Untrusted };
    let parsed = ConfigFile::parse(&text, PROJECT_FILE)?;
    let layer = Layer::new(parsed, standing, RuleOrigin::Project).relative_to(place.workspace.clone());
    Ok(Some((Project { path, digest, standing }, layer)))
}

fn is_trusted(place: &Place, path: &Path, digest: &[u8; 32]) -> anyhow::Result<bool> {
    match DataDir::at(&place.data_dir) {
        Ok(data_dir) => {
            Ok(TrustStore::open(&data_dir).context("the list of trusted files")?.is_trusted(path, digest))
        }
        Err(DataDirError::Missing { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Flags are the last layer, so that what they say is checked with everything else.
fn flags(policy: &PolicyArgs) -> anyhow::Result<Layer> {
    let rules = [("allow", &policy.allow), ("ask", &policy.ask), ("deny", &policy.deny)];
    let lines = rules.iter().flat_map(|(word, tools)| tools.iter().map(move |tool| format!("{word} {tool}")));
    let file = ConfigFile {
        mode: policy.mode.map(Into::into),
        rules: lines.map(|line| RuleEntry::Line(line).into()).collect(),
        ..confines(&policy.confines)
    };
    Ok(Layer::new(file.check("command line")?, Standing::Trusted, RuleOrigin::Cli))
}

fn confines(flags: &ConfineArgs) -> ConfigFile {
    let root = |path: &PathBuf, access| RootEntry { path: path.clone().into(), access }.into();
    let read = flags.read_root.iter().map(|path| root(path, RootAccess::Read));
    let write = flags.root.iter().map(|path| root(path, RootAccess::Write));
    ConfigFile {
        roots: read.chain(write).collect(),
        sandbox: SandboxSection {
            profile: flags.sandbox.map(Into::into),
            require: flags.require_sandbox.then(|| true.into()),
            ..SandboxSection::default()
        },
        network: NetworkSection {
            private: flags.allow_private.iter().cloned().map(Into::into).collect(),
            ..NetworkSection::default()
        },
        ..ConfigFile::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use toolpost_config::{ConfigErrors, RootConfig};
    use toolpost_model::{Access, SandboxProfile};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        policy: PolicyArgs,
    }

    fn resolved(words: &[&str]) -> anyhow::Result<HostConfig> {
        let line = Line::try_parse_from(["x"].iter().chain(words))?;
        assert_eq!(line.policy.is_empty(), words.is_empty(), "{words:?}");
        Ok(HostConfig::resolve(&[flags(&line.policy)?])?.0)
    }

    #[test]
    fn each_flag_reaches_its_own_setting() {
        assert_eq!(resolved(&[]).unwrap(), HostConfig::default());
        let roots = resolved(&["--root", "a", "--read-root", "b", "--root", "c"]).unwrap().roots;
        let root = |path: &str, access| RootConfig { path: path.into(), access };
        assert_eq!(roots, [root("b", Access::Read), root("a", Access::Write), root("c", Access::Write)]);
        assert_eq!(resolved(&["--sandbox", "none"]).unwrap().sandbox.profile, SandboxProfile::None);
        assert!(resolved(&["--require-sandbox"]).unwrap().sandbox.require);
        let network =
            resolved(&["--allow-private", "http://127.0.0.1:1", "--allow-private", "http://a/b"]).unwrap();
        assert_eq!(network.network.private, ["http://127.0.0.1:1/", "http://a/b"]);
    }

    #[test]
    fn what_is_no_url_is_refused_like_in_a_file() {
        let error = resolved(&["--allow-private", "127.0.0.1:80"]).unwrap_err();
        assert!(error.is::<ConfigErrors>() && error.to_string().contains("--> command line"), "{error}");
    }
}
