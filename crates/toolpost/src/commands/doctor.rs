//! `toolpost doctor`: checks that everything is in place.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use toolpost_config::{HookConfig, LayerTrust, McpReach};
use toolpost_core::{CatalogNotice, PinStore as _, SourceReport, ToolFilter};
use toolpost_model::{SandboxTier, SourceProblem, SourceState};
use toolpost_sandbox::Launcher;
use toolpost_serve::{HostParts, check_places, open_host};
use toolpost_store::{DataDir, DataDirError, JournalReader, PinFiles};

use super::tools;
use crate::{
    authorities,
    cli::{ModuleArgs, PolicyArgs, SettingsArgs},
    environment,
    exit::CliExit,
    hooks,
    reach::{self, ReachedHost},
    settings::{self, CommandSettings},
    terminal::{GREEN, RED, YELLOW, clean, counted, say, styled},
};

/// The subject of findings about MCP servers.
const MCP_SERVER: &str = "mcp server";

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    modules: ModuleArgs,
}

enum DoctorFindingLevel {
    Good,
    Odd,
    Bad,
}

struct DoctorFinding {
    state: DoctorFindingLevel,
    what: &'static str,
    text: String,
}

impl DoctorFinding {
    /// A finding with text that may come from a configuration, redacted.
    fn new_redacted(state: DoctorFindingLevel, what: &'static str, text: &str) -> Self {
        Self {
            state,
            what,
            text: clean(text).into_owned(),
        }
    }

    fn good(what: &'static str, text: impl Into<String>) -> Self {
        Self::new_redacted(DoctorFindingLevel::Good, what, &text.into())
    }

    fn odd(what: &'static str, text: impl Into<String>) -> Self {
        Self::new_redacted(DoctorFindingLevel::Odd, what, &text.into())
    }

    fn bad(what: &'static str, text: impl Into<String>) -> Self {
        Self::new_redacted(DoctorFindingLevel::Bad, what, &text.into())
    }
}

pub(crate) async fn run(arguments: DoctorArgs) -> anyhow::Result<CliExit> {
    let policy = PolicyArgs {
        modules: arguments.modules,
        ..PolicyArgs::default()
    };
    let found = settings::with_bundles(|| settings::resolve(&arguments.settings, &policy)).await;
    let findings = match found {
        Ok(settings) => examine(&settings).await,
        Err(error) => vec![DoctorFinding::bad("configuration", format!("{error:#}"))],
    };
    let ill = findings
        .iter()
        .any(|finding| matches!(finding.state, DoctorFindingLevel::Bad));
    if arguments.json {
        let word = |state: &DoctorFindingLevel| match state {
            DoctorFindingLevel::Good => "good",
            DoctorFindingLevel::Odd => "odd",
            DoctorFindingLevel::Bad => "bad",
        };
        let rows: Vec<_> = findings
            .iter()
            .map(|f| json!({ "what": f.what, "state": word(&f.state), "text": f.text }))
            .collect();
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "healthy": !ill, "findings": rows }))?
        );
    } else {
        for finding in &findings {
            let mark = match finding.state {
                DoctorFindingLevel::Good => styled(GREEN, "good"),
                DoctorFindingLevel::Odd => styled(YELLOW, "odd "),
                DoctorFindingLevel::Bad => styled(RED, "bad "),
            };
            say!("{mark}  {:<14} {}", finding.what, finding.text);
        }
    }
    Ok(if ill { CliExit::Failed } else { CliExit::Done })
}

async fn examine(settings: &CommandSettings) -> Vec<DoctorFinding> {
    let place = &settings.place;
    let mut findings = vec![DoctorFinding::good(
        "workspace",
        place.workspace.display().to_string(),
    )];
    findings.extend(configuration(settings));
    findings.extend(
        settings
            .notices
            .iter()
            .map(|notice| DoctorFinding::odd("configuration", notice.to_string())),
    );
    findings.push(data_dir(settings));
    let answer = reach::running(&place.data_dir).await;
    let running = matches!(&answer, Ok(Some(_)));
    findings.push(match (running, DataDir::running_pid(&place.data_dir)) {
        (true, Some(pid)) => DoctorFinding::good("host", format!("running, process {pid}")),
        (true, None) => DoctorFinding::good("host", "running"),
        (false, Some(pid)) => DoctorFinding::bad(
            "host",
            format!("process {pid} holds the data directory but does not answer"),
        ),
        (false, None) => DoctorFinding::good("host", "not running; `toolpost serve` starts it"),
    });
    if let Ok(Some((_, facts))) = &answer {
        let loaded = &facts.configuration;
        findings.extend(loaded.problem.as_ref().map(|problem| {
            DoctorFinding::bad(
                "host",
                format!("it cannot apply the changed configuration and keeps the previous one\n{problem}"),
            )
        }));
        if !loaded.after_restart.is_empty() {
            let waiting = loaded.after_restart.join(", ");
            findings.push(DoctorFinding::odd(
                "host",
                format!("changed, but in effect only after a restart: {waiting}"),
            ));
        }
    }
    findings.push(journal(settings));
    findings.push(sandbox(settings));
    findings.extend(settings.config.hooks.iter().map(hook));
    let authorities = settings.config.authorities.iter();
    findings.extend(
        authorities.map(|one| DoctorFinding::good("authority", authorities::described(one))),
    );
    findings.extend(match answer {
        Ok(Some((client, _))) => {
            let mut host = ReachedHost::running(client);
            let servers = host
                .sources()
                .await
                .map(|reports| server_findings(settings, &reports));
            servers
                .unwrap_or_default()
                .into_iter()
                .chain(tools_of(host).await)
                .collect()
        }
        Ok(None) | Err(_) => dry_start(settings).await,
    });
    findings
}

/// The tools of the running host, those that are missing, and its remarks about names and rules.
async fn tools_of(mut host: ReachedHost) -> Vec<DoctorFinding> {
    let filter = ToolFilter {
        include_deferred: true,
        ..ToolFilter::default()
    };
    let listed = match host.list(&filter, "toolpost", false).await {
        Ok(listed) => listed,
        Err(error) => return vec![DoctorFinding::bad("tools", format!("{error:#}"))],
    };
    let items = |key: &str| {
        listed[key]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let tools = counted(items("tools").len(), "tool");
    let unavailable = items("unavailable");
    let missing: Vec<String> = unavailable.iter().map(tools::unavailable_line).collect();
    let found = match (
        missing.as_slice(),
        unavailable.iter().all(tools::is_declined),
    ) {
        ([], _) => DoctorFinding::good("tools", tools),
        (_, true) => DoctorFinding::good("tools", format!("{tools}; {}", missing.join("\n"))),
        (_, false) => DoctorFinding::bad("tools", format!("{tools}; {}", missing.join("\n"))),
    };
    let notices = items("notices")
        .iter()
        .filter_map(serde_json::Value::as_str);
    let notices = notices.map(|notice| DoctorFinding::odd("notice", notice.to_owned()));
    std::iter::once(found).chain(notices).collect()
}

/// Every file in force, and every file that could not be read.
fn configuration(settings: &CommandSettings) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for file in &settings.files {
        let path = file.path.display();
        let origin = file.origin.as_str();
        findings.push(match (file.standing, &file.broken) {
            (None, _) => continue,
            (_, Some(broken)) => DoctorFinding::bad(
                "configuration",
                format!("{}\n{}", broken.note, broken.errors),
            ),
            (Some(LayerTrust::Untrusted), None) => DoctorFinding::odd(
                "configuration",
                format!(
                    "`{path}` is not trusted, so only its restrictions apply\nhint: toolpost trust"
                ),
            ),
            (Some(LayerTrust::Trusted | LayerTrust::LastGood), None) => {
                DoctorFinding::good("configuration", format!("`{path}` is trusted ({origin})"))
            }
        });
    }
    if findings.is_empty() {
        let text =
            "defaults; no `toolpost.yaml` in the workspace, no user configuration, no policy";
        findings.push(DoctorFinding::good("configuration", text));
    }
    findings
}

fn data_dir(settings: &CommandSettings) -> DoctorFinding {
    let path = &settings.place.data_dir;
    if let Err(error) = check_places(&settings.config) {
        return DoctorFinding::bad("record", error.to_string());
    }
    match DataDir::at(path) {
        // Opening writes, so a full or read-only disk shows here instead of at the first call.
        Ok(_) => match DataDir::open(path) {
            Ok(_) | Err(DataDirError::InUse { .. }) => {
                DoctorFinding::good("record", path.display().to_string())
            }
            Err(error) => DoctorFinding::bad("record", format!("{:#}", anyhow::Error::from(error))),
        },
        Err(DataDirError::Missing { .. }) => {
            let home = environment::home_of(path);
            DoctorFinding::good(
                "record",
                format!(
                    "`{}` will be created in `{}`",
                    path.display(),
                    home.display()
                ),
            )
        }
        Err(error) => DoctorFinding::bad("record", error.to_string()),
    }
}

fn journal(settings: &CommandSettings) -> DoctorFinding {
    let Ok(data_dir) = DataDir::at(&settings.place.data_dir) else {
        return DoctorFinding::good("journal", "nothing recorded yet");
    };
    let path = data_dir.journal_path();
    if !path.exists() {
        return DoctorFinding::good("journal", "nothing recorded yet");
    }
    let checked = JournalReader::open(&path)
        .map_err(anyhow::Error::from)
        .and_then(|reader| Ok(reader.verify(|_, _| ())?));
    match checked {
        Ok(report) if report.is_clean() => DoctorFinding::good(
            "journal",
            format!(
                "{} of {}, chain unbroken",
                counted(report.records, "record"),
                counted(report.invocations, "call")
            ),
        ),
        Ok(report) => DoctorFinding::bad(
            "journal",
            format!(
                "{}\nhint: toolpost journal verify",
                counted(report.problems.len(), "problem")
            ),
        ),
        Err(error) => DoctorFinding::bad("journal", format!("{error:#}")),
    }
}

/// The sandbox of this machine, found by a test run.
fn sandbox(settings: &CommandSettings) -> DoctorFinding {
    let Some(program) = environment::this_program() else {
        return DoctorFinding::bad(
            "sandbox",
            "the path of this program is unknown, so no process can be confined",
        );
    };
    let launcher = Launcher::new(program);
    let test = launcher.self_test();
    let abi = test
        .landlock_abi
        .map_or("no Landlock".to_owned(), |abi| format!("Landlock {abi}"));
    let mut text = format!(
        "tier {:?}: {}; {abi}; control groups: {}; processes get `{}`",
        test.tier,
        test.tier.explain(),
        test.cgroups,
        settings.config.sandbox.profile
    );
    for check in test.checks.iter().filter(|check| !check.ok) {
        text.push_str(&format!(
            "\nfailed on tier {:?}: {} ({})",
            check.tier, check.name, check.detail
        ));
    }
    match test.tier {
        SandboxTier::A => DoctorFinding::good("sandbox", text),
        _ if settings.config.sandbox.require => DoctorFinding::bad(
            "sandbox",
            format!("{text}\nhint: no process starts while `sandbox.require` is set"),
        ),
        SandboxTier::B => DoctorFinding::odd("sandbox", text),
        SandboxTier::C | SandboxTier::N => DoctorFinding::odd(
            "sandbox",
            format!("{text}\nhint: commands need approval, because files are not confined"),
        ),
    }
}

/// A hook of the configuration. The dry start checks its files.
fn hook(hook: &HookConfig) -> DoctorFinding {
    DoctorFinding::good("hook", hooks::described(hook))
}

/// Opens everything that a host opens, on a journal in memory, and counts the tools.
async fn dry_start(settings: &CommandSettings) -> Vec<DoctorFinding> {
    let (config, native) = settings.read_only_config();
    let config = reach::with_servers_started(config);
    match open_host(
        &config,
        HostParts {
            native,
            ..HostParts::default()
        },
    )
    .await
    {
        Ok(opened) => {
            let notices = opened.host.notices();
            let tools = counted(opened.host.catalog().entries().len(), "tool");
            let catalog = opened.host.catalog();
            let missing: Vec<String> = catalog
                .unavailable()
                .iter()
                .map(ToString::to_string)
                .collect();
            let mut findings = server_findings(settings, &opened.host.sources());
            let all_declined = catalog.unavailable().iter().all(SourceProblem::is_declined);
            findings.push(match (missing.as_slice(), all_declined) {
                ([], _) => DoctorFinding::good("tools", tools),
                (_, true) => {
                    DoctorFinding::good("tools", format!("{tools}; {}", missing.join("\n")))
                }
                (_, false) => {
                    DoctorFinding::bad("tools", format!("{tools}; {}", missing.join("\n")))
                }
            });
            let others = notices
                .iter()
                .filter(|notice| !matches!(notice, CatalogNotice::Unavailable(_)));
            findings.extend(others.map(|notice| DoctorFinding::odd("notice", notice.to_string())));
            opened.host.shutdown(Duration::ZERO).await;
            findings
        }
        Err(error) => vec![DoctorFinding::bad("tools", error.to_string())],
    }
}

/// The MCP servers of a configuration: the state of each, and its pins.
fn server_findings(settings: &CommandSettings, reports: &[SourceReport]) -> Vec<DoctorFinding> {
    let mcp = &settings.config.mcp;
    let pins = DataDir::at(&settings.place.data_dir)
        .ok()
        .map(|data_dir| PinFiles::new(&data_dir));
    let named = mcp.servers.iter().map(|server| {
        let reach = match &server.reach {
            McpReach::Program { .. } => "program",
            McpReach::Http { .. } => "HTTP",
        };
        (&server.name, reach)
    });
    let unusable = mcp
        .unusable
        .iter()
        .map(|server| (&server.name, "not usable"));
    let finding = |(name, reach): (&String, &str)| {
        let report = reports.iter().find(|report| report.name == *name);
        server_finding(name, reach, report, pins.as_ref())
    };
    named.chain(unusable).map(finding).collect()
}

fn server_finding(
    name: &str,
    reach: &str,
    report: Option<&SourceReport>,
    pins: Option<&PinFiles>,
) -> DoctorFinding {
    let pinned = match pins.map(|pins| pins.load(name)) {
        None | Some(Ok(None)) => "nothing accepted yet".to_owned(),
        Some(Ok(Some(_))) => "definitions pinned".to_owned(),
        Some(Err(error)) => return DoctorFinding::bad(MCP_SERVER, format!("{name}: {error}")),
    };
    let Some(SourceReport { tools, health, .. }) = report else {
        return DoctorFinding::odd(
            MCP_SERVER,
            format!("{name} ({reach}): missing in the running host; it was added later"),
        );
    };
    let mut text = format!(
        "{name} ({reach}): {}, {}, {pinned}",
        health.state.as_str(),
        counted(*tools, "tool")
    );
    if health.restarts > 0 {
        text.push_str(&format!(", restarted {} times", health.restarts));
    }
    if let Some(message) = &health.message {
        text.push_str(&format!("\n{message}"));
    }
    if !health.quarantined.is_empty() {
        let held = match health.quarantined.len() {
            1 => "1 definition is".to_owned(),
            count => format!("{count} definitions are"),
        };
        text.push_str(&format!(
            "\n{held} held back\nhint: toolpost tools accept {name}"
        ));
    }
    match health.state {
        SourceState::Failing => DoctorFinding::bad(MCP_SERVER, text),
        SourceState::Stopped | SourceState::Starting => DoctorFinding::odd(MCP_SERVER, text),
        SourceState::Ready if health.message.is_some() => DoctorFinding::odd(MCP_SERVER, text),
        SourceState::Ready | SourceState::Idle if health.quarantined.is_empty() => {
            DoctorFinding::good(MCP_SERVER, text)
        }
        SourceState::Ready | SourceState::Idle => DoctorFinding::odd(MCP_SERVER, text),
    }
}
