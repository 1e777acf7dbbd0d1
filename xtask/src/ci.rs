//! `cargo xtask test --check`: `check` and `test` in less time. Most tests wait for processes, timers and other programs, so the
//! steps of `check` run beside them, on the time of the processors that tests leave.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::test::{CheckPlan, watchdog::Leash};
use crate::{ChoreVerdict, check, test};

pub(crate) fn run(root: &Path) -> anyhow::Result<ChoreVerdict> {
    // This takes seconds, so a formatting mistake need not wait for the tests.
    if check::format(root)? == ChoreVerdict::Fail {
        return Ok(ChoreVerdict::Fail);
    }
    test::run(root, &[], CheckPlan::BesideTests)
}

/// `cargo xtask check` as a process of the lowest priority. Its output is kept, so that the log of the tests stays readable.
pub(crate) struct CheckProcess {
    child: Child,
    /// Ends it with all its children if this program ends first.
    leash: Leash,
    log: PathBuf,
}

impl CheckProcess {
    pub(crate) fn start(root: &Path) -> anyhow::Result<Self> {
        let folder = root.join("target");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make `{}`", folder.display()))?;
        let log = folder.join("check.log");
        let output =
            File::create(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
        let errors = output
            .try_clone()
            .context("cannot share the log of `check`")?;
        // By its path: the file behind the running process is replaced if building the tests rebuilds this program.
        let program = env::args_os().next().context("this program has no path")?;
        let child = Command::new("nice")
            .args(["-n", "19"])
            .arg(program)
            .arg("check")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .context("cannot start `nice` for `check`")?;
        let leash = Leash::on_group(child.id())?;
        Ok(Self { child, leash, log })
    }

    /// The verdict of a process that may have been started, once it has ended.
    pub(crate) fn verdict(started: Option<Self>) -> anyhow::Result<ChoreVerdict> {
        started.map_or(Ok(ChoreVerdict::Pass), Self::finish)
    }

    /// Waits for its end and prints its output.
    fn finish(mut self) -> anyhow::Result<ChoreVerdict> {
        let status = self.child.wait().context("cannot wait for `check`")?;
        self.leash.release();
        let output =
            fs::read(&self.log).with_context(|| format!("cannot read `{}`", self.log.display()))?;
        eprintln!(
            "\n== `check`, which ran beside the tests\n{}",
            String::from_utf8_lossy(&output)
        );
        Ok(ChoreVerdict::pass_if(status.success()))
    }
}
