//! Generated references say what the code says now.

use super::{Repo, Violation};
use crate::generate;

pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    match generate::stale(&repo.root) {
        Ok(pages) => pages
            .iter()
            .map(|page| {
                Violation::new(
                    page.path,
                    page.line,
                    "differs from what the code says",
                    "run cargo xtask gen",
                )
            })
            .collect(),
        Err(error) => {
            let message = format!("cannot generate the references: {error:#}");
            vec![Violation::new(
                "docs/reference",
                1,
                message,
                "mend what cargo or toolpost complained about above",
            )]
        }
    }
}
