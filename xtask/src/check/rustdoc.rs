//! The documentation of every crate, with warnings denied, and the listings of the public API of the crates that are
//! libraries for others. Both come from one run: cargo starts this program in place of rustdoc, and for a listed crate it
//! runs rustdoc a second time, for its JSON. So nothing is compiled twice, and the switch that makes a stable rustdoc
//! print JSON reaches no compiler and no build script.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::ChoreVerdict;
use crate::cargo::{self, cargo, stdout_of, verdict};

/// The crates that embedders, authors of agents, tools and modules, and writers of tests build on.
const LIBRARIES: &[&str] = &[
    "toolpost_a2a",
    "toolpost_a2e",
    "toolpost_amplifier",
    "toolpost_core",
    "toolpost_model",
    "toolpost_testkit",
];

/// Set when this program stands in for rustdoc: the path of the real one.
pub(crate) const STAND_IN: &str = "TOOLPOST_XTASK_RUSTDOC";

/// Whether the listings are written anew or compared with the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListingMode {
    Write,
    Compare,
}

/// The step of `cargo xtask check`.
pub(crate) fn check(root: &Path) -> anyhow::Result<ChoreVerdict> {
    run(root, ListingMode::Compare)
}

/// Documents the workspace, then writes or compares the listings.
pub(crate) fn run(root: &Path, mode: ListingMode) -> anyhow::Result<ChoreVerdict> {
    let stand_in = std::env::current_exe().context("cannot find this program")?;
    // With examples, the dependencies have the features that clippy has checked them with.
    let args = [
        "doc",
        "--workspace",
        "--no-deps",
        "--all-features",
        "--lib",
        "--bins",
        "--examples",
    ];
    let documented = verdict(
        cargo(root, &args)
            .env("RUSTDOC", stand_in)
            .env(STAND_IN, real_rustdoc())
            // The `cfg` marks the runs that write JSON: otherwise cargo would reuse the documentation of another run.
            .env("RUSTDOCFLAGS", "-D warnings --cfg listed"),
    )?;
    if documented == ChoreVerdict::Fail {
        return Ok(ChoreVerdict::Fail);
    }
    let folder = target_folder(root)?.join("doc");
    let mut all_equal = true;
    for library in LIBRARIES {
        all_equal &= compare(root, library, &folder.join(format!("{library}.json")), mode)?;
    }
    Ok(ChoreVerdict::pass_if(all_equal))
}

/// Lists one library; in [`ListingMode::Compare`] returns whether the committed listing is the same.
fn compare(root: &Path, library: &str, json: &Path, mode: ListingMode) -> anyhow::Result<bool> {
    // Blanket, auto and derived implementations carry little information and make up two thirds of a listing.
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| {
            format!(
                "cannot read the API of `{library}` in `{}`\nhint: the format of this JSON changes with the compiler; use the version that `rust-version` names, or a newer `public-api`",
                json.display()
            )
        })?;
    let listing = api.to_string();
    let page = format!("docs/reference/api/{}.txt", library.replace('_', "-"));
    let path = root.join(&page);
    if fs::read_to_string(&path).unwrap_or_default() == listing {
        return Ok(true);
    }
    if mode == ListingMode::Compare {
        println!("{page}:1: differs from the public API\n  hint: run cargo xtask api");
        return Ok(false);
    }
    fs::create_dir_all(root.join("docs/reference/api"))
        .and_then(|()| fs::write(&path, listing))
        .with_context(|| format!("cannot write `{page}`"))?;
    println!("wrote {page}");
    Ok(true)
}

/// Runs the real rustdoc with the arguments of cargo, and again for JSON where the crate is listed.
pub(crate) fn stand_in(rustdoc: &OsString, args: &[OsString]) -> ExitCode {
    let is_listed = args
        .iter()
        .zip(args.iter().skip(1))
        .any(|(name, value)| name == "--crate-name" && LIBRARIES.iter().any(|lib| value == lib));
    let mut html = Command::new(rustdoc);
    html.args(args);
    let mut json = Command::new(rustdoc);
    // The listing needs the installed compiler. This variable lets a stable one print JSON.
    json.args(args)
        .args(["-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1");
    let succeeds = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    if succeeds(&mut html) && (!is_listed || succeeds(&mut json)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The rustdoc beside the cargo that runs this program, so that both belong to one toolchain.
fn real_rustdoc() -> PathBuf {
    std::env::var_os("RUSTDOC")
        .map(PathBuf::from)
        .or_else(|| {
            let beside = PathBuf::from(std::env::var_os("CARGO")?).with_file_name("rustdoc");
            beside.is_file().then_some(beside)
        })
        .unwrap_or_else(|| "rustdoc".into())
}

fn target_folder(root: &Path) -> anyhow::Result<PathBuf> {
    let description = stdout_of(&mut cargo(
        root,
        &["metadata", "--format-version", "1", "--no-deps"],
    ))?;
    let metadata: Value =
        serde_json::from_slice(&description).context("`cargo metadata` printed no JSON")?;
    let folder = cargo::text(&metadata, "target_directory");
    ensure!(
        !folder.is_empty(),
        "`cargo metadata` names no target folder"
    );
    Ok(PathBuf::from(folder))
}
