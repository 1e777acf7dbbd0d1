//! The cost of a call through the host to an upstream server, beside a direct call of that server. The host is the real
//! binary and the server is the echo on plain rmcp, once over HTTP and once over pipes.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Stdio},
};

use anyhow::Context;
use tempfile::TempDir;

use super::{http::load, pipes::Pipes, wire::Era};
use crate::{
    children::{self, Served},
    rounds::Pairs,
};

const ROUNDS: usize = 5;

pub(super) async fn run() -> anyhow::Result<()> {
    let upstream = Served::start(&["--serve-rmcp", "1"])?;
    let reach = format!("url: http://{}/mcp", upstream.address);
    for (class, said) in [
        ("read", "upstream over HTTP"),
        ("unknown", "the same, as a tool that may change something"),
    ] {
        let through = Through::start(&reach, class)?;
        for (era, callers) in Era::BOTH.into_iter().flat_map(|era| [(era, 1), (era, 16)]) {
            let pairs = Pairs::take(
                ROUNDS,
                || load(&upstream.address, era, callers),
                || load(&through.address, era, callers),
            )
            .await?;
            pairs.tell_hop(&format!(
                "MCP hop, {}, {callers} callers, {said}",
                era.name()
            ));
        }
    }
    let program = std::env::current_exe()?;
    let reach = format!(
        "command: {}\n      args: [--serve-rmcp-stdio]\n      sandbox: none",
        program.display()
    );
    let through = Through::start(&reach, "read")?;
    for era in Era::BOTH {
        let mut direct = Pipes::start(&["--serve-rmcp-stdio"], era)?;
        let pairs = Pairs::take(
            ROUNDS,
            || std::future::ready(direct.load(1)),
            || load(&through.address, era, 1),
        )
        .await?;
        pairs.tell_hop(&format!(
            "MCP hop, {}, 1 caller over HTTP, upstream over pipes",
            era.name()
        ));
    }
    Ok(())
}

/// The real binary with one server behind it, ended when dropped.
struct Through {
    child: Child,
    _folder: TempDir,
    address: String,
}

impl Through {
    /// The operator sets the tool's class. The class of an outside tool is otherwise unknown, and its start would be
    /// synced to the journal before it runs.
    fn start(reach: &str, class: &str) -> anyhow::Result<Self> {
        let kept = tempfile::tempdir()?;
        let folder = kept.path();
        let config = folder.join("host.yaml");
        let text = format!(
            "mode: bypass\nlimits: {{ concurrency: 256, session_concurrency: 256 }}\n\
             mcp:\n  servers:\n    bench:\n      {reach}\n      naming: bare\n      start: eager\n\
             tools: {{ bench.echo: {{ class: {class} }} }}\n"
        );
        write(folder, &config, &text)?;
        let program = std::env::current_exe()?.with_file_name("toolpost");
        let mut child = children::command(&program)
            .args([
                "serve",
                "--no-token",
                "--http",
                "127.0.0.1:0",
                "--workspace",
            ])
            .arg(folder.join("workspace"))
            .arg("--data-dir")
            .arg(folder.join("data"))
            .arg("--config")
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{}` cannot be started", program.display()))?;
        let mut said = BufReader::new(child.stderr.take().context("what the host says")?);
        let address = address(&mut said);
        // Read to the end, so that the host never blocks on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(Self {
            child,
            _folder: kept,
            address: address?,
        })
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address from the host's banner.
fn address(said: &mut BufReader<impl Read>) -> anyhow::Result<String> {
    let mut all = String::new();
    loop {
        let before = all.len();
        anyhow::ensure!(said.read_line(&mut all)? > 0, "the host ended:\n{all}");
        let line = all[before..].trim();
        if let Some(found) = line
            .strip_prefix("listening")
            .and_then(|rest| rest.trim().strip_prefix("http://"))
        {
            return Ok(found.to_owned());
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the contender's configuration and workspace"
)]
fn write(folder: &Path, config: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder.join("workspace"))?;
    Ok(std::fs::write(config, text)?)
}
