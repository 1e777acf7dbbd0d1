//! A commit of a repository, by the system's own git: without history, submodules, hooks and links, and with no
//! protocol but that of the address.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use toolpost_model::SandboxProfile;

use crate::{
    running::{ModuleSetupCommand, RunError, run},
    supply::{ModuleSupply, SetupProgressSink},
};

/// The time limit of one attempt.
const TIME: Duration = Duration::from_secs(300);
/// The pauses between attempts after a network error.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Settings that keep git from running or reading anything else.
const SETTINGS: [&str; 12] = [
    "protocol.allow=never",
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "credential.helper=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "init.defaultBranch=fetched",
];

/// Checks the commit out into the empty folder `folder`. Returns the full id of the commit.
pub(super) async fn checkout(
    supply: &ModuleSupply,
    (url, reference): (&str, Option<&str>),
    folder: &Path,
    progress: &mut SetupProgressSink<'_>,
) -> Result<String, RunError> {
    let git = GitCheckout {
        supply,
        url,
        folder,
    };
    git.run(&["init", "--quiet", "--template=", "."], progress)
        .await?;
    git.fetch(reference, progress).await?;
    git.run(
        &["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"],
        progress,
    )
    .await?;
    let commit = git
        .run(&["rev-parse", "--verify", "HEAD"], progress)
        .await?;
    Ok(commit.trim().to_owned())
}

struct GitCheckout<'a> {
    supply: &'a ModuleSupply,
    url: &'a str,
    folder: &'a Path,
}

impl GitCheckout<'_> {
    async fn fetch(
        &self,
        reference: Option<&str>,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<(), RunError> {
        let wanted = reference.unwrap_or("HEAD");
        let shallow = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--depth=1",
            "--",
            self.url,
            wanted,
        ];
        let mut pauses = if self.local().is_some() {
            [].iter()
        } else {
            PAUSES.iter()
        };
        let error = loop {
            match self.run(&shallow, progress).await {
                Ok(_) => return Ok(()),
                Err(error @ RunError::Failed { .. }) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => break error,
                },
                Err(error) => return Err(error),
            }
        };
        // Some servers serve a commit only as part of a branch.
        if !is_commit(wanted) {
            return Err(error);
        }
        let all = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--",
            self.url,
            "+refs/heads/*:refs/fetched/*",
        ];
        self.run(&all, progress).await?;
        // The checkout follows `FETCH_HEAD`.
        self.run(
            &["update-ref", "--no-deref", "FETCH_HEAD", wanted],
            progress,
        )
        .await
        .map_err(|_| error)?;
        Ok(())
    }

    /// The repository, if it is on this machine.
    fn local(&self) -> Option<&Path> {
        self.url.strip_prefix("file://").map(Path::new)
    }

    async fn run(
        &self,
        words: &[&str],
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<String, RunError> {
        let scheme = self.url.split("://").next().unwrap_or_default();
        let allowed = format!("protocol.{scheme}.allow=always");
        let mut argv: Vec<OsString> = vec!["git".into()];
        for setting in SETTINGS.into_iter().chain([allowed.as_str()]) {
            argv.push("-c".into());
            argv.push(setting.into());
        }
        argv.extend(words.iter().map(Into::into));
        let errand = ModuleSetupCommand {
            argv,
            folder: self.folder.to_owned(),
            readable: self.local().map(PathBuf::from).into_iter().collect(),
            variables: vec![
                ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
                ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
                ("GIT_TERMINAL_PROMPT", "0".to_owned()),
                ("GIT_ASKPASS", "true".to_owned()),
                ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes".to_owned()),
                ("GIT_HTTP_LOW_SPEED_LIMIT", "1000".to_owned()),
                ("GIT_HTTP_LOW_SPEED_TIME", "60".to_owned()),
                ("GIT_CEILING_DIRECTORIES", "/".to_owned()),
                ("LC_ALL", "C".to_owned()),
            ],
            profile: match self.local() {
                Some(_) => SandboxProfile::WorkspaceWrite,
                None => SandboxProfile::Network,
            },
            time_limit: TIME,
        };
        run(&self.supply.for_git(), errand, progress).await
    }
}

/// Whether it is the full id of a commit.
pub(super) fn is_commit(reference: &str) -> bool {
    matches!(reference.len(), 40 | 64) && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}
