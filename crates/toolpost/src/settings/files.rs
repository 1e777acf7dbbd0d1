//! The files of every standing: found, read, trusted or not, and what stands in for one that is broken.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use anyhow::Context;
use sha2::{Digest, Sha256};
use toolpost_config::{
    ConfigError, ConfigErrors, ConfigFile, ConfigLayer, LayerTrust, ParsedConfig, read_config,
};
use toolpost_core::{PathBaseFolders, Policy, PolicySpec};
use toolpost_model::{Rule, RuleOrigin};
use toolpost_store::{DataDir, DataDirError, LastGood, TrustStore};

use super::{PROJECT_FILE, WorkspacePaths, folder_of, plans};
use crate::{environment, terminal};

/// A file that is looked at, and what came of it.
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) origin: RuleOrigin,
    /// How it counts; `None` where there is no such file.
    pub(crate) standing: Option<LayerTrust>,
    pub(crate) broken: Option<ConfigFileProblem>,
    /// SHA-256 of what it and the plans it includes hold now, for trust.
    pub(crate) digest: [u8; 32],
    /// Why a plan that it includes cannot be read. It cannot be trusted then.
    pub(crate) unreadable_plan: Option<ConfigErrors>,
    /// The last text of it that could be read, where one is worth keeping.
    pub(super) good: Option<String>,
}

/// Why a file cannot be read.
pub(crate) struct ConfigFileProblem {
    /// Where and what, as a person wants to see it.
    pub(crate) errors: String,
    /// One sentence for every decision.
    pub(crate) note: String,
}

impl FoundFile {
    fn absent(path: &Path, origin: RuleOrigin) -> Self {
        Self {
            path: path.to_owned(),
            origin,
            standing: None,
            broken: None,
            digest: [0; 32],
            unreadable_plan: None,
            good: None,
        }
    }

    /// A file that the command line names. It must be there and be good.
    pub(super) fn given(path: &Path) -> Self {
        Self {
            standing: Some(LayerTrust::Trusted),
            ..Self::absent(path, RuleOrigin::Cli)
        }
    }

    /// What is kept of its last good text: all of it but secrets. A mark would mean a list to YAML, so a word stands in
    /// their place; a text that means nothing without them is not kept.
    pub(super) fn kept_text(&self) -> Option<(&Path, String)> {
        const MARK: &str = "[redacted:";
        let text = self.good.as_deref()?;
        let clean = terminal::clean(text);
        if let Cow::Borrowed(text) = clean {
            return Some((&self.path, text.to_owned()));
        }
        let mut parts = clean.split(MARK);
        let first = parts.next().unwrap_or_default().to_owned();
        let whole = parts.fold(first, |mut whole, part| {
            whole.push_str("redacted");
            whole.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
            whole
        });
        ConfigFile::parse(&whole, &self.path.display().to_string())
            .is_ok()
            .then_some((&self.path, whole))
    }
}

/// Reads files for one workspace.
pub(super) struct ConfigFileReader<'a> {
    place: &'a WorkspacePaths,
    places: PathBaseFolders,
    /// Where fetched bundles are.
    cache: Option<&'a Path>,
}

impl<'a> ConfigFileReader<'a> {
    pub(super) fn new(place: &'a WorkspacePaths, cache: Option<&'a Path>) -> Self {
        let places = PathBaseFolders {
            workspace: Some(place.workspace.clone()),
            home: environment::home(),
            roots: Vec::new(),
        };
        Self {
            place,
            places,
            cache,
        }
    }

    /// Whether the rules of a file mean something, and what their own tests expect.
    pub(super) fn check_rules(&self, parsed: &ParsedConfig) -> Result<(), ConfigErrors> {
        let rules: Vec<Rule> = parsed.rules().cloned().collect();
        let spec = PolicySpec {
            rules,
            places: self.places.clone(),
            ..PolicySpec::default()
        };
        let Err(problems) = Policy::compile(spec) else {
            return Ok(());
        };
        let told = problems.iter().map(|problem| {
            (
                problem.place.as_str(),
                format!("the rule `{}`: {}", problem.rule, problem.message),
            )
        });
        parsed.rule_errors(told).map_or(Ok(()), Err)
    }

    fn parsed(&self, text: &str, name: &str) -> Result<ParsedConfig, ConfigErrors> {
        let parsed = ConfigFile::parse(text, name)?;
        self.check_rules(&parsed)?;
        Ok(parsed)
    }

    /// The file of the machine's owner. Whatever is wrong with it, nothing starts without it.
    pub(super) fn policy(
        &self,
        given: Option<&Path>,
    ) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        let (path, there) = environment::policy_file(given)?;
        if !there {
            return Ok((FoundFile::absent(&path, RuleOrigin::Policy), None));
        }
        let parsed = self.parsed(&read_config(&path)?, &path.display().to_string())?;
        let layer = ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Policy)
            .relative_to(folder_of(&path));
        let file = FoundFile {
            standing: Some(LayerTrust::Trusted),
            ..FoundFile::absent(&path, RuleOrigin::Policy)
        };
        Ok((file, Some(layer)))
    }

    /// The user's own file.
    pub(super) fn user(&self, path: &Path) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        let name = path.display().to_string();
        self.read_with_fallback(path, &name, RuleOrigin::User, |_| {
            environment::check_user_file(path)?;
            Ok(LayerTrust::Trusted)
        })
    }

    /// The workspace's own file: untrusted, so it may only restrict, until its very bytes were trusted.
    pub(super) fn project(&self, path: &Path) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        self.read_with_fallback(path, PROJECT_FILE, RuleOrigin::Project, |digest| {
            Ok(if self.is_trusted(path, digest)? {
                LayerTrust::Trusted
            } else {
                LayerTrust::Untrusted
            })
        })
    }

    /// A file whose last good text stands in for it when it is broken.
    fn read_with_fallback(
        &self,
        path: &Path,
        name: &str,
        origin: RuleOrigin,
        standing: impl FnOnce(&[u8; 32]) -> anyhow::Result<LayerTrust>,
    ) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        let file = FoundFile::absent(path, origin);
        let text = match read_config(path) {
            Ok(text) => text,
            Err(error) if ConfigError::is_missing_file(&error) => return Ok((file, None)),
            Err(error) => return self.restore_last_good(file, name, error.into()),
        };
        let parsed = match self.parsed(&text, name) {
            Ok(parsed) => parsed,
            Err(errors) => {
                let digest = Sha256::digest(text.as_bytes()).into();
                return self.restore_last_good(FoundFile { digest, ..file }, name, errors);
            }
        };
        let mut layer =
            ConfigLayer::new(parsed, LayerTrust::Untrusted, origin).relative_to(folder_of(path));
        // One whose plans cannot be read is not the one that was trusted.
        let (digest, unreadable_plan) = match plans::digest(&text, &layer, self.cache) {
            Ok(digest) => (digest, None),
            Err(errors) => (Sha256::digest(text.as_bytes()).into(), Some(errors)),
        };
        layer.standing = standing(&digest)?;
        let standing = Some(layer.standing);
        Ok((
            FoundFile {
                standing,
                digest,
                unreadable_plan,
                good: Some(text),
                ..file
            },
            Some(layer),
        ))
    }

    /// What a broken file last said, as far as it restricts. Where nobody knows that, nothing can be done but to
    /// refuse: it may have been there to deny.
    fn restore_last_good(
        &self,
        file: FoundFile,
        name: &str,
        errors: ConfigErrors,
    ) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        let last = match DataDir::at(&self.place.data_dir) {
            Ok(data_dir) => LastGood::of(&data_dir).text(&file.path)?,
            Err(DataDirError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let parsed = last.as_deref().map(|text| self.parsed(text, name));
        let (Some(Ok(parsed)), Some(first)) = (parsed, errors.iter().next()) else {
            return Err(errors.into());
        };
        let line = if first.line > 0 {
            format!("line {}: ", first.line)
        } else {
            String::new()
        };
        let note = format!(
            "`{name}` cannot be read ({line}{}); what it denied and restricted before still counts, what it allowed \
             does not",
            first.message
        );
        let layer = ConfigLayer::last_good(parsed, file.origin, note.clone())
            .relative_to(folder_of(&file.path));
        let broken = ConfigFileProblem {
            errors: errors.to_string(),
            note,
        };
        let file = FoundFile {
            standing: Some(LayerTrust::LastGood),
            broken: Some(broken),
            good: last,
            ..file
        };
        Ok((file, Some(layer)))
    }

    fn is_trusted(&self, path: &Path, digest: &[u8; 32]) -> anyhow::Result<bool> {
        match DataDir::at(&self.place.data_dir) {
            Ok(data_dir) => Ok(TrustStore::open(&data_dir)
                .context("the list of trusted files")?
                .is_trusted(path, digest)),
            Err(DataDirError::Missing { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
