//! Reaching a host: the one that runs on the workspace, or one of our own for the moment.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use hyper::Method;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};
use toolpost_config::{HostConfig, McpStart};
use toolpost_core::{CallRequest, Session, SourceReport, ToolFilter};
use toolpost_model::{EventBody, ModelInput, Principal, QuarantinedDefinition, ToolResult};
use toolpost_serve::{ApprovalAudience, HostParts, OpenedHost, StartError, open_host};
use toolpost_store::{DataDir, DataDirError};

use crate::{
    approving::{desk::ApprovalDesk, prompt},
    cli::{PlaceArgs, PolicyArgs},
    client::{HostClient, HostFacts},
    environment::{self, Tty},
    exit::UsageError,
    settings,
    terminal::{self, LiveCallDisplay, Steps},
};

/// A host a command can use.
pub(crate) enum ReachedHost {
    Running(HostClient),
    Own {
        opened: OpenedHost,
        session: Arc<Session>,
        tty: Option<Tty>,
    },
}

/// How long a call may run, and how long it may wait at a running host. In seconds, checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallTimes {
    pub(crate) timeout: Option<f64>,
    /// For approval or a free slot. 0: for a slot only.
    pub(crate) patience: Option<f64>,
}

impl CallTimes {
    /// How long the call waits at a running host. A caller that limits the work does not want to wait longer for it than
    /// it may take.
    pub(crate) fn longest_wait(self) -> Option<f64> {
        self.patience.or(self.timeout)
    }

    /// The query of a call over HTTP.
    fn query(self) -> String {
        let given = [("timeout", self.timeout), ("patience", self.longest_wait())];
        let given = given
            .into_iter()
            .filter_map(|(name, seconds)| Some(format!("{name}={}", seconds?)));
        given
            .enumerate()
            .map(|(place, word)| format!("{}{word}", if place == 0 { '?' } else { '&' }))
            .collect()
    }
}

/// What a command wants a host for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostPurpose {
    /// To run something, on record. A host of our own asks on the terminal, where there is one.
    Call,
    /// The same, and nobody is to be asked.
    CallUnasked,
    /// To look. A host of our own then has its journal in memory: it writes nothing and ends nothing that the last
    /// host left open.
    Look,
    /// The same, and servers whose definitions are known are asked for them all the same.
    LookAtServers,
    /// To take definitions that are kept back. Servers are asked for theirs.
    Accept,
}

/// How long our own host waits for what it still does when the command is over.
const GRACE: Duration = Duration::from_secs(5);
/// Events of our own host that may wait to be drawn.
const EVENT_BUFFER: usize = 256;

/// Finds the running host, or starts one without any face.
pub(crate) async fn reach(
    place: &PlaceArgs,
    policy: &PolicyArgs,
    purpose: HostPurpose,
) -> anyhow::Result<ReachedHost> {
    let settings = settings::with_bundles(|| settings::resolve(place, policy)).await?;
    let place = &settings.place;
    if let Some((client, facts)) = running(&place.data_dir).await? {
        same_workspace(&place.workspace, &facts)?;
        if !policy.is_empty() {
            terminal::warn(
                "a host is running on this workspace; it decides by its own rules, not by these flags",
            );
        }
        return Ok(ReachedHost::Running(client));
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
        modules: Steps::of_modules(),
        ..HostParts::default()
    };
    match open_host(&config, parts).await {
        Ok(opened) => {
            terminal::set_host_redactor(opened.host.redactor());
            opened.host.notices().iter().for_each(terminal::warn);
            if opened.data_dir.is_some() {
                settings.keep_last_good();
            }
            let session = opened.host.default_session(&Principal::operator("local"));
            Ok(ReachedHost::Own {
                opened,
                session,
                tty,
            })
        }
        // It started between the look and the lock.
        Err(StartError::DataDir(DataDirError::InUse { path, pid })) => {
            match running(&place.data_dir).await? {
                Some((client, facts)) => {
                    same_workspace(&place.workspace, &facts)?;
                    Ok(ReachedHost::Running(client))
                }
                None => Err(DataDirError::InUse { path, pid }.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// The same configuration, in which every MCP server is asked for its tools at the start.
pub(crate) fn with_servers_started(mut config: HostConfig) -> HostConfig {
    for server in &mut config.mcp.servers {
        server.start = McpStart::Eager;
    }
    config
}

/// The host that runs on a data directory, if one does.
pub(crate) async fn running(data_dir: &Path) -> anyhow::Result<Option<(HostClient, HostFacts)>> {
    match DataDir::at(data_dir) {
        Ok(data_dir) => HostClient::connect(&data_dir.socket_path()).await,
        Err(DataDirError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A data directory given by hand may belong to a host of another folder; its tools would work there.
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
    /// Asks on the terminal what calls of our own host need, as long as what this gives lives. `live` keeps off the
    /// terminal meanwhile.
    pub(crate) fn spawn_prompt(&mut self, live: &LiveCallDisplay) -> Option<PromptTaskGuard> {
        let Self::Own {
            opened,
            session,
            tty,
        } = self
        else {
            return None;
        };
        let desk = ApprovalDesk::for_new_questions(&opened.host, session.principal().clone());
        let live = live.clone();
        let quiet = move |asking| match asking {
            prompt::PromptPhase::Begins => live.hide_progress(),
            prompt::PromptPhase::Ends => live.resume_progress(),
        };
        let tty = tty.take()?;
        Some(PromptTaskGuard(tokio::spawn(async move {
            if let Err(error) = prompt::run(desk, tty, Box::new(quiet)).await {
                tracing::warn!("questions are no longer asked on the terminal: {error:#}");
            }
        })))
    }

    /// Calls a tool. `heard` sees the events; the result comes as the record has it. The patience is for a running host:
    /// with a host of our own the person who would answer is at this terminal.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: &str,
        times: CallTimes,
        mut heard: impl FnMut(EventBody),
    ) -> anyhow::Result<(ToolResult, String)> {
        let json = match self {
            Self::Running(client) => {
                let path = format!("/tools/{}/call{}", escape(tool), times.query());
                client
                    .call(&path, arguments.to_owned(), heard)
                    .await?
                    .result
                    .into_string()
            }
            Self::Own {
                opened, session, ..
            } => {
                let (sender, mut events) = mpsc::channel(EVENT_BUFFER);
                let mut request = request(session, tool, arguments).notify(Arc::new(sender));
                request.times.timeout = times
                    .timeout
                    .map(Duration::try_from_secs_f64)
                    .transpose()
                    .context("the timeout")?;
                let handle = opened.host.start(request).await;
                while let Some(event) = events.recv().await {
                    heard(event.body);
                }
                handle.answer().await.json().to_owned()
            }
        };
        let result = serde_json::from_str(&json).context("the result cannot be read")?;
        Ok((result, json))
    }

    /// Has what follows happen in a session that somebody opened on the running host.
    pub(crate) fn select_session(&mut self, session: &str) -> anyhow::Result<()> {
        match self {
            Self::Running(client) => {
                client.session = Some(session.to_owned());
                Ok(())
            }
            Self::Own { .. } => {
                let message = "no host runs here, so there is no session to call in\nhint: start one with `toolpost serve`, or leave `--session` out";
                Err(UsageError(message.into()).into())
            }
        }
    }

    /// What would happen to a call.
    pub(crate) async fn explain(&mut self, tool: &str, arguments: &str) -> anyhow::Result<Value> {
        match self {
            Self::Running(client) => {
                let path = format!("/tools/{}/explain", escape(tool));
                body_or_error(
                    client
                        .json(Method::POST, &path, arguments.to_owned())
                        .await?,
                )
            }
            Self::Own {
                opened, session, ..
            } => Ok(serde_json::to_value(
                opened.host.explain(request(session, tool, arguments)).await,
            )?),
        }
    }

    /// The schema of a tool's arguments, where the tool can be seen. Looking counts as having been shown.
    pub(crate) async fn schema(&mut self, tool: &str) -> anyhow::Result<Option<Value>> {
        match self {
            Self::Running(client) => {
                let (status, body) = client
                    .json(
                        Method::GET,
                        &format!("/tools/{}", escape(tool)),
                        String::new(),
                    )
                    .await?;
                Ok(status
                    .is_success()
                    .then(|| body["declaration"]["input"]["schema"].clone()))
            }
            Self::Own {
                opened, session, ..
            } => {
                let shown = opened.host.show(session, tool).await;
                Ok(shown.map(|tool| (*tool.entry.declaration().input.schema).clone()))
            }
        }
    }

    /// The list of tools in a format, as `GET /tools` gives it.
    pub(crate) async fn list(
        &mut self,
        filter: &ToolFilter,
        format: &str,
        hidden: bool,
    ) -> anyhow::Result<Value> {
        match self {
            Self::Running(client) => {
                let mut query = format!(
                    "/tools?format={format}&include_deferred={}&hidden={hidden}",
                    filter.include_deferred
                );
                let mut add =
                    |key: &str, value: &str| query.push_str(&format!("&{key}={}", escape(value)));
                add("query", &filter.query);
                filter.kind.iter().for_each(|kind| add("kind", kind));
                if !filter.tags.is_empty() {
                    add("tags", &filter.tags.join(","));
                }
                filter
                    .limit
                    .iter()
                    .for_each(|limit| add("limit", &limit.to_string()));
                body_or_error(client.json(Method::GET, &query, String::new()).await?)
            }
            Self::Own {
                opened, session, ..
            } => {
                let listed =
                    toolpost_serve::list_tools(&opened.host, session, filter, format, hidden).await;
                let list = listed.map_err(|error| UsageError(error.to_string()))?;
                serde_json::from_str(&list).context("the list of tools")
            }
        }
    }

    /// How every source is doing.
    pub(crate) async fn sources(&mut self) -> anyhow::Result<Vec<SourceReport>> {
        match self {
            Self::Running(client) => {
                let told =
                    body_or_error(client.json(Method::GET, "/sources", String::new()).await?)?;
                serde_json::from_value(told["sources"].clone())
                    .context("the sources of the running host")
            }
            Self::Own { opened, .. } => Ok(opened.host.sources()),
        }
    }

    /// Takes a definition that is kept back, as long as it is the one that was seen.
    pub(crate) async fn accept(
        &mut self,
        source: &str,
        seen: &QuarantinedDefinition,
    ) -> anyhow::Result<()> {
        match self {
            Self::Running(client) => {
                let path = format!("/sources/{}/accept", escape(source));
                let body = json!({ "tool": seen.tool, "digest": seen.digest }).to_string();
                body_or_error(client.json(Method::POST, &path, body).await?)?;
            }
            Self::Own { opened, .. } => {
                opened
                    .host
                    .accept(source, Some(&seen.tool), Some(&seen.digest))
                    .await?;
            }
        }
        Ok(())
    }

    /// Ends our own host, its record complete.
    pub(crate) async fn close(self) {
        if let Self::Own { opened, .. } = self {
            opened.host.shutdown(GRACE).await;
        }
    }
}

/// Somebody is asked on the terminal until this is dropped.
pub(crate) struct PromptTaskGuard(JoinHandle<()>);

impl Drop for PromptTaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn request(session: &Arc<Session>, tool: &str, arguments: &str) -> CallRequest {
    CallRequest::new(Arc::clone(session), tool, ModelInput::text(arguments)).record_face("cli")
}

fn body_or_error((status, body): (hyper::StatusCode, Value)) -> anyhow::Result<Value> {
    if status.is_success() {
        return Ok(body);
    }
    let error = &body["error"];
    let hint = error["hint"]
        .as_str()
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    bail!(
        "{}{hint}",
        error["message"]
            .as_str()
            .unwrap_or("the running host refused")
    )
}

/// Percent-encodes everything that is not plainly safe in a path segment or a query.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
