//! `toolpost tools accept`: shows tool definitions that are held back, and accepts them after the operator has read
//! them.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use toolpost_core::SourceReport;
use toolpost_model::QuarantinedDefinition;

use crate::{
    cli::{PolicyArgs, SettingsArgs},
    environment::{ControllingTerminal, TerminalInput},
    exit::{CliExit, UsageError},
    reach::{self, HostPurpose, ReachedHost},
    terminal::{BOLD, CYAN, GREEN, RED, say, spelled_out, styled},
};

#[derive(Args)]
pub(crate) struct AcceptArgs {
    /// A server, or the id of one tool; by default all held-back definitions are shown
    target: Option<String>,
    /// Accept all held-back definitions
    #[arg(long, conflicts_with = "target")]
    all: bool,
    /// Only show the held-back definitions and their differences
    #[arg(long)]
    show: bool,
    /// Accept without a question
    #[arg(long, short)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// A definition that is held back, and its source.
struct BlockedDefinition {
    source: String,
    what: QuarantinedDefinition,
}

pub(super) async fn run(arguments: AcceptArgs) -> anyhow::Result<CliExit> {
    let shows = arguments.show || (arguments.target.is_none() && !arguments.all);
    let purpose = if shows {
        HostPurpose::LookAtServers
    } else {
        HostPurpose::Accept
    };
    let mut host = reach::reach(&arguments.settings, &arguments.policy, purpose).await?;
    let done = accept(&mut host, &arguments, shows).await;
    host.close().await;
    done
}

async fn accept(
    host: &mut ReachedHost,
    arguments: &AcceptArgs,
    shows: bool,
) -> anyhow::Result<CliExit> {
    let kept = select_definitions(host.sources().await?, arguments.target.as_deref())?;
    if shows || kept.is_empty() {
        show(&kept, arguments.json)?;
        return Ok(CliExit::Done);
    }
    if !arguments.yes {
        show(&kept, false)?;
        if !agreed(kept.len()).await? {
            anstream::eprintln!("no definition was accepted");
            return Ok(CliExit::Failed);
        }
    }
    let mut accepted = Vec::new();
    for BlockedDefinition { source, what } in &kept {
        host.accept(source, what).await?;
        accepted.push(&what.tool);
    }
    if arguments.json {
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "accepted": accepted }))?
        );
    } else {
        accepted
            .iter()
            .for_each(|tool| say!("{tool} can be used now"));
    }
    Ok(CliExit::Done)
}

fn select_definitions(
    sources: Vec<SourceReport>,
    target: Option<&str>,
) -> anyhow::Result<Vec<BlockedDefinition>> {
    let known = target.is_some_and(|target| sources.iter().any(|source| source.name == target));
    let mut kept = Vec::new();
    for report in sources {
        let whole = target.is_none_or(|target| target == report.name);
        let wanted = report
            .health
            .quarantined
            .into_iter()
            .filter(|what| whole || target.is_some_and(|target| target == what.tool.as_str()));
        kept.extend(wanted.map(|what| BlockedDefinition {
            source: report.name.clone(),
            what,
        }));
    }
    match target {
        Some(target) if kept.is_empty() && !known => {
            let hint = "hint: list the held-back definitions with `toolpost tools accept`";
            bail!(
                "`{}` is neither a source nor a held-back tool\n{hint}",
                spelled_out(target)
            )
        }
        Some(_) | None => Ok(kept),
    }
}

fn show(kept: &[BlockedDefinition], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let row = |BlockedDefinition { source, what }: &BlockedDefinition| json!({ "source": source, "tool": what.tool, "change": what.change, "diff": what.diff, "digest": what.digest });
        let rows: Vec<Value> = kept.iter().map(row).collect();
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "quarantined": rows }))?
        );
        return Ok(());
    }
    if kept.is_empty() {
        say!("no definitions are held back");
    }
    for BlockedDefinition { what, .. } in kept {
        say!(
            "{} {}",
            styled(BOLD, &what.tool),
            styled(CYAN, format!("({})", spelled_out(&what.change)))
        );
        for line in what.diff.lines() {
            let shown = format!("  {}", spelled_out(line));
            match line.chars().next() {
                Some('+') => say!("{}", styled(GREEN, shown)),
                Some('-') => say!("{}", styled(RED, shown)),
                Some(_) | None => say!("{shown}"),
            }
        }
    }
    Ok(())
}

async fn agreed(count: usize) -> anyhow::Result<bool> {
    let Some(mut tty) = ControllingTerminal::open() else {
        let message =
            "there is no terminal to confirm on\nhint: check with `--show`, then pass `--yes`";
        return Err(UsageError(message.into()).into());
    };
    let definitions = if count == 1 {
        "this definition".to_owned()
    } else {
        format!("these {count} definitions")
    };
    tty.discard_typed_input();
    tty.write_text(&format!("accept {definitions}? [y/N] "))
        .await?;
    match tty.read_line().await? {
        TerminalInput::Line(line) => Ok(matches!(
            line.trim().to_ascii_lowercase().as_str(),
            "y" | "yes"
        )),
        TerminalInput::Nothing => Ok(false),
    }
}
