//! The MCP servers of a configuration: how each is doing, and what is pinned of it.

use toolpost_config::McpReach;
use toolpost_core::{PinStore as _, SourceReport};
use toolpost_model::SourceState;
use toolpost_store::{DataDir, PinFiles};

use super::DoctorFinding;
use crate::settings::CommandSettings;

pub(super) fn findings(settings: &CommandSettings, reports: &[SourceReport]) -> Vec<DoctorFinding> {
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
        finding(name, reach, report, pins.as_ref())
    };
    named.chain(unusable).map(finding).collect()
}

fn finding(
    name: &str,
    reach: &str,
    report: Option<&SourceReport>,
    pins: Option<&PinFiles>,
) -> DoctorFinding {
    let pinned = match pins.map(|pins| pins.load(name)) {
        None | Some(Ok(None)) => "nothing accepted yet".to_owned(),
        Some(Ok(Some(_))) => "definitions pinned".to_owned(),
        Some(Err(error)) => return DoctorFinding::bad(WHAT, format!("{name}: {error}")),
    };
    let Some(SourceReport { tools, health, .. }) = report else {
        return DoctorFinding::odd(
            WHAT,
            format!("{name} ({reach}): the running host does not know it; it was added since"),
        );
    };
    let mut text = format!(
        "{name} ({reach}): {}, {tools} tools, {pinned}",
        health.state.as_str()
    );
    if health.restarts > 0 {
        text.push_str(&format!(", started again {} times", health.restarts));
    }
    if let Some(message) = &health.message {
        text.push_str(&format!("\n{message}"));
    }
    if !health.quarantined.is_empty() {
        let count = health.quarantined.len();
        text.push_str(&format!(
            "\n{count} definitions are kept back\nhint: toolpost tools accept {name}"
        ));
    }
    match health.state {
        SourceState::Failing => DoctorFinding::bad(WHAT, text),
        SourceState::Stopped | SourceState::Starting => DoctorFinding::odd(WHAT, text),
        SourceState::Ready if health.message.is_some() => DoctorFinding::odd(WHAT, text),
        SourceState::Ready | SourceState::Idle if health.quarantined.is_empty() => {
            DoctorFinding::good(WHAT, text)
        }
        SourceState::Ready | SourceState::Idle => DoctorFinding::odd(WHAT, text),
    }
}

const WHAT: &str = "mcp server";
