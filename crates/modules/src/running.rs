//! Programs that fetch and install: git, Python, uv. They run in the launcher's sandbox, with the network, and can
//! write only their own working folder.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use tokio::io::AsyncReadExt;
use toolpost_model::{ResourceAccess, SandboxProfile};
use toolpost_processes::{EnvironmentRefusal, variable_pairs};
use toolpost_sandbox::{
    Confines, LaunchError, ProcessLimits, SandboxJob, SandboxRoot, StderrTarget, Stdin,
};

use super::supply::{ModuleSetupProgress, ModuleSupply, SetupProgressSink};

/// The most output of a program that is kept.
const OUTPUT_BYTES: u64 = 4 << 20;
/// The most lines of standard error that a failure includes.
const LAST_LINES: usize = 12;
/// The longest line that is read.
const LINE_BYTES: usize = 64 << 10;
/// The most characters of such a line.
const LINE_CHARS: usize = 400;

/// A command to run.
pub(super) struct ModuleSetupCommand {
    pub(super) argv: Vec<OsString>,
    /// The working folder, which the command can write unless its profile forbids it.
    pub(super) folder: PathBuf,
    /// Further folders that it can read.
    pub(super) readable: Vec<PathBuf>,
    /// Its own variables, which override all others.
    pub(super) variables: Vec<(&'static str, String)>,
    pub(super) profile: SandboxProfile,
    pub(super) time_limit: Duration,
}

/// The reasons for the failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no launcher.
    #[error("this host cannot start processes: it has no launcher")]
    NoLauncher,
    /// It did not start.
    #[error("`{program}` did not start: {source}")]
    Launch {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: LaunchError,
    },
    /// A variable that no process may get.
    #[error(transparent)]
    Environment(#[from] EnvironmentRefusal),
    /// It exceeded its time limit.
    #[error("`{program}` did not finish within {} s and was stopped", after.as_secs())]
    TimedOut {
        /// The program.
        program: String,
        /// The limit.
        after: Duration,
    },
    /// It exited with a failure.
    #[error("`{program}` failed ({how}){}", told(last))]
    Failed {
        /// The program.
        program: String,
        /// The exit code or signal.
        how: String,
        /// The last lines of its standard error.
        last: Vec<String>,
    },
}

fn told(last: &[String]) -> String {
    if last.is_empty() {
        String::new()
    } else {
        format!(":\n  {}", last.join("\n  "))
    }
}

/// Runs it to its end and returns its standard output.
pub(super) async fn run(
    supply: &ModuleSupply,
    errand: ModuleSetupCommand,
    progress: &mut SetupProgressSink<'_>,
) -> Result<String, RunError> {
    let program = errand
        .argv
        .first()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let after = errand.time_limit;
    match tokio::time::timeout(after, run_to_its_end(supply, errand, &program, progress)).await {
        Ok(ended) => ended,
        Err(_) => Err(RunError::TimedOut { program, after }),
    }
}

async fn run_to_its_end(
    supply: &ModuleSupply,
    errand: ModuleSetupCommand,
    program: &str,
    progress: &mut SetupProgressSink<'_>,
) -> Result<String, RunError> {
    let launcher = supply.launcher.as_ref().ok_or(RunError::NoLauncher)?;
    let failed = |source| RunError::Launch {
        program: program.to_owned(),
        source,
    };
    let mut process = launcher.start(job(supply, errand)?).await.map_err(failed)?;
    let stdout = process.take_stdout();
    let stderr = process.take_stderr();
    let mut last: Vec<String> = Vec::new();
    let reading = async {
        let mut text = Vec::new();
        if let Some(stdout) = stdout {
            let mut stdout = stdout.take(OUTPUT_BYTES);
            let _ = stdout.read_to_end(&mut text).await;
            // Output over the limit is read and dropped, so that the program does not block on a full pipe.
            let _ = tokio::io::copy(&mut stdout.into_inner(), &mut tokio::io::sink()).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let complaining = async {
        let Some(mut stderr) = stderr else { return };
        let mut pending = Vec::new();
        while stderr
            .read_buf(&mut pending)
            .await
            .is_ok_and(|read| read > 0)
        {
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line = clean(&pending[..end]);
                pending.drain(..=end);
                if line.is_empty() {
                    continue;
                }
                progress(ModuleSetupProgress::Line(line.clone()));
                last.push(line);
                if last.len() > LAST_LINES {
                    last.remove(0);
                }
            }
            if pending.len() > LINE_BYTES {
                pending.clear();
            }
        }
    };
    let (text, ()) = tokio::join!(reading, complaining);
    let ended = process.wait().await;
    if ended.code == Some(0) {
        return Ok(text);
    }
    let how = match (ended.code, ended.signal) {
        _ if ended.out_of_memory => "out of memory".to_owned(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    };
    Err(RunError::Failed {
        program: program.to_owned(),
        how,
        last,
    })
}

/// A line without control characters of terminals.
fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    // If a line was redrawn, only its last version counts.
    let drawn = text.trim_end().rsplit('\r').next().unwrap_or_default();
    drawn
        .chars()
        .filter(|c| !c.is_control())
        .take(LINE_CHARS)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn job(supply: &ModuleSupply, errand: ModuleSetupCommand) -> Result<SandboxJob, RunError> {
    let mut environment = supply.environment.with([])?;
    let more = variable_pairs(&supply.variables);
    let own = errand
        .variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    for (name, value) in more.chain(own) {
        environment.retain(|(known, _)| known != name);
        environment.push((name.into(), value.into()));
    }
    let writes = match errand.profile {
        SandboxProfile::ReadOnly => ResourceAccess::Read,
        SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None => {
            ResourceAccess::Write
        }
    };
    let mut readable = [
        errand.readable.as_slice(),
        &supply.readable,
        supply.environment.toolchains(),
    ]
    .concat();
    readable.extend(supply.certificates());
    Ok(SandboxJob {
        argv: errand.argv,
        environment,
        directory: errand.folder.clone(),
        stdin: Stdin::Null,
        stderr: StderrTarget::Piped,
        confines: Confines {
            profile: errand.profile,
            roots: vec![SandboxRoot {
                path: errand.folder,
                access: writes,
            }],
            readable,
            masked: supply.environment.credentials().to_vec(),
            limits: ProcessLimits {
                memory_bytes: 4 << 30,
                file_bytes: 4 << 30,
                open_files: 4096,
                tmp_bytes: 4 << 30,
                ..ProcessLimits::default()
            },
            required: supply.required,
            ..Confines::default()
        },
    })
}
