//! `cargo xtask bench`: the benchmarks are a program of their own, run in the `bench` profile.

use std::path::Path;

use crate::{Verdict, cargo};

pub(crate) fn run(root: &Path, args: &[String]) -> anyhow::Result<Verdict> {
    // The real binary is one of the contenders and is looked for beside the benchmarks.
    let built = cargo::verdict(&mut cargo::cargo(root, &["build", "--profile", "bench", "-p", "toolpost"]))?;
    if matches!(built, Verdict::Fail) {
        return Ok(built);
    }
    cargo::verdict(
        cargo::cargo(root, &["run", "--profile", "bench", "-p", "toolpost-bench", "--"]).args(args),
    )
}
