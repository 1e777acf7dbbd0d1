//! `toolpost doctor`: is everything in place?

mod servers;

use std::time::Duration;

use clap::Args;
use serde_json::json;
use toolpost_config::{HookConfig, Standing};
use toolpost_core::{CatalogNotice, ToolFilter};
use toolpost_model::{SandboxTier, SourceProblem};
use toolpost_sandbox::Launcher;
use toolpost_serve::{HostParts, check_places, open_host};
use toolpost_store::{DataDir, DataDirError, JournalReader};

use super::tools;
use crate::{
    authorities,
    cli::{ModuleArgs, PlaceArgs, PolicyArgs},
    environment,
    exit::Exit,
    hooks,
    reach::{self, Reached},
    settings::{self, Settings},
    terminal::{GREEN, RED, YELLOW, clean, say, styled},
};

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    modules: ModuleArgs,
}

enum State {
    Good,
    Odd,
    Bad,
}

struct Finding {
    state: State,
    what: &'static str,
    text: String,
}

impl Finding {
    /// It may repeat what stands in a configuration.
    fn told(state: State, what: &'static str, text: &str) -> Self {
        Self {
            state,
            what,
            text: clean(text).into_owned(),
        }
    }

    fn good(what: &'static str, text: impl Into<String>) -> Self {
        Self::told(State::Good, what, &text.into())
    }

    fn odd(what: &'static str, text: impl Into<String>) -> Self {
        Self::told(State::Odd, what, &text.into())
    }

    fn bad(what: &'static str, text: impl Into<String>) -> Self {
        Self::told(State::Bad, what, &text.into())
    }
}

pub(crate) async fn run(arguments: DoctorArgs) -> anyhow::Result<Exit> {
    let policy = PolicyArgs {
        modules: arguments.modules,
        ..PolicyArgs::default()
    };
    let found = settings::with_bundles(|| settings::resolve(&arguments.place, &policy)).await;
    let findings = match found {
        Ok(settings) => examine(&settings).await,
        Err(error) => vec![Finding::bad("configuration", format!("{error:#}"))],
    };
    let ill = findings
        .iter()
        .any(|finding| matches!(finding.state, State::Bad));
    if arguments.json {
        let word = |state: &State| match state {
            State::Good => "good",
            State::Odd => "odd",
            State::Bad => "bad",
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
                State::Good => styled(GREEN, "good"),
                State::Odd => styled(YELLOW, "odd "),
                State::Bad => styled(RED, "bad "),
            };
            say!("{mark}  {:<14} {}", finding.what, finding.text);
        }
    }
    Ok(if ill { Exit::Failed } else { Exit::Done })
}

async fn examine(settings: &Settings) -> Vec<Finding> {
    let place = &settings.place;
    let mut findings = vec![Finding::good(
        "workspace",
        place.workspace.display().to_string(),
    )];
    findings.extend(configuration(settings));
    findings.extend(
        settings
            .notices
            .iter()
            .map(|notice| Finding::odd("configuration", notice.to_string())),
    );
    findings.push(data_dir(settings));
    let answer = reach::running(&place.data_dir).await;
    let running = matches!(&answer, Ok(Some(_)));
    findings.push(match (running, DataDir::running_pid(&place.data_dir)) {
        (true, Some(pid)) => Finding::good("host", format!("running, process {pid}")),
        (true, None) => Finding::good("host", "running"),
        (false, Some(pid)) => Finding::bad(
            "host",
            format!("process {pid} holds the data directory but does not answer"),
        ),
        (false, None) => Finding::good("host", "not running; `toolpost serve` starts it"),
    });
    if let Ok(Some((_, facts))) = &answer {
        let loaded = &facts.configuration;
        findings.extend(loaded.problem.as_ref().map(|problem| {
            Finding::bad(
                "host",
                format!("it cannot take up the configuration and keeps the one before\n{problem}"),
            )
        }));
        if !loaded.after_restart.is_empty() {
            let waiting = loaded.after_restart.join(", ");
            findings.push(Finding::odd(
                "host",
                format!("changed since it started, and not taken up: {waiting}"),
            ));
        }
    }
    findings.push(journal(settings));
    findings.push(sandbox(settings));
    findings.extend(settings.config.hooks.iter().map(hook));
    let authorities = settings.config.authorities.iter();
    findings.extend(authorities.map(|one| Finding::good("authority", authorities::described(one))));
    findings.extend(match answer {
        Ok(Some((client, _))) => {
            let mut host = Reached::Running(client);
            let servers = host
                .sources()
                .await
                .map(|reports| servers::findings(settings, &reports));
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

/// What the running host offers, what of it is not there, and what its operator should know about names and rules.
async fn tools_of(mut host: Reached) -> Vec<Finding> {
    let filter = ToolFilter {
        include_deferred: true,
        ..ToolFilter::default()
    };
    let listed = match host.list(&filter, "toolpost", false).await {
        Ok(listed) => listed,
        Err(error) => return vec![Finding::bad("tools", format!("{error:#}"))],
    };
    let items = |key: &str| {
        listed[key]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let tools = items("tools").len();
    let unavailable = items("unavailable");
    let missing: Vec<String> = unavailable.iter().map(tools::unavailable_line).collect();
    let found = match (
        missing.as_slice(),
        unavailable.iter().all(tools::is_declined),
    ) {
        ([], _) => Finding::good("tools", format!("{tools} tools")),
        (_, true) => Finding::good("tools", format!("{tools} tools; {}", missing.join("\n"))),
        (_, false) => Finding::bad("tools", format!("{tools} tools; {}", missing.join("\n"))),
    };
    let notices = items("notices")
        .iter()
        .filter_map(serde_json::Value::as_str);
    let notices = notices.map(|notice| Finding::odd("notice", notice.to_owned()));
    std::iter::once(found).chain(notices).collect()
}

/// Every file that counts, and every one that should and cannot.
fn configuration(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &settings.files {
        let (path, origin) = (file.path.display(), file.origin.as_str());
        findings.push(match (file.standing, &file.broken) {
            (None, _) => continue,
            (_, Some(broken)) => Finding::bad(
                "configuration",
                format!("{}\n{}", broken.note, broken.errors),
            ),
            (Some(Standing::Untrusted), None) => Finding::odd(
                "configuration",
                format!("`{path}` is not trusted, so it may only restrict\nhint: toolpost trust"),
            ),
            (Some(Standing::Trusted | Standing::LastGood), None) => {
                Finding::good("configuration", format!("`{path}` is trusted ({origin})"))
            }
        });
    }
    if findings.is_empty() {
        let text = "defaults; no `toolpost.yaml` in the workspace, none of yours, and no policy";
        findings.push(Finding::good("configuration", text));
    }
    findings
}

fn data_dir(settings: &Settings) -> Finding {
    let path = &settings.place.data_dir;
    if let Err(error) = check_places(&settings.config) {
        return Finding::bad("record", error.to_string());
    }
    match DataDir::at(path) {
        // Opening writes, so a full or read-only disk shows here and not at the first call.
        Ok(_) => match DataDir::open(path) {
            Ok(_) | Err(DataDirError::InUse { .. }) => {
                Finding::good("record", path.display().to_string())
            }
            Err(error) => Finding::bad("record", format!("{:#}", anyhow::Error::from(error))),
        },
        Err(DataDirError::Missing { .. }) => {
            let home = environment::home_of(path);
            Finding::good(
                "record",
                format!("`{}` will be made in `{}`", path.display(), home.display()),
            )
        }
        Err(error) => Finding::bad("record", error.to_string()),
    }
}

fn journal(settings: &Settings) -> Finding {
    let Ok(data_dir) = DataDir::at(&settings.place.data_dir) else {
        return Finding::good("journal", "nothing recorded yet");
    };
    let path = data_dir.journal_path();
    if !path.exists() {
        return Finding::good("journal", "nothing recorded yet");
    }
    let checked = JournalReader::open(&path)
        .map_err(anyhow::Error::from)
        .and_then(|reader| Ok(reader.verify(|_, _| ())?));
    match checked {
        Ok(report) if report.is_clean() => Finding::good(
            "journal",
            format!(
                "{} records of {} calls, chain unbroken",
                report.records, report.invocations
            ),
        ),
        Ok(report) => Finding::bad(
            "journal",
            format!(
                "{} problems\nhint: toolpost journal verify",
                report.problems.len()
            ),
        ),
        Err(error) => Finding::bad("journal", format!("{error:#}")),
    }
}

/// What this machine can confine, found by trying it now.
fn sandbox(settings: &Settings) -> Finding {
    let Some(program) = environment::this_program() else {
        return Finding::bad(
            "sandbox",
            "this program cannot find itself, so no process can be confined",
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
            "\ndid not hold on tier {:?}: {} ({})",
            check.tier, check.name, check.detail
        ));
    }
    match test.tier {
        SandboxTier::A => Finding::good("sandbox", text),
        _ if settings.config.sandbox.require => Finding::bad(
            "sandbox",
            format!("{text}\nhint: `sandbox.require` is set, so no process will be started"),
        ),
        SandboxTier::B => Finding::odd("sandbox", text),
        SandboxTier::C | SandboxTier::N => Finding::odd(
            "sandbox",
            format!("{text}\nhint: commands ask, since files are not confined"),
        ),
    }
}

/// A hook of the configuration. Whether its files are there, the dry start tells.
fn hook(hook: &HookConfig) -> Finding {
    Finding::good("hook", hooks::described(hook))
}

/// Opens everything a host opens, on a journal in memory, and counts the tools.
async fn dry_start(settings: &Settings) -> Vec<Finding> {
    let (config, native) = settings.to_look_at();
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
            let tools = opened.host.catalog().entries().len();
            let catalog = opened.host.catalog();
            let missing: Vec<String> = catalog
                .unavailable()
                .iter()
                .map(ToString::to_string)
                .collect();
            let mut findings = servers::findings(settings, &opened.host.sources());
            let all_declined = catalog.unavailable().iter().all(SourceProblem::is_declined);
            findings.push(match (missing.as_slice(), all_declined) {
                ([], _) => Finding::good("tools", format!("{tools} tools")),
                (_, true) => {
                    Finding::good("tools", format!("{tools} tools; {}", missing.join("\n")))
                }
                (_, false) => {
                    Finding::bad("tools", format!("{tools} tools; {}", missing.join("\n")))
                }
            });
            let others = notices
                .iter()
                .filter(|notice| !matches!(notice, CatalogNotice::Unavailable(_)));
            findings.extend(others.map(|notice| Finding::odd("notice", notice.to_string())));
            opened.host.shutdown(Duration::ZERO).await;
            findings
        }
        Err(error) => vec![Finding::bad("tools", error.to_string())],
    }
}
