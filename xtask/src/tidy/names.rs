//! Empty names of files and folders. A file is named for its purpose instead.

use super::{Repo, TidyViolation};

const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "manager", "service", "misc",
];

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    repo.files
        .iter()
        .filter_map(|file| check_path(&file.path))
        .collect()
}

fn check_path(path: &str) -> Option<TidyViolation> {
    if path.split('/').next_back() == Some("mod.rs") {
        let hint = "use `foo.rs` beside the folder `foo/`";
        return Some(TidyViolation::new(path, 1, "a module named `mod.rs`", hint));
    }
    let stem = |part: &'_ str| {
        part.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let name = path
        .split('/')
        .map(stem)
        .find(|stem| EMPTY_NAMES.contains(&stem.as_str()))?;
    Some(TidyViolation::new(
        path,
        1,
        format!("the name `{name}` has no meaning"),
        "name the thing it holds",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_nothing() {
        for (path, refused) in [
            ("crates/core/src/call.rs", false),
            ("crates/core/src/utils.rs", true),
            ("crates/core/src/Util/text.rs", true),
            ("crates/core/tests/common.rs", true),
            ("crates/core/src/flow/mod.rs", true),
            ("docs/misc.md", true),
            ("docs/toolpost.service", false),
            ("crates/core/src/commonmark.rs", false),
            ("crates/core/src/utility.rs", false),
        ] {
            assert_eq!(check_path(path).is_some(), refused, "{path}");
        }
    }
}
