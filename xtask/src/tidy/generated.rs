//! Generated references match the code.

use super::{Repo, TidyViolation};
use crate::generate;

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    match generate::stale(&repo.root) {
        Ok(pages) => pages
            .iter()
            .map(|page| {
                TidyViolation::new(
                    page.path,
                    page.line,
                    "differs from the code",
                    "run cargo xtask gen",
                )
            })
            .collect(),
        Err(error) => {
            let message = format!("cannot generate the references: {error:#}");
            vec![TidyViolation::new(
                "docs/reference",
                1,
                message,
                "fix the errors of cargo or toolpost above",
            )]
        }
    }
}
