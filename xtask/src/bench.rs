//! `cargo xtask bench`: the benchmarks are a program of their own, built in the `bench` profile.

use std::{path::Path, process::Command};

use crate::{ChoreVerdict, cargo};

pub(crate) fn run(root: &Path, args: &[String]) -> anyhow::Result<ChoreVerdict> {
    // The real binary is one of the contenders and is expected beside the benchmarks. Built together, they share their
    // dependencies.
    let build = [
        "build",
        "--profile",
        "bench",
        "-p",
        "toolpost",
        "-p",
        "toolpost-bench",
    ];
    let built = cargo::verdict(&mut cargo::cargo(root, &build))?;
    if matches!(built, ChoreVerdict::Fail) {
        return Ok(built);
    }
    let metadata = cargo::metadata(root, &["--no-deps"])?;
    let target = Path::new(cargo::text(&metadata, "target_directory"));
    cargo::verdict(
        Command::new(target.join("release/toolpost-bench"))
            .current_dir(root)
            .args(args),
    )
}
