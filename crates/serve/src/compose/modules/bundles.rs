//! Bundles that plans include and that are not available.

use sha2::{Digest, Sha256};
use toolpost_amplifier::{Include, LoadFailure, LoadReason, ModuleId, ModuleKind, ModuleSource};
use toolpost_config::HostConfig;

/// The longest key without its suffix.
const LONGEST_KEY: usize = 80;

/// The failures for missing bundles, whose modules are missing too. A missing bundle may contain a guard, so each one
/// counts as a missing hook.
pub(super) fn missing_bundles(config: &HostConfig) -> Vec<LoadFailure> {
    let missing = &config.missing_bundles;
    let is_shared = |include: &Include, key: &str| {
        let other =
            |other: &Include| other.source != include.source && bundle_key(&other.source) == key;
        missing.iter().any(other)
            || config
                .modules
                .iter()
                .any(|module| module.id.as_str() == key)
    };
    let failure = |include: &Include| {
        let text = include.source.to_string();
        let mut key = bundle_key(&include.source);
        // A key can allow calls despite the missing hook, so each key must stand for one bundle.
        if is_shared(include, &key) {
            let digest = Sha256::digest(text.as_bytes());
            key = format!("{key}-{}", const_hex::encode(&digest[..3]));
        }
        // The whole source, which older configurations use as key.
        let named = Some(&text).filter(|text| config.amplifier.hooks.contains_key(*text));
        LoadFailure {
            module: ModuleId::new(named.cloned().unwrap_or(key)),
            kind: ModuleKind::Hook,
            origin: Some(text),
            reason: LoadReason::MissingSource,
            message: message(include),
        }
    };
    missing.iter().map(failure).collect()
}

fn message(include: &Include) -> String {
    match &include.source {
        ModuleSource::Unspoken { text, why } => {
            format!("{}: the bundle `{text}`: {why}", include.place)
        }
        ModuleSource::Git { .. }
        | ModuleSource::Archive { .. }
        | ModuleSource::Path(_)
        | ModuleSource::Package(_) => format!(
            "{}: the bundle is not fetched, so its modules are missing\n\
             hint: toolpost modules fetch",
            include.place
        ),
    }
}

/// A key for a bundle that is short enough to type: its repository and file, or its name as written.
fn bundle_key(source: &ModuleSource) -> String {
    let text = match source {
        ModuleSource::Git {
            url, subdirectory, ..
        }
        | ModuleSource::Archive { url, subdirectory } => {
            let repository = url
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default();
            let repository = repository.trim_end_matches(".git");
            match subdirectory {
                Some(inner) => format!("{repository} {inner}"),
                None => repository.to_owned(),
            }
        }
        ModuleSource::Path(_) | ModuleSource::Package(_) | ModuleSource::Unspoken { .. } => {
            source.to_string()
        }
    };
    let ended = [".yaml", ".yml", ".md"]
        .into_iter()
        .find_map(|ending| text.strip_suffix(ending));
    let words = ended
        .unwrap_or(&text)
        .split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut key = words.join("-");
    key.truncate(LONGEST_KEY);
    format!("bundle-{}", key.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_key_can_be_typed() {
        for (text, expected) in [
            (
                "git+https://github.com/o/amplifier-bundle-redaction@main#subdirectory=behaviors/redaction.yaml",
                "bundle-amplifier-bundle-redaction-behaviors-redaction",
            ),
            ("git+https://h/o/r.git@v1", "bundle-r"),
            ("zip+https://h/a/b.zip", "bundle-b-zip"),
        ] {
            let source = ModuleSource::parse(text, Path::new("/")).unwrap();
            assert_eq!(bundle_key(&source), expected);
        }
        let named = ModuleSource::Unspoken {
            text: "mine:behaviors/no".to_owned(),
            why: String::new(),
        };
        assert_eq!(bundle_key(&named), "bundle-mine-behaviors-no");
    }

    #[test]
    fn two_bundles_never_share_a_key() {
        let include = |url: &str| Include {
            source: ModuleSource::parse(url, Path::new("/")).unwrap(),
            place: String::new(),
        };
        let missing_bundles_of = vec![include("git+https://a/o/r"), include("git+https://b/o/r")];
        let config = HostConfig {
            missing_bundles: missing_bundles_of,
            ..HostConfig::default()
        };
        let failures = missing_bundles(&config);
        assert_ne!(failures[0].module, failures[1].module);
        assert!(
            failures
                .iter()
                .all(|failure| failure.module.as_str().starts_with("bundle-r-")),
            "{failures:?}"
        );
    }
}
