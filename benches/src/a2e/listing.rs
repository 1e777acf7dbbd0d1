//! Ten thousand tools, listed by a typical client in Python.

use anyhow::Context;

use crate::{
    children::{self, Served},
    rounds::median,
};

const CLIENT: &str = include_str!("../list_client.py");
const TOOLS: &str = "10000";

#[derive(serde::Deserialize)]
struct Took {
    tools: usize,
    bytes: usize,
    whole: f64,
    parsing: f64,
}

pub(super) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let served = Served::start(&["--serve-a2e", &data, TOOLS])?;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(list(&served.address)?);
    }
    let first = all.first().context("at least one round")?;
    let whole: Vec<f64> = all.iter().map(|took| took.whole).collect();
    let parsing: Vec<f64> = all.iter().map(|took| took.parsing).collect();
    println!(
        "A2E, {} tools listed by a client in Python: {:.2} s for {} KB, of which its own parsing takes {:.2} s",
        first.tools,
        median(&whole),
        first.bytes / 1_024,
        median(&parsing),
    );
    Ok(())
}

fn list(address: &str) -> anyhow::Result<Took> {
    let python = children::command("python3".as_ref())
        .args(["-c", CLIENT, address])
        .output()
        .context("python3 cannot be started")?;
    anyhow::ensure!(
        python.status.success(),
        "{}",
        String::from_utf8_lossy(&python.stderr)
    );
    Ok(serde_json::from_slice(&python.stdout)?)
}
