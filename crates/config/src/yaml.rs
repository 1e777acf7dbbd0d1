//! Parses YAML into a [`ConfigFile`], or into a tree for files of other programs. Only this module, with `shape`
//! beneath it and `located`, uses the YAML library.

mod dropped_keys;
pub(crate) mod shape;
pub(crate) mod tree;

use std::borrow::Cow;

use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Options, alias_limits, budget, options};

use crate::{
    ConfigErrors, ConfigFile, LocatedValue,
    error::{ConfigComplaint, ConfigError, ConfigSourceText, MAX_ERRORS},
    snippet::starts_section,
};

use tree::YamlValue;

/// The largest file. It has room for the settings of ten thousand tools.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The readable part of a file, and the errors in the rest.
pub(crate) struct PartialConfigFile {
    /// The file without the sections that could not be read.
    pub(crate) file: ConfigFile,
    /// One error for each of those sections.
    pub(crate) errors: Vec<ConfigError>,
}

/// Parses the readable part of the text.
///
/// The library stops at the first error. So that one mistake does not hide the next, the section with the error is
/// blanked out, which keeps all other line numbers, and the rest is read again.
pub(crate) fn read(source: ConfigSourceText<'_>) -> Result<PartialConfigFile, ConfigErrors> {
    if source.text.len() > MAX_BYTES {
        return Err(ConfigError::too_large(source.name).into());
    }
    let mut text = Cow::Borrowed(source.text);
    let mut errors = Vec::new();
    while errors.len() < MAX_ERRORS {
        let error = match serde_saphyr::from_str_with_options(&text, reader_options()) {
            Ok(file) => return Ok(PartialConfigFile { file, errors }),
            Err(error) => error,
        };
        let goes_on = shape::is_about_one_value(&error);
        if !goes_on && !errors.is_empty() {
            break; // Blanking did it: an anchor that is gone, a quote that has lost its other half.
        }
        let complaint = shape::complaint(&error, &text);
        let rest = without_section(&text, &complaint);
        errors.push(source.error(complaint));
        match rest {
            Some(rest) if goes_on => text = Cow::Owned(rest),
            _ => break,
        }
    }
    Err(ConfigErrors::of(errors))
}

/// Parses the text into a tree of any shape, within the same limits.
pub(crate) fn read_tree(
    source: ConfigSourceText<'_>,
) -> Result<LocatedValue<YamlValue>, ConfigErrors> {
    if source.text.len() > MAX_BYTES {
        return Err(ConfigError::too_large(source.name).into());
    }
    serde_saphyr::from_str_with_options(source.text, reader_options())
        .map_err(|error| source.error(shape::complaint(&error, source.text)).into())
}

/// Parses a file for a Python program, as plain JSON: in YAML 1.1 as Python reads it, including `yes` for true and
/// merge keys.
pub(crate) fn read_foreign(
    source: ConfigSourceText<'_>,
) -> Result<serde_json::Value, ConfigErrors> {
    if source.text.len() > MAX_BYTES {
        return Err(ConfigError::too_large(source.name).into());
    }
    let mut options = reader_options();
    options.merge_keys = MergeKeyPolicy::Merge;
    options.strict_booleans = false;
    if let Some(budget) = &mut options.budget {
        budget.max_depth = 64;
    }
    let tree: LocatedValue<YamlValue> = serde_saphyr::from_str_with_options(source.text, options)
        .map_err(|error| {
        ConfigErrors::from(source.error(shape::complaint(&error, source.text)))
    })?;
    Ok(tree.value.into_json())
}

/// The text with the top-level section around the complaint blanked out; `None` if there is none.
fn without_section(text: &str, complaint: &ConfigComplaint) -> Option<String> {
    let bad = usize::try_from(complaint.line()).ok()?.checked_sub(1)?;
    let lines: Vec<&str> = text.lines().collect();
    let start = lines
        .iter()
        .take(bad + 1)
        .rposition(|line| starts_section(line))?;
    let end = lines
        .iter()
        .skip(start + 1)
        .position(|line| starts_section(line))
        .map_or(lines.len(), |more| start + 1 + more);
    let kept = lines.iter().enumerate().map(|(index, line)| {
        if (start..end).contains(&index) {
            ""
        } else {
            line
        }
    });
    Some(kept.collect::<Vec<_>>().join("\n"))
}

/// Settings of the parser. The file may be hostile: agents can write to the workspace.
fn reader_options() -> Options {
    options! {
        budget: budget! {
            max_depth: 16,
            flow_nesting_limit: 16,
            max_nodes: 80_000,
            max_events: 200_000,
            max_aliases: 200,
            max_anchors: 200,
            max_recorded_anchor_events: 50_000,
            max_recorded_anchor_bytes: MAX_BYTES,
            max_total_scalar_bytes: 2 * MAX_BYTES,
        },
        alias_limits: alias_limits! {
            max_total_replayed_events: 50_000,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: 200,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        // Merge keys could bring values from a distant place, and a rule should be readable in its own place.
        merge_keys: MergeKeyPolicy::Error,
        // `enabled: no` is false to one parser and a text to another.
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}
