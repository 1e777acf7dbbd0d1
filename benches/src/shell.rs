//! A sandboxed `true` through the host, beside a plain spawn of the same bash and beside bubblewrap.
//!
//! The figure is the processor time of this process and of all its descendants, because other programs on the machine
//! change it least. Later cleanup on the kernel's own threads, such as that of network namespaces, is in neither
//! figure. Elapsed times are the minimum of a round, for the same reason.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::json;
use toolpost_core::Host;
use toolpost_model::Principal;

use crate::{
    children::command,
    machine::{CpuTime, adopt_orphans, childless, collect_orphans},
    native,
    rounds::median,
};

const ROUNDS: usize = 7;
/// Spawns of one round: enough that the kernel's ticks do not matter.
const SPAWNS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(10);
const BASH: [&str; 5] = ["bash", "--noprofile", "--norc", "-c", "true"];
const INSTALL: &str = "`bwrap` cannot be started; install bubblewrap (`apt-get install bubblewrap`, `dnf install \
                       bubblewrap`) to compare with it";

/// Milliseconds of one spawn, in the rounds.
#[derive(Default)]
struct Figures {
    /// Of this process.
    host: Vec<f64>,
    /// Of this process and its descendants.
    cpu: Vec<f64>,
    least: Vec<f64>,
}

pub(crate) async fn run() -> anyhow::Result<()> {
    adopt_orphans()?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let host = native::host(folder).await?;
    let wrapped = bubblewrap(folder);
    let has_bubblewrap = spawn(&wrapped, folder)
        .map_err(|error| println!("{error:#}"))
        .is_ok();
    collect_orphans(PATIENCE).await?;
    let (mut ours, mut plain, mut theirs) =
        (Figures::default(), Figures::default(), Figures::default());
    for _ in 0..ROUNDS {
        plain
            .take(
                async || spawn(&BASH.map(Into::into), folder),
                async || childless(PATIENCE).await,
            )
            .await?;
        ours.take(
            async || through(&host).await,
            async || childless(PATIENCE).await,
        )
        .await?;
        if has_bubblewrap {
            // Bubblewrap's outer process does not wait for its inner one, so the inner one's time would be lost.
            theirs
                .take(
                    async || spawn(&wrapped, folder),
                    async || collect_orphans(PATIENCE).await,
                )
                .await?;
        }
    }
    plain.tell("a plain spawn of bash");
    ours.tell("the same by `shell`");
    println!(
        "by `shell` over a plain spawn: {}",
        difference(&ours.cpu, &plain.cpu)
    );
    if has_bubblewrap {
        theirs.tell("the same in bubblewrap");
        println!(
            "in bubblewrap over a plain spawn: {}",
            difference(&theirs.cpu, &plain.cpu)
        );
        println!(
            "by `shell` over bubblewrap: {}",
            difference(&ours.cpu, &theirs.cpu)
        );
    }
    Ok(())
}

impl Figures {
    /// `gone` waits until every process that `run` started has ended and is counted.
    async fn take(
        &mut self,
        mut run: impl AsyncFnMut() -> anyhow::Result<()>,
        gone: impl AsyncFn() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        run().await?;
        gone().await?;
        let before = CpuTime::now()?;
        let mut least = f64::INFINITY;
        for _ in 0..SPAWNS {
            let began = Instant::now();
            run().await?;
            least = least.min(began.elapsed().as_secs_f64() * 1e3);
        }
        gone().await?;
        let used = CpuTime::now()?.since(before);
        self.host.push(used.own / SPAWNS as f64);
        self.cpu.push((used.own + used.children) / SPAWNS as f64);
        self.least.push(least);
        Ok(())
    }

    fn tell(&self, name: &str) {
        let least = self.least.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{name}: {:.2} ms of processor time, {:.2} of it in this process; at least {least:.2} ms elapsed",
            median(&self.cpu),
            median(&self.host),
        );
    }
}

/// `3.10 ms more [2.90–3.30], ratio 2.40`.
fn difference(ours: &[f64], floor: &[f64]) -> String {
    let more: Vec<f64> = ours
        .iter()
        .zip(floor)
        .map(|(ours, floor)| ours - floor)
        .collect();
    let ratios: Vec<f64> = ours
        .iter()
        .zip(floor)
        .map(|(ours, floor)| ours / floor)
        .collect();
    let (low, high) = more
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &one| {
            (low.min(one), f64::max(high, one))
        });
    format!(
        "{:.2} ms more of processor time [{low:.2}–{high:.2}], ratio {:.2}",
        median(&more),
        median(&ratios)
    )
}

async fn through(host: &Host) -> anyhow::Result<()> {
    let session = host.default_session(&Principal::agent("bench"));
    native::call(host, &session, "shell", json!({ "command": "true" })).await
}

fn spawn(words: &[String], folder: &Path) -> anyhow::Result<()> {
    let [program, rest @ ..] = words else {
        anyhow::bail!("a program")
    };
    let output = bare(Path::new(program))
        .args(rest)
        .current_dir(folder)
        .output();
    let output = output.with_context(|| {
        if program == "bwrap" {
            INSTALL.to_owned()
        } else {
            program.clone()
        }
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "`{program}`: {} {said}",
        output.status
    );
    Ok(())
}

/// A minimal environment, as the tool gives, and its output read.
fn bare(program: &Path) -> Command {
    let mut command = command(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

/// The same bash with as much of the launcher's confinement as bubblewrap has options for: the same namespaces, the
/// system's directories for reading, one folder for writing, its own `/tmp` and devices, no capabilities. No Landlock,
/// no system call filter, no control groups.
fn bubblewrap(folder: &Path) -> Vec<String> {
    let mut words: Vec<String> = [
        "bwrap",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup",
        "--new-session",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
    ]
    .map(Into::into)
    .to_vec();
    let mut add =
        |option: &str, from: String, to: String| words.extend([option.to_owned(), from, to]);
    for name in [
        "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt",
    ] {
        let path = format!("/{name}");
        match std::fs::read_link(&path) {
            Ok(target) => add("--symlink", target.display().to_string(), path),
            Err(_) if Path::new(&path).is_dir() => add("--ro-bind", path.clone(), path),
            Err(_) => {}
        }
    }
    let folder = folder.display().to_string();
    words.extend(
        [
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm",
        ]
        .map(Into::into),
    );
    words.extend(["--bind", &folder, &folder, "--chdir", &folder, "--"].map(Into::into));
    words.extend(BASH.map(Into::into));
    words
}
