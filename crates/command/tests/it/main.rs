//! What the crate promises, as tables of commands and what is said about them.

mod bounds;
mod directories;
mod environment;
mod found;
mod hidden;
mod launched;
mod network;
mod patterns;
mod properties;
mod reads;
mod suggested;
mod wrapped;

use toolpost_command::{Analysis, RedirectAccess, SimpleCommand, analyze};

/// An analysis in one line: commands as their words, `…` behind those that are opaque and `~` behind those that hide
/// what they start, then files that are read and written, then reasons.
fn summary(analysis: &Analysis) -> String {
    let mut parts: Vec<String> = analysis.commands.iter().map(command_summary).collect();
    for redirect in &analysis.redirects {
        let sign = match redirect.access {
            RedirectAccess::Read => '<',
            RedirectAccess::Write => '>',
        };
        parts.push(format!(
            "{sign}{}",
            redirect.target.as_deref().unwrap_or("?")
        ));
    }
    let mut reasons: Vec<String> = analysis
        .opaque
        .iter()
        .map(|opaque| format!("!{:?}", opaque.reason))
        .collect();
    reasons.dedup();
    parts.extend(reasons);
    parts.join("; ")
}

fn command_summary(command: &SimpleCommand) -> String {
    let assignment = |name: &str, value: Option<&str>| format!("{name}={} ", value.unwrap_or("?"));
    let assignments = command.assignments.iter();
    let mut line: String = assignments
        .map(|set| assignment(&set.name, set.value.as_deref()))
        .collect();
    line.push_str(&command.words.join(" "));
    if command.opaque {
        line.push_str(if line.is_empty() { "…" } else { " …" });
    }
    if command.hides.is_some() {
        line.push_str(" ~");
    }
    line
}

/// Checks all rows and names every one that fails, not only the first.
#[track_caller]
fn check_found(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, expected)| (text, expected, summary(&analyze(text))))
        .filter(|(_, expected, found)| found != *expected)
        .map(|(text, expected, found)| {
            format!("{text:?}\n  expected {expected}\n  found    {found}")
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} rows\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}
