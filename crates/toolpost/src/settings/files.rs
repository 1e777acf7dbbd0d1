//! The configuration files of every level: search, reading, trust, and the fallback for a broken one.

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

/// A configuration file and its state.
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) origin: RuleOrigin,
    /// Its trust; `None` if there is no such file.
    pub(crate) standing: Option<LayerTrust>,
    pub(crate) broken: Option<ConfigFileProblem>,
    /// SHA-256 of its text and of the plans it includes, for trust.
    pub(crate) digest: [u8; 32],
    /// The error in a plan that it includes, which prevents trust.
    pub(crate) unreadable_plan: Option<ConfigErrors>,
    /// Its last readable text, if it is worth keeping.
    pub(super) good: Option<String>,
}

/// The problem of an unreadable file.
pub(crate) struct ConfigFileProblem {
    /// The place and the error, formatted for people.
    pub(crate) errors: String,
    /// A note for every decision.
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

    /// A file on the command line. It must exist and be valid.
    pub(super) fn given(path: &Path) -> Self {
        Self {
            standing: Some(LayerTrust::Trusted),
            ..Self::absent(path, RuleOrigin::Cli)
        }
    }

    /// The part of its text that is kept as the last good text: all but secrets. YAML would read the usual mark as a
    /// list, so a plain word replaces them. A text that is invalid without its secrets is not kept.
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

/// Reads the files of one workspace.
pub(super) struct ConfigFileReader<'a> {
    place: &'a WorkspacePaths,
    places: PathBaseFolders,
    /// The cache with fetched bundles.
    cache: Option<&'a Path>,
    trust: ProjectTrust,
}

/// The trust in the workspace's own file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProjectTrust {
    /// Only if the list of trusted files contains it.
    Listed,
    /// In any case, to check a file before it is added to the list.
    Assumed,
}

impl<'a> ConfigFileReader<'a> {
    pub(super) fn new(
        place: &'a WorkspacePaths,
        cache: Option<&'a Path>,
        trust: ProjectTrust,
    ) -> Self {
        let places = PathBaseFolders {
            workspace: Some(place.workspace.clone()),
            home: environment::home(),
            roots: Vec::new(),
        };
        Self {
            place,
            places,
            cache,
            trust,
        }
    }

    /// Checks the rules of a file, and runs its own tests.
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

    /// The policy of the machine's owner. Any problem with it prevents the start.
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

    /// The workspace's own file: untrusted, so it may only restrict, unless exactly its bytes were trusted.
    pub(super) fn project(&self, path: &Path) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        self.read_with_fallback(path, PROJECT_FILE, RuleOrigin::Project, |digest| {
            Ok(if self.is_trusted(path, digest)? {
                LayerTrust::Trusted
            } else {
                LayerTrust::Untrusted
            })
        })
    }

    /// A file with its last good text as fallback.
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
        // A file with unreadable plans cannot be the one that was trusted.
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

    /// The restrictions of a broken file's last good text. Without such a text the start is refused, since the file
    /// may have contained denials.
    fn restore_last_good(
        &self,
        file: FoundFile,
        name: &str,
        errors: ConfigErrors,
    ) -> anyhow::Result<(FoundFile, Option<ConfigLayer>)> {
        // A broken file must not count as a missing one: its denials would be gone, and an agent that can write to the
        // workspace could break the file to get rid of them. Its last good text therefore still restricts. Its grants
        // do not count, since they were given to bytes that no longer exist. Without a last good text nothing is known
        // about its denials, so the error stands.
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
            "`{name}` cannot be read ({line}{}); its last good denials and restrictions still apply, its grants do not",
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
        if self.trust == ProjectTrust::Assumed {
            return Ok(true);
        }
        match DataDir::at(&self.place.data_dir) {
            Ok(data_dir) => Ok(TrustStore::open(&data_dir)
                .context("the list of trusted files cannot be read")?
                .is_trusted(path, digest)),
            Err(DataDirError::Missing { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
