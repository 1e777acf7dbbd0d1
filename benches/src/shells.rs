//! A thousand sandboxed shells, many with background processes, and the leftovers after their end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use serde_json::{Value, json};
use toolpost_core::{Host, Session};
use toolpost_model::{Principal, SurfaceRequest};

use crate::{
    machine::{Belongings, adopt_orphans, childless},
    native,
};

const SHELLS: usize = 1_000;
const CALLERS: usize = 8;
/// Calls of a session, which is closed while some of them still run.
const SESSION: usize = 25;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> anyhow::Result<()> {
    adopt_orphans()?;
    let folder = tempfile::tempdir()?;
    let host = native::host(folder.path()).await?;
    let mark = format!("100000.{}", std::process::id());
    // Permanent resources of a host: threads, the descriptors of the runtime.
    sessions(&host, &mark, CALLERS * SESSION).await?;
    childless(PATIENCE).await?;
    let before = Belongings::count(&mark)?;
    println!("before: {before:?}");
    let began = Instant::now();
    sessions(&host, &mark, SHELLS).await?;
    let took = began.elapsed().as_secs_f64();
    childless(PATIENCE).await?;
    let after = Belongings::count(&mark)?;
    println!("after {SHELLS} shells in {took:.1} s: {after:?}");
    ensure!(
        after.processes == 0,
        "{} processes were left",
        after.processes
    );
    ensure!(
        after.cgroups == 0,
        "{} control groups were left",
        after.cgroups
    );
    ensure!(
        after.folders == 0,
        "{} temporary folders were left",
        after.folders
    );
    ensure!(after.mounts <= before.mounts, "mounts were left");
    ensure!(
        after.descriptors <= before.descriptors,
        "descriptors were left"
    );
    Ok(())
}

/// `shells` commands, from several callers at once.
async fn sessions(host: &Host, mark: &str, shells: usize) -> anyhow::Result<()> {
    let mut tasks = Vec::new();
    for caller in 0..CALLERS {
        let host = host.clone();
        let mark = mark.to_owned();
        tasks.push(tokio::spawn(async move {
            for first in (caller * SESSION..shells).step_by(CALLERS * SESSION) {
                let session = host
                    .open_session(Principal::agent("bench"), SurfaceRequest::default())
                    .await?;
                for place in first..shells.min(first + SESSION) {
                    one(&host, &session, place, &mark).await?;
                }
                host.close_session(&session).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Each way in which a command can leave a process behind, in turn.
async fn one(host: &Host, session: &Arc<Session>, place: usize, mark: &str) -> anyhow::Result<()> {
    let foreground = |command: String| json!({ "command": command });
    let arguments: Value = match place % 5 {
        0 => foreground("true".to_owned()),
        1 => foreground(format!("sleep {mark} &")),
        2 => foreground(format!(
            "setsid sleep {mark} < /dev/null > /dev/null 2>&1 & disown"
        )),
        3 => foreground(format!(
            "(trap '' TERM HUP; sleep {mark} & sleep {mark}) & echo x | cat > /tmp/x"
        )),
        _ => json!({ "command": format!("trap '' TERM; sleep {mark} | cat"), "background": true }),
    };
    native::call(host, session, "shell", arguments).await
}
