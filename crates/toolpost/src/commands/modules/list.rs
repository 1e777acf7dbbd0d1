//! `toolpost modules list`: each module, its source, its pin, and whether it is here.

use std::sync::Arc;

use serde::Serialize;
use toolpost_amplifier::{LoadFailure, ModuleKind, ModuleTransport, PlannedModule};
use toolpost_modules::{FetchPin, FetchedModule, Fetcher, resolve};

use super::WhichArgs;
use crate::{
    exit::CliExit,
    terminal::{DIM, GREEN, RED, YELLOW, printable, say, styled},
};

/// A module in the list.
#[derive(Serialize)]
pub(super) struct ModuleListRow {
    id: String,
    kind: ModuleKind,
    source: Option<String>,
    /// Its place in a plan.
    place: String,
    state: ModuleFetchState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<FetchPin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ModuleFetchState {
    /// In the cache, unchanged.
    Fetched,
    /// A path, used in place.
    InPlace,
    /// A package, which the environment installs.
    Package,
    /// A starting host would fetch it.
    NotFetched,
    /// It cannot be used.
    Broken,
}

impl ModuleListRow {
    pub(super) fn of(
        module: &PlannedModule,
        found: Result<Option<FetchedModule>, LoadFailure>,
    ) -> Self {
        let mut line = Self {
            id: module.id.to_string(),
            kind: module.kind,
            source: module.source.as_ref().map(ToString::to_string),
            place: module.place.clone(),
            state: ModuleFetchState::NotFetched,
            pin: None,
            transport: None,
            root: None,
            problem: None,
        };
        let fetched = match found {
            Ok(Some(fetched)) => fetched,
            Ok(None) => return line,
            Err(failure) => {
                line.state = ModuleFetchState::Broken;
                line.problem = Some(failure.message);
                return line;
            }
        };
        line.state = match &fetched.pin {
            FetchPin::Git { .. } | FetchPin::Archive { .. } => ModuleFetchState::Fetched,
            FetchPin::Path => ModuleFetchState::InPlace,
            FetchPin::Package => ModuleFetchState::Package,
        };
        match fetched.root.as_deref().map(|root| resolve(module, root)) {
            None => line.transport = Some("python"),
            Some(Ok(resolved)) => {
                line.transport = Some(word(&resolved.transport));
                line.root = Some(resolved.root.display().to_string());
            }
            Some(Err(failure)) => {
                line.state = ModuleFetchState::Broken;
                line.problem = Some(failure.message);
            }
        }
        line.pin = Some(fetched.pin);
        line
    }

    pub(super) fn is_broken(&self) -> bool {
        self.state == ModuleFetchState::Broken
    }

    pub(super) fn print(&self) {
        let state = match self.state {
            ModuleFetchState::Fetched => styled(GREEN, "fetched"),
            ModuleFetchState::InPlace => styled(GREEN, "in place"),
            ModuleFetchState::Package => styled(GREEN, "package"),
            ModuleFetchState::NotFetched => styled(YELLOW, "not fetched"),
            ModuleFetchState::Broken => styled(RED, "broken"),
        };
        let source = self
            .source
            .as_deref()
            .map_or("installed".to_owned(), printable);
        let pin = match &self.pin {
            Some(FetchPin::Git { commit, .. }) => {
                format!(" at {}", &commit[..commit.len().min(12)])
            }
            Some(FetchPin::Archive { archive, .. }) => {
                format!(" with digest {}", &archive[..archive.len().min(12)])
            }
            Some(FetchPin::Path | FetchPin::Package) | None => String::new(),
        };
        let transport = self
            .transport
            .map(|word| format!(", {word}"))
            .unwrap_or_default();
        say!(
            "{}  {state}{transport}  {}",
            printable(&self.id),
            styled(DIM, format!("{source}{pin}"))
        );
        for line in self.problem.iter().flat_map(|problem| problem.lines()) {
            say!("  {}", printable(line));
        }
    }
}

fn word(transport: &ModuleTransport) -> &'static str {
    match transport {
        ModuleTransport::Python => "python",
        ModuleTransport::Wasm { .. } => "wasm",
        ModuleTransport::Grpc { .. } => "grpc",
        ModuleTransport::Rust { .. } => "rust",
    }
}

pub(super) async fn run(arguments: &WhichArgs) -> anyhow::Result<CliExit> {
    let settings = arguments.plans.settings()?;
    let modules = arguments.modules(&settings)?;
    let fetcher = Fetcher::new(Arc::new(settings.supply()?));
    let mut lines = Vec::new();
    for module in modules {
        lines.push(ModuleListRow::of(module, fetcher.look(module).await));
    }
    let broken = lines.iter().any(ModuleListRow::is_broken);
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        lines.iter().for_each(ModuleListRow::print);
        for note in &settings.plans.notes {
            say!("{}", styled(DIM, printable(&note.to_string())));
        }
        if lines.is_empty() {
            anstream::eprintln!(
                "no plan names a module; `--mount-plan FILE` or `include:` names a plan"
            );
        }
    }
    Ok(if broken {
        CliExit::Failed
    } else {
        CliExit::Done
    })
}
