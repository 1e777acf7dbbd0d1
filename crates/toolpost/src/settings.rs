//! Resolves flags and files into one configuration.

mod a2e_host;
mod bundles;
mod files;
mod flags;
mod plans;

use std::path::{Path, PathBuf};

use toolpost_amplifier::{ModuleSource, override_sources};
use toolpost_config::{
    A2eHostFile, ConfigFile, ConfigLayer, ConfigNotice, HostConfig, LayerTrust, read_config,
};
use toolpost_model::RuleOrigin;
use toolpost_modules::ModuleSupply;
use toolpost_sandbox::Launcher;
use toolpost_serve::{McpHandover, NativeHandover, module_supply};
use toolpost_store::{DataDir, LastGood};

use crate::{
    cli::{PlaceArgs, PolicyArgs, SettingsArgs},
    environment,
    exit::UsageError,
};

use files::ProjectTrust;

pub(crate) use bundles::{fetched_bundles, updated_bundles, with_bundles};
pub(crate) use files::{ConfigFileProblem, FoundFile};
pub(crate) use plans::PlanReadResult;

/// The name of a workspace's own configuration.
pub(crate) const PROJECT_FILE: &str = "toolpost.yaml";

/// The paths of a command.
#[derive(Clone, Debug)]
pub(crate) struct WorkspacePaths {
    pub(crate) workspace: PathBuf,
    pub(crate) data_dir: PathBuf,
}

/// The configuration of a command, with the notices about ignored settings.
pub(crate) struct CommandSettings {
    pub(crate) place: WorkspacePaths,
    pub(crate) config: HostConfig,
    pub(crate) notices: Vec<ConfigNotice>,
    /// Every configuration file, the highest origin first.
    pub(crate) files: Vec<FoundFile>,
    /// The mount plans in their `include`.
    pub(crate) plans: PlanReadResult,
    /// The file of an A2E host, if one is included.
    pub(crate) a2e_host: Option<A2eHostFile>,
}

impl CommandSettings {
    /// The inputs of a host's native tools beside the configuration. Credentials are looked up only here: an
    /// unreadable one must not keep commands from reading the record, nor `doctor` from reporting it.
    pub(crate) fn handover(&self) -> anyhow::Result<NativeHandover> {
        Ok(NativeHandover {
            credentials: environment::credentials(&self.config.network.credentials)?,
            ..self.without_credentials()
        })
    }

    /// The same for a host that only shows its tools and never calls one.
    pub(crate) fn read_only_config(&self) -> (HostConfig, NativeHandover) {
        let mut config = self.config.clone();
        config.data_dir = None;
        let mut handover = self.without_credentials();
        handover.credentials = environment::credentials_to_look_at(&config);
        handover.mcp.pins = Some(environment::pins_to_look_at(&self.place.data_dir));
        (config, handover)
    }

    fn without_credentials(&self) -> NativeHandover {
        // A file that does not exist yet is listed too, since an agent could create it. Plans and the modules beside
        // them are programs: a change to them changes the code that runs.
        let modules = self
            .config
            .modules
            .iter()
            .filter_map(|module| match &module.source {
                Some(ModuleSource::Path(path)) => Some(path),
                Some(
                    ModuleSource::Git { .. }
                    | ModuleSource::Archive { .. }
                    | ModuleSource::Package(_)
                    | ModuleSource::Unspoken { .. },
                )
                | None => None,
            });
        let files = self
            .files
            .iter()
            .map(|file| &file.path)
            .chain(&self.plans.files)
            .chain(modules);
        let own_files = files.map(|path| environment::real_path(path)).collect();
        let secrets = environment::secrets();
        NativeHandover {
            program: environment::this_program(),
            own_files,
            secrets,
            mcp: McpHandover {
                values: environment::mcp_values(&self.config),
                caches: environment::mcp_caches(&self.config),
                pins: None,
            },
            ..NativeHandover::default()
        }
    }

    /// The supply for fetching modules here.
    pub(crate) fn supply(&self) -> anyhow::Result<ModuleSupply> {
        let launcher = environment::this_program().map(Launcher::new);
        let supply = module_supply(&self.config, launcher)?;
        let hint = "neither XDG_CACHE_HOME nor HOME is set\nhint: give the folder for modules with `--cache-dir DIR`";
        supply.ok_or_else(|| UsageError(hint.into()).into())
    }

    /// The file of an origin, if there is one.
    pub(crate) fn file(&self, origin: RuleOrigin) -> Option<&FoundFile> {
        self.files
            .iter()
            .find(|file| file.origin == origin && file.standing.is_some())
    }

    /// Files that cannot be read, so that only the restrictions of their last good text apply.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &ConfigFileProblem> {
        self.files.iter().filter_map(|file| file.broken.as_ref())
    }

    /// The warnings for an operator: broken files, and ignored settings in the others.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let broken = self.broken().map(|broken| broken.note.clone());
        broken
            .chain(self.notices.iter().map(ToString::to_string))
            .chain(self.plans.warnings())
    }

    /// Keeps the text of the files as a fallback for a later break. Called after a host has started with them; a
    /// failure here must not stop it.
    pub(crate) fn keep_last_good(&self) {
        // Whole files are kept, but no secret may be: the restrictions of a file need none.
        let texts: Vec<_> = self.files.iter().filter_map(FoundFile::kept_text).collect();
        let texts = texts.iter().map(|(path, text)| (*path, text.as_str()));
        let kept = DataDir::at(&self.place.data_dir)
            .map_err(anyhow::Error::from)
            .and_then(|data_dir| Ok(LastGood::of(&data_dir).keep(texts)?));
        if let Err(error) = kept {
            tracing::warn!("the configuration cannot be saved as its last good version: {error:#}");
        }
    }
}

/// The paths of a command alone, for reading the record: that must work even if the workspace's own file is broken.
pub(crate) fn locate(place: &PlaceArgs) -> anyhow::Result<WorkspacePaths> {
    place_of(place, given_layer(place)?.as_ref())
}

/// The file on the command line.
fn given_layer(place: &PlaceArgs) -> anyhow::Result<Option<ConfigLayer>> {
    let Some(path) = &place.config else {
        return Ok(None);
    };
    let text = read_config(path)?;
    let parsed = ConfigFile::parse(&text, &path.display().to_string())?;
    Ok(Some(
        ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli).relative_to(folder_of(path)),
    ))
}

/// Absolute, so that paths beside the file do not depend on a program's working directory.
fn folder_of(path: &Path) -> PathBuf {
    environment::whole_path(path)
        .parent()
        .map(PathBuf::from)
        .unwrap_or_default()
}

fn place_of(place: &PlaceArgs, given: Option<&ConfigLayer>) -> anyhow::Result<WorkspacePaths> {
    let configured = given
        .map(|layer| HostConfig::resolve(std::slice::from_ref(layer)))
        .transpose()?;
    let configured = configured.map(|(config, _)| config).unwrap_or_default();
    let workspace = environment::workspace(
        place
            .workspace
            .as_deref()
            .or(configured.workspace.as_deref()),
    )?;
    let data_dir = match place.data_dir.clone().or(configured.data_dir) {
        Some(data_dir) => environment::whole_path(&data_dir),
        None => environment::default_data_dir(&workspace)?,
    };
    Ok(WorkspacePaths {
        workspace,
        data_dir,
    })
}

/// Reads every layer: the policy, the given file, the workspace's own, the user's, and the flags.
pub(crate) fn resolve(
    arguments: &SettingsArgs,
    policy: &PolicyArgs,
) -> anyhow::Result<CommandSettings> {
    resolve_with_trust(arguments, policy, ProjectTrust::Listed)
}

/// The same as if the workspace's own file were trusted, to check it before `toolpost trust` adds it to the list.
pub(crate) fn resolve_as_trusted(
    arguments: &SettingsArgs,
    policy: &PolicyArgs,
) -> anyhow::Result<CommandSettings> {
    resolve_with_trust(arguments, policy, ProjectTrust::Assumed)
}

fn resolve_with_trust(
    arguments: &SettingsArgs,
    policy: &PolicyArgs,
    trust: ProjectTrust,
) -> anyhow::Result<CommandSettings> {
    let place = &arguments.place;
    let mut layers = Vec::new();
    let given = given_layer(place)?;
    let place_found = place_of(place, given.as_ref())?;
    let cache = environment::cache_dir(policy.modules.cache_dir.as_deref());
    let reader = files::ConfigFileReader::new(&place_found, cache.as_deref(), trust);
    layers.extend(given);
    for layer in &layers {
        reader.check_rules(&layer.parsed)?;
    }
    let mut found = Vec::new();
    let mut take = |(file, layer): (FoundFile, Option<ConfigLayer>)| {
        found.push(file);
        layers.extend(layer);
    };
    take(reader.policy(arguments.policy.as_deref())?);
    if let Some(path) = &place.config {
        take((FoundFile::given(path), None));
    }
    // On the command line, the workspace's own file counts as a given one.
    let given = place.config.as_deref().map(environment::real_path);
    let project = place_found.workspace.join(PROJECT_FILE);
    if given.as_ref() != Some(&environment::real_path(&project)) {
        take(reader.project(&project)?);
    }
    if let Some(user) = environment::user_file()
        && given.as_ref() != Some(&environment::real_path(&user))
    {
        take(reader.user(&user)?);
    }
    let flags = flags::flags(policy)?;
    reader.check_rules(&flags.parsed)?;
    layers.push(flags);
    let mut plans = PlanReadResult::new(cache.clone());
    let mut layers = layers
        .into_iter()
        .map(|layer| plans.read(layer))
        .collect::<Result<Vec<_>, _>>()?;
    let a2e_host = a2e_host::read(&mut layers, &mut plans)?;
    let (mut config, notices) = HostConfig::resolve(&layers)?;
    if let Some((file, path)) = &a2e_host {
        a2e_host::add_plugins(&mut config, file, path);
    }
    let workspace = &place_found.workspace;
    plans.notes.extend(override_sources(
        &mut config.modules,
        workspace,
        &environment::variable,
    ));
    config.missing_bundles = plans.missing.clone();
    config.cache_dir = cache;
    config.workspace = Some(place_found.workspace.clone());
    config.data_dir = Some(place_found.data_dir.clone());
    config.environment = environment::child_variables(&config);
    let a2e_host = a2e_host.map(|(file, _)| file);
    Ok(CommandSettings {
        place: place_found,
        config,
        notices,
        files: found,
        plans,
        a2e_host,
    })
}
