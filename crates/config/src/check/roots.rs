//! `roots` and `protect`: plausible paths and globs.

use globset::Glob;

use crate::{LocatedValue, ProtectSection, RootEntry, error::ConfigComplaint, snippet::shown};

use super::path_complaint;

/// The most protected paths: each written path is compared with all of them, and an untrusted file may add some.
const MOST_PATTERNS: usize = 200;
/// The longest path that systems accept.
const LONGEST_PATTERN: usize = 4096;

pub(super) fn check(
    roots: &[LocatedValue<RootEntry>],
    protect: &ProtectSection,
    complaints: &mut Vec<ConfigComplaint>,
) {
    complaints.extend(
        roots
            .iter()
            .filter_map(|root| path_complaint("roots.path", &root.value.path)),
    );
    let protected = protect.paths.len();
    if let Some(beyond) = protect.paths.get(MOST_PATTERNS) {
        let message =
            format!("`protect.paths` has {protected} patterns; it can have up to {MOST_PATTERNS}");
        complaints.push(ConfigComplaint::new(beyond.at, message));
    }
    complaints.extend(protect.paths.iter().filter_map(glob_complaint));
}

/// Protected paths start at the top of each root, so a glob that begins elsewhere would never match.
fn glob_complaint(glob: &LocatedValue<String>) -> Option<ConfigComplaint> {
    let text = glob.value.as_str();
    let hint = |hint: &str| Some(hint.to_owned());
    let quoted = shown(text);
    let (message, hint) = if text.trim().is_empty() {
        ("`protect.paths` holds an empty pattern".to_owned(), None)
    } else if text.len() > LONGEST_PATTERN {
        (
            format!("a pattern in `protect.paths` is longer than {LONGEST_PATTERN} bytes"),
            None,
        )
    } else if text.starts_with(['/', '~']) || text.split('/').any(|part| matches!(part, "." | ".."))
    {
        let message = format!("`{quoted}` in `protect.paths` is not relative to the top of a root");
        (
            message,
            hint("write a relative pattern, such as `deploy/**`, or `**/name` for any depth"),
        )
    } else {
        let error = Glob::new(text).err()?;
        (
            format!(
                "`{quoted}` in `protect.paths` is not a pattern: {}",
                error.kind()
            ),
            None,
        )
    };
    Some(ConfigComplaint::new(glob.at, message).hint(hint))
}
