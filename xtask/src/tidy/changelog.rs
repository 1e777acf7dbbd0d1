//! The changelog has a place for the next change.

use super::{Repo, TidyViolation};

const PATH: &str = "CHANGELOG.md";

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let text = repo.file(PATH).map_or("", |file| file.text.as_str());
    let has_section = text
        .lines()
        .any(|line| matches!(line.trim_end(), "## Unreleased" | "## [Unreleased]"));
    if has_section {
        return Vec::new();
    }
    vec![TidyViolation::new(
        PATH,
        1,
        "no section for unreleased changes",
        "add `## [Unreleased]` above the last release",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_has_an_unreleased_section() {
        for (files, refused) in [
            (
                &[("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")][..],
                false,
            ),
            (
                &[("CHANGELOG.md", "# Changelog\n\n## Unreleased\n")][..],
                false,
            ),
            (
                &[("CHANGELOG.md", "# Changelog\n\n## 0.1.0\nUnreleased\n")][..],
                true,
            ),
            (&[][..], true),
        ] {
            assert_eq!(!check(&Repo::of(files)).is_empty(), refused, "{files:?}");
        }
    }
}
