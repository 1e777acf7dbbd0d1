//! `cargo xtask bench`: the benchmarks are a program of their own, run in the `bench` profile.

use std::path::Path;

use crate::{Verdict, cargo};

pub(crate) fn run(root: &Path, args: &[String]) -> anyhow::Result<Verdict> {
    cargo::verdict(
        cargo::cargo(root, &["run", "--profile", "bench", "-p", "toolpost-bench", "--"]).args(args),
    )
}
