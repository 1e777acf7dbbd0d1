//! One binary; each file holds the checks of one area.
#![expect(
    clippy::unwrap_used,
    reason = "a check that panics has failed, which is what it is for"
)]

mod a2e_host;
mod authorities;
mod commands;
mod errors;
mod file;
mod hardening;
mod hooks;
mod layers;
mod mcp;
mod mcp_file;
mod native;
mod plans;
mod reference;
mod values;

use toolpost_model::{Declaration, Provenance};

/// A tool as the catalog hands it to the settings.
fn tool(id: &str, provenance: Provenance) -> Declaration {
    let mut declaration = Declaration::new(id.parse().unwrap(), "");
    declaration.provenance = provenance;
    declaration
}

/// A tool of the host's own.
fn native(id: &str) -> Declaration {
    tool(id, Provenance::CompiledIn)
}
