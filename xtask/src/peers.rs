//! `cargo xtask peers`: the Python packages that end-to-end tests talk with, in an environment of their own under
//! `target/peers`. Made once, and again when the list changes; `cargo xtask test` asks for it first.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::Verdict;
use crate::cargo::verdict;

const LIST: &str = include_str!("../peers.txt");

pub(crate) fn run(root: &Path) -> anyhow::Result<Verdict> {
    let place = root.join("target/peers");
    // Written last: an environment without it is half made.
    let made = place.join("made-of.txt");
    if std::fs::read_to_string(&made).is_ok_and(|list| list == LIST) {
        return Ok(Verdict::Pass);
    }
    eprintln!("installing the packages of xtask/peers.txt into target/peers");
    let make = verdict(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place))?;
    ensure!(
        make == Verdict::Pass,
        "`python3 -m venv` failed\nhint: apt-get install python3-venv (the Debian package `python3-venv`)"
    );
    let list = root.join("xtask/peers.txt");
    let pip =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "-r"];
    let installed = verdict(Command::new(place.join("bin/python")).args(pip).arg(&list))?;
    ensure!(
        installed == Verdict::Pass,
        "the packages of xtask/peers.txt cannot be installed\n\
         hint: pip must reach a package index; Python must be 3.11 or newer"
    );
    std::fs::write(&made, LIST).with_context(|| format!("cannot write `{}`", made.display()))?;
    Ok(Verdict::Pass)
}
