//! Reads the mount plans and lists of MCP servers that trusted layers include, and adds them to their layers.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toolpost_amplifier::{Include, ModuleSource, NoteWeight, PlanNote};
use toolpost_config::{
    ConfigErrors, ConfigLayer, ConfigNotice, FetchedBundle, LayerTrust, LoadedPlan, McpServersFile,
    PlanReader, read_config,
};
use toolpost_modules::cached_module;

use crate::environment;

#[derive(Default)]
pub(crate) struct PlanReadResult {
    /// The cache of fetched bundles.
    cache: Option<PathBuf>,
    /// Remarks for the operator.
    pub(crate) notes: Vec<PlanNote>,
    /// Bundles that must be fetched first.
    pub(crate) missing: Vec<Include>,
    /// All bundles from elsewhere.
    pub(crate) bundles: Vec<Include>,
    /// The files the plans and lists were read from.
    pub(crate) files: Vec<PathBuf>,
    /// Settings in lists of MCP servers that are ignored here.
    pub(crate) mcp_notices: Vec<ConfigNotice>,
    /// The same for the file of an A2E host.
    pub(crate) a2e_notices: Vec<ConfigNotice>,
}

impl PlanReadResult {
    pub(super) fn new(cache: Option<PathBuf>) -> Self {
        Self {
            cache,
            ..Self::default()
        }
    }

    /// The layer with its included plans. The plans of an untrusted layer are not opened.
    pub(super) fn read(&mut self, layer: ConfigLayer) -> Result<ConfigLayer, ConfigErrors> {
        match layer.standing {
            LayerTrust::Trusted => {}
            LayerTrust::Untrusted | LayerTrust::LastGood => return Ok(layer),
        }
        let mut plans = Vec::new();
        for path in layer.includes() {
            let loaded = read(&path, self.cache.as_deref())?;
            self.notes.extend(loaded.notes);
            self.missing.extend(loaded.missing);
            self.bundles.extend(loaded.bundles);
            self.files
                .extend(loaded.files.into_iter().map(|(path, _)| path));
            plans.push(loaded.plan);
        }
        let mut lists = Vec::new();
        for path in layer.mcp_includes() {
            let (file, _) = read_servers(&path)?;
            self.mcp_notices.extend(file.notices.iter().cloned());
            self.files.push(path);
            lists.push(file);
        }
        Ok(layer.with_plans(plans).with_mcp_files(lists))
    }

    /// The remarks that need the operator's attention.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let odd = self.notes.iter().filter(|note| match note.weight {
            NoteWeight::Warning => true,
            NoteWeight::Info => false,
        });
        let notices = self.mcp_notices.iter().chain(&self.a2e_notices);
        odd.map(ToString::to_string)
            .chain(notices.map(ToString::to_string))
    }

    /// The missing bundles, for a command without a host: a host reports them itself.
    pub(crate) fn missing_warnings(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|include| match &include.source {
            ModuleSource::Unspoken { text, why } => {
                format!(
                    "{}: `{text}` is missing, so its modules are missing too: {why}",
                    include.place
                )
            }
            ModuleSource::Git { .. }
            | ModuleSource::Archive { .. }
            | ModuleSource::Path(_)
            | ModuleSource::Package(_) => format!(
                "{}: `{}` is not fetched, so its modules are missing\nhint: toolpost modules fetch",
                include.place, include.source
            ),
        })
    }
}

fn read(path: &Path, cache: Option<&Path>) -> Result<LoadedPlan, ConfigErrors> {
    let find = |source: &ModuleSource| {
        let found = cached_module(cache?, source);
        let found = found
            .inspect_err(|error| tracing::warn!("{error}"))
            .ok()
            .flatten()?;
        Some(FetchedBundle {
            path: found.root,
            repository: found.repository,
        })
    };
    PlanReader {
        lookup: &environment::variable,
        find: &find,
    }
    .read(path)
}

/// A list of MCP servers, and its text.
fn read_servers(path: &Path) -> Result<(McpServersFile, String), ConfigErrors> {
    let text = read_config(path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let folder = environment::whole_path(folder);
    let file = McpServersFile::parse(&text, &path.display().to_string(), &folder)?;
    Ok((file, text))
}

/// The digest that trust in a file refers to: its text, and that of everything it includes, since that decides which
/// programs run.
pub(super) fn digest(
    text: &str,
    layer: &ConfigLayer,
    cache: Option<&Path>,
) -> Result<[u8; 32], ConfigErrors> {
    if layer.parsed.file().include.is_empty() {
        return Ok(Sha256::digest(text.as_bytes()).into());
    }
    let mut hasher = Sha256::new();
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    add(text);
    for path in layer.includes() {
        read(&path, cache)?
            .files
            .iter()
            .for_each(|(_, text)| add(text));
    }
    for path in layer.mcp_includes() {
        add(&read_servers(&path)?.1);
    }
    for path in layer.a2e_includes() {
        add(&read_config(&path)?);
    }
    Ok(hasher.finalize().into())
}
