//! Access to a host: the one that runs on the workspace, or a temporary one in this process.

use std::{path::Path, time::Duration};

use anyhow::{Context, bail};
use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolpost_config::{HostConfig, McpStart};
use toolpost_core::{SourceReport, ToolFilter};
use toolpost_model::{EventBody, Principal, QuarantinedDefinition, ToolResult};
use toolpost_serve::{ApprovalAudience, HostParts, OpenedHost, StartError, open_host};
use toolpost_store::{DataDir, DataDirError};

use crate::{
    approving::{desk::ApprovalDesk, prompt},
    cli::{PolicyArgs, SettingsArgs},
    client::{HostClient, HostFacts},
    environment::{self, ControllingTerminal},
    exit::UsageError,
    settings,
    terminal::{self, LiveCallDisplay, ProgressSteps},
};

/// A host for a command. Both kinds answer the same requests: one over its Unix socket, the other over a connection
/// within this process.
pub(crate) struct ReachedHost {
    client: HostClient,
    /// The temporary host of this process.
    own: Option<OwnHost>,
}

struct OwnHost {
    opened: OpenedHost,
    /// Ends when the host has noticed that the command is gone.
    served: JoinHandle<()>,
    tty: Option<ControllingTerminal>,
}

/// How long a call may run, and how long it may wait at a running host, in seconds. Both are checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallTimes {
    pub(crate) timeout: Option<f64>,
    /// The patience for approval or a free slot. 0: for a slot only.
    pub(crate) patience: Option<f64>,
}

impl CallTimes {
    /// How long the call waits at a running host. A caller with a time limit for the work does not wait longer than
    /// that for its start.
    pub(crate) fn longest_wait(self) -> Option<f64> {
        self.patience.or(self.timeout)
    }
}

/// The purpose of a command's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostPurpose {
    /// To run a call on record. A temporary host prompts on the terminal, if there is one.
    Call,
    /// The same without prompts.
    CallUnasked,
    /// To read. A temporary host then has its journal in memory: it writes nothing and does not recover the open calls
    /// of the last host.
    Look,
    /// The same, but servers with known definitions are contacted too.
    LookAtServers,
    /// To accept definitions that are held back. Servers are asked for theirs.
    Accept,
}

/// How long a temporary host waits for its last work after the command.
const GRACE: Duration = Duration::from_secs(5);

/// Connects to the running host, or starts one without a face.
pub(crate) async fn reach(
    arguments: &SettingsArgs,
    policy: &PolicyArgs,
    purpose: HostPurpose,
) -> anyhow::Result<ReachedHost> {
    let settings = settings::with_bundles(|| settings::resolve(arguments, policy)).await?;
    let place = &settings.place;
    if let Some((client, facts)) = running(&place.data_dir).await? {
        same_workspace(&place.workspace, &facts)?;
        if !policy.is_empty() {
            terminal::warn(
                "a host is running on this workspace; it applies its own rules and ignores these flags",
            );
        }
        return Ok(ReachedHost::running(client));
    }
    settings.warnings().for_each(terminal::warn);
    let (config, native) = match purpose {
        HostPurpose::Call | HostPurpose::CallUnasked | HostPurpose::Accept => {
            (settings.config.clone(), settings.handover()?)
        }
        HostPurpose::Look | HostPurpose::LookAtServers => settings.read_only_config(),
    };
    let config = match purpose {
        HostPurpose::LookAtServers | HostPurpose::Accept => with_servers_started(config),
        HostPurpose::Call | HostPurpose::CallUnasked | HostPurpose::Look => config,
    };
    let tty = match purpose {
        HostPurpose::Call => prompt::terminal(&config.approvals),
        HostPurpose::CallUnasked
        | HostPurpose::Look
        | HostPurpose::LookAtServers
        | HostPurpose::Accept => None,
    };
    let asked = if tty.is_some() {
        ApprovalAudience::Operators
    } else {
        ApprovalAudience::Nobody
    };
    let (rules, blobs) = match purpose {
        HostPurpose::Look | HostPurpose::LookAtServers => (
            Some(environment::rules_to_look_at(&place.data_dir)),
            Some(environment::blobs_to_look_at(&place.data_dir)),
        ),
        HostPurpose::Call | HostPurpose::CallUnasked | HostPurpose::Accept => (None, None),
    };
    let parts = HostParts {
        native,
        asked,
        rules,
        blobs,
        modules: ProgressSteps::of_modules(),
        ..HostParts::default()
    };
    match open_host(&config, parts).await {
        Ok(opened) => {
            terminal::set_host_redactor(opened.host.redactor());
            opened.host.notices().iter().for_each(terminal::warn);
            if opened.data_dir.is_some() {
                settings.keep_last_good();
            }
            let connection = opened.connect();
            Ok(ReachedHost {
                client: HostClient::over(connection.stream).await?,
                own: Some(OwnHost {
                    opened,
                    served: connection.served,
                    tty,
                }),
            })
        }
        // Another host started between the search and the lock.
        Err(StartError::DataDir(DataDirError::InUse { path, pid })) => {
            match running(&place.data_dir).await? {
                Some((client, facts)) => {
                    same_workspace(&place.workspace, &facts)?;
                    Ok(ReachedHost::running(client))
                }
                None => Err(DataDirError::InUse { path, pid }.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// The same configuration with every MCP server started with the host.
pub(crate) fn with_servers_started(mut config: HostConfig) -> HostConfig {
    for server in &mut config.mcp.servers {
        server.start = McpStart::Eager;
    }
    config
}

/// The running host of a data directory, if there is one.
pub(crate) async fn running(data_dir: &Path) -> anyhow::Result<Option<(HostClient, HostFacts)>> {
    match DataDir::at(data_dir) {
        Ok(data_dir) => HostClient::connect(&data_dir.socket_path()).await,
        Err(DataDirError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A data directory from the command line may belong to a host of another folder, and its tools would work there.
pub(crate) fn same_workspace(wanted: &Path, facts: &HostFacts) -> anyhow::Result<()> {
    match &facts.workspace {
        Some(theirs) if theirs != wanted => {
            bail!(
                "the host on this data directory works in `{}`, not in `{}`",
                theirs.display(),
                wanted.display()
            )
        }
        Some(_) | None => Ok(()),
    }
}

impl ReachedHost {
    /// A host in another process.
    pub(crate) fn running(client: HostClient) -> Self {
        Self { client, own: None }
    }

    /// Whether it is in another process.
    pub(crate) fn is_running(&self) -> bool {
        self.own.is_none()
    }

    /// Prompts on the terminal for the calls of a temporary host, until the returned guard is dropped. `live` hides
    /// its display meanwhile.
    pub(crate) fn spawn_prompt(&mut self, live: &LiveCallDisplay) -> Option<PromptTaskGuard> {
        let own = self.own.as_mut()?;
        let tty = own.tty.take()?;
        let desk = ApprovalDesk::for_new_questions(&own.opened.host, Principal::operator("local"));
        let live = live.clone();
        let quiet = move |asking| match asking {
            prompt::PromptPhase::Begins => live.hide_progress(),
            prompt::PromptPhase::Ends => live.resume_progress(),
        };
        Some(PromptTaskGuard(tokio::spawn(async move {
            if let Err(error) = prompt::run(desk, tty, Box::new(quiet)).await {
                tracing::warn!("approval prompts on the terminal have stopped: {error:#}");
            }
        })))
    }

    /// Calls a tool. `heard` gets the events; the result is the recorded one. The patience is for a running host: with
    /// a temporary host the operator is at this terminal.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: &str,
        times: CallTimes,
        heard: impl FnMut(EventBody),
    ) -> anyhow::Result<(ToolResult, String)> {
        let patience = times.longest_wait().filter(|_| self.is_running());
        let path = format!(
            "/tools/{}/call{}",
            escape(tool),
            call_query(times.timeout, patience)
        );
        let json = self
            .client
            .call(&path, arguments.to_owned(), heard)
            .await?
            .result
            .into_string();
        let result = serde_json::from_str(&json).context("the result cannot be read")?;
        Ok((result, json))
    }

    /// Runs later calls in an open session of the running host.
    pub(crate) fn select_session(&mut self, session: &str) -> anyhow::Result<()> {
        if self.is_running() {
            self.client.session = Some(session.to_owned());
            return Ok(());
        }
        let message = "`--session` requires a running host\nhint: start one with `toolpost serve`, or leave `--session` out";
        Err(UsageError(message.into()).into())
    }

    /// Explains a call that was not made.
    pub(crate) async fn explain(&mut self, tool: &str, arguments: &str) -> anyhow::Result<Value> {
        let path = format!("/tools/{}/explain", escape(tool));
        let answer = self.client.json(Method::POST, &path, arguments.to_owned());
        body_or_error(answer.await?)
    }

    /// The schema of a tool's arguments, if the tool can be seen. The request counts as showing the tool.
    pub(crate) async fn schema(&mut self, tool: &str) -> anyhow::Result<Option<Value>> {
        let path = format!("/tools/{}", escape(tool));
        let (status, body) = self.client.json(Method::GET, &path, String::new()).await?;
        Ok(status
            .is_success()
            .then(|| body["declaration"]["input"]["schema"].clone()))
    }

    /// The list of tools in a format, as `GET /tools` gives it.
    pub(crate) async fn list(
        &mut self,
        filter: &ToolFilter,
        format: &str,
        hidden: bool,
    ) -> anyhow::Result<Value> {
        let mut query = format!(
            "/tools?format={}&include_deferred={}&hidden={hidden}",
            escape(format),
            filter.include_deferred
        );
        let mut add = |key: &str, value: &str| query.push_str(&format!("&{key}={}", escape(value)));
        add("query", &filter.query);
        filter.kind.iter().for_each(|kind| add("kind", kind));
        if !filter.tags.is_empty() {
            add("tags", &filter.tags.join(","));
        }
        filter
            .limit
            .iter()
            .for_each(|limit| add("limit", &limit.to_string()));
        body_or_error(self.client.json(Method::GET, &query, String::new()).await?)
    }

    /// The state of every source.
    pub(crate) async fn sources(&mut self) -> anyhow::Result<Vec<SourceReport>> {
        let answer = self.client.json(Method::GET, "/sources", String::new());
        let told = body_or_error(answer.await?)?;
        serde_json::from_value(told["sources"].clone()).context("the host's sources cannot be read")
    }

    /// Accepts a definition that is held back, if it is still the one that was shown.
    pub(crate) async fn accept(
        &mut self,
        source: &str,
        seen: &QuarantinedDefinition,
    ) -> anyhow::Result<()> {
        let path = format!("/sources/{}/accept", escape(source));
        let body = json!({ "tool": seen.tool, "digest": seen.digest }).to_string();
        body_or_error(self.client.json(Method::POST, &path, body).await?)?;
        Ok(())
    }

    /// Ends a temporary host after its record is complete.
    pub(crate) async fn close(self) {
        if let Some(own) = self.own {
            // A command that was interrupted leaves a call behind. It is canceled only after the host has noticed that its
            // caller is gone; a shutdown before that would end its question first.
            drop(self.client);
            let _ = tokio::time::timeout(GRACE, own.served).await;
            own.opened.host.shutdown(GRACE).await;
        }
    }
}

/// The query of a call, in seconds.
fn call_query(timeout: Option<f64>, patience: Option<f64>) -> String {
    let given = [("timeout", timeout), ("patience", patience)];
    let given = given
        .into_iter()
        .filter_map(|(name, seconds)| Some(format!("{name}={}", seconds?)));
    given
        .enumerate()
        .map(|(place, word)| format!("{}{word}", if place == 0 { '?' } else { '&' }))
        .collect()
}

/// Prompts on the terminal until it is dropped.
pub(crate) struct PromptTaskGuard(JoinHandle<()>);

impl Drop for PromptTaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn body_or_error((status, body): (hyper::StatusCode, Value)) -> anyhow::Result<Value> {
    if status.is_success() {
        return Ok(body);
    }
    let error = &body["error"];
    if error["code"] == "bad_format" {
        let message = error["message"].as_str().unwrap_or_default();
        return Err(UsageError(message.to_owned()).into());
    }
    let hint = error["hint"]
        .as_str()
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    bail!(
        "{}{hint}",
        error["message"]
            .as_str()
            .unwrap_or("the running host refused the request")
    )
}

/// Percent-encodes every character that is not safe in a path segment or a query.
pub(crate) fn escape(text: &str) -> PercentEncode<'_> {
    const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');
    utf8_percent_encode(text, UNSAFE)
}
