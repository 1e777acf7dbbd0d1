//! The search tools beside ripgrep, on the same tree with a warm cache.
//!
//! Toolpost's figure is a whole call of a host in this process, ripgrep's a whole process: each is the time that an
//! agent would wait. Speeds are searches a second, so that a ratio over one means that Toolpost was quicker.

use std::{path::Path, process::Stdio, sync::Arc, time::Instant};

use anyhow::Context;
use serde_json::{Value, json};
use toolpost_core::{CallRequest, Host};
use toolpost_model::{ModelInput, Principal};
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::Workspace;

use crate::{children::command, rounds::Pairs};

const ROUNDS: usize = 9;
const INSTALL: &str = "`rg` cannot be started; install ripgrep (`apt-get install ripgrep`, `brew install ripgrep` \
                       or `cargo install ripgrep`) to compare with it";

struct Search {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    rg: &'static [&'static str],
}

/// On a made tree, or on the one at `path`.
pub(crate) async fn run(path: Option<&Path>) -> anyhow::Result<()> {
    let made = tempfile::tempdir()?;
    let root = match path {
        Some(path) => path,
        None => {
            make_tree(made.path())?;
            made.path()
        }
    };
    let workspace = Arc::new(Workspace::open(root)?);
    let host = Host::builder()
        .source(native_source(NativeParts::on(workspace))?)
        .build()
        .await?;
    for search in searches() {
        let pairs = Pairs::take(ROUNDS, || ours(&host, &search), || ripgrep(root, &search)).await?;
        pairs.tell(search.name, "searches/s");
    }
    Ok(())
}

fn searches() -> [Search; 6] {
    // Without `--no-require-git` ripgrep would obey ignore files only in a repository.
    [
        Search {
            name: "grep, text that is rare, files",
            tool: "grep",
            arguments: json!({ "pattern": "unlikely_name_17" }),
            rg: &["--no-require-git", "-l", "unlikely_name_17", "."],
        },
        Search {
            name: "grep, text that is common, lines counted",
            tool: "grep",
            arguments: json!({ "pattern": "fn ", "output_mode": "count" }),
            rg: &["--no-require-git", "-c", "fn ", "."],
        },
        Search {
            name: "grep, text that is common, lines shown",
            tool: "grep",
            arguments: json!({ "pattern": "fn ", "output_mode": "content" }),
            rg: &["--no-require-git", "-n", "fn ", "."],
        },
        Search {
            name: "grep, expression without literals, lines counted",
            tool: "grep",
            arguments: json!({ "pattern": r"\w+_\w+\(", "output_mode": "count" }),
            rg: &["--no-require-git", "-c", r"\w+_\w+\(", "."],
        },
        Search {
            name: "grep, either case, files",
            tool: "grep",
            arguments: json!({ "pattern": "result", "case_insensitive": true }),
            rg: &["--no-require-git", "-i", "-l", "result", "."],
        },
        Search {
            name: "glob, newest first",
            tool: "glob",
            arguments: json!({ "pattern": "**/*.rs" }),
            rg: &[
                "--no-require-git",
                "--files",
                "--sortr=modified",
                "-g",
                "**/*.rs",
                ".",
            ],
        },
    ]
}

async fn ours(host: &Host, search: &Search) -> anyhow::Result<f64> {
    let session = host.default_session(&Principal::agent("bench"));
    let began = Instant::now();
    let input = ModelInput::value(search.arguments.clone());
    let answer = host
        .call(CallRequest::new(session, search.tool, input))
        .await;
    let took = began.elapsed().as_secs_f64();
    anyhow::ensure!(
        answer.result().outcome.is_success(),
        "{:?}",
        answer.result().error
    );
    Ok(1.0 / took)
}

async fn ripgrep(root: &Path, search: &Search) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut rg = command(Path::new("rg"));
    let output = rg
        .args(search.rg)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .context(INSTALL)?;
    let took = began.elapsed().as_secs_f64();
    // 1 means no match, which is possible on a tree of the caller's.
    anyhow::ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "rg {:?}: {}",
        search.rg,
        output.status
    );
    Ok(1.0 / took)
}

/// Five thousand files in a few hundred directories, 60 MB of code-like text.
#[expect(
    clippy::disallowed_methods,
    reason = "the tree that is searched has to be made"
)]
fn make_tree(root: &Path) -> anyhow::Result<()> {
    std::fs::write(root.join(".gitignore"), "*.log\n/build\n")?;
    for place in 0..5_000_u32 {
        let directory = root.join(format!("part{}/area{}", place % 20, place % 300));
        std::fs::create_dir_all(&directory)?;
        let mut text = String::new();
        for line in 0..(place % 40 + 1) * 15 {
            let n = place.wrapping_mul(2_654_435_761).wrapping_add(line) % 4_000;
            text.push_str(&format!(
                "    let value_{n} = compute_{line}(input, {n}); // the result of step {line}\n"
            ));
            if line % 12 == 0 {
                text.push_str(&format!(
                    "fn step_{n}(input: &Input) -> Result<Output, Error> {{\n"
                ));
            }
        }
        if place % 1_000 == 17 {
            text.push_str("fn unlikely_name_17() {}\n");
        }
        let extension = ["rs", "rs", "py", "md", "log"][place as usize % 5];
        std::fs::write(directory.join(format!("file{place}.{extension}")), text)?;
    }
    Ok(())
}
