//! `cargo xtask bench`: Toolpost beside a floor, interleaved in the same run, reported as ratios.
//!
//! Machines are noisy, so every figure is the median of rounds that alternate between the two, and the ratio is the one
//! of each pair. Nothing here is asserted: figures with their conditions go into `docs/benchmarks.md`.
#![expect(clippy::print_stdout, reason = "figures are what this prints")]

mod a2e;
mod artifact;
mod children;
mod clients;
mod files;
mod grep;
mod growth;
mod grpc;
mod in_process;
mod journal;
mod machine;
mod mcp;
mod native;
mod normalise;
mod over_http;
mod python_module;
mod redaction;
mod replay;
mod rounds;
mod rules;
mod run_code;
mod schedule;
mod search;
mod shell;
mod shells;
mod start;
mod wasm;

use anyhow::bail;

const HELP: &str = "\
usage: cargo xtask bench [http|in-process|start|growth|journal|rules|redaction|schedule|search|files|grep|shell|shells|code|python-module|wasm|grpc|replay|artifact|a2e|mcp|normalise …]
       (default: all)
       cargo xtask bench grep=PATH (on a tree of your own)
       cargo xtask bench artifact=MEGABYTES (with a result of another size)
       cargo xtask bench wasm=PATH (how long a component of your own takes to load)
       cargo xtask bench a2e-http (or -stdio, -direct, -sessions, -list, -events: a part of a2e)
       cargo xtask bench mcp-http (or -stdio, -hop, -list: a part of mcp)
       cargo xtask bench a2e-soak [--minutes N]";

/// The default benchmarks.
const ALL: [&str; 22] = [
    "http",
    "in-process",
    "start",
    "growth",
    "journal",
    "rules",
    "redaction",
    "schedule",
    "search",
    "files",
    "grep",
    "shell",
    "shells",
    "code",
    "python-module",
    "replay",
    "a2e",
    "mcp",
    "artifact",
    "wasm",
    "grpc",
    "normalise",
];

fn main() -> anyhow::Result<()> {
    // `code` starts this program again as its code worker.
    toolpost_native::code_worker_if_asked();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [role, rest @ ..] = words.as_slice()
        && role.starts_with("--serve-")
    {
        return children::serve(role, rest);
    }
    let chosen: Vec<&str> = if words.is_empty() {
        ALL.to_vec()
    } else {
        words.iter().map(String::as_str).collect()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    println!(
        "{} cores, {}",
        std::thread::available_parallelism()?,
        load()
    );
    if let ["a2e-soak", rest @ ..] = chosen.as_slice() {
        return runtime.block_on(a2e::soak(rest));
    }
    for name in chosen {
        match name {
            "http" => runtime.block_on(over_http::run())?,
            "in-process" => runtime.block_on(in_process::run())?,
            "start" => runtime.block_on(start::run())?,
            "growth" => runtime.block_on(growth::run())?,
            "journal" => runtime.block_on(journal::run())?,
            "rules" => runtime.block_on(rules::run())?,
            "redaction" => runtime.block_on(redaction::run())?,
            "schedule" => runtime.block_on(schedule::run())?,
            "search" => runtime.block_on(search::run())?,
            "grep" => runtime.block_on(grep::run(None))?,
            "files" => runtime.block_on(files::run())?,
            "shell" => runtime.block_on(shell::run())?,
            "shells" => runtime.block_on(shells::run())?,
            "code" => runtime.block_on(run_code::run())?,
            "python-module" => runtime.block_on(python_module::run())?,
            "replay" => runtime.block_on(replay::run())?,
            "a2e" => runtime.block_on(a2e::run())?,
            "mcp" => runtime.block_on(mcp::run())?,
            "wasm" => runtime.block_on(wasm::run())?,
            "normalise" => runtime.block_on(normalise::run())?,
            "grpc" => runtime.block_on(grpc::run())?,
            "artifact" => runtime.block_on(artifact::run(artifact::WHOLE))?,
            other if other.starts_with("artifact=") => {
                let megabytes: u64 = other.trim_start_matches("artifact=").parse()?;
                runtime.block_on(artifact::run(megabytes << 20))?;
            }
            other if other.starts_with("wasm=") => {
                runtime.block_on(wasm::start(other.trim_start_matches("wasm=").as_ref()))?;
            }
            other if other.starts_with("grep=") => {
                runtime.block_on(grep::run(Some(other.trim_start_matches("grep=").as_ref())))?;
            }
            other
                if other.starts_with("mcp-") && runtime.block_on(mcp::run_part(&other[4..]))? => {}
            other if runtime.block_on(a2e::run_part(other.trim_start_matches("a2e-")))? => {}
            other => bail!("`{other}` is not a benchmark\n{HELP}"),
        }
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the machine's load belongs to the conditions"
)]
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "load {}",
        load.split(' ').take(3).collect::<Vec<_>>().join(" ")
    )
}
