//! The type and transport of a module, from its `amplifier.toml` or from the names in its folder.
//!
//! This module reads no files: its callers pass in the text and the names. `toolpost-modules` does so for modules of a
//! plan, and `toolpost validate` for a module in development.

mod component;
mod folder;

use std::fmt;

use serde::Deserialize;

pub use self::{
    component::{ComponentError, component_type},
    folder::{FolderError, FolderNames, FoundIn, detect},
};

/// The manifest's name in a module's folder.
pub const MANIFEST_FILE: &str = "amplifier.toml";

/// The component's name if a manifest has none.
const DEFAULT_ARTIFACT: &str = "module.wasm";

/// The type of a module in Amplifier. Only tools and hooks are of use to a host of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleType {
    /// Drives the conversation with a model.
    Orchestrator,
    /// Calls a model.
    Provider,
    /// Brings tools.
    Tool,
    /// Keeps the conversation.
    Context,
    /// Observes and decides about events.
    Hook,
    /// Finds other modules.
    Resolver,
    /// Asks people.
    Approval,
}

impl ModuleType {
    /// Every type.
    pub const ALL: [Self; 7] = [
        Self::Orchestrator,
        Self::Provider,
        Self::Tool,
        Self::Context,
        Self::Hook,
        Self::Resolver,
        Self::Approval,
    ];

    /// The word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Provider => "provider",
            Self::Tool => "tool",
            Self::Context => "context",
            Self::Hook => "hook",
            Self::Resolver => "resolver",
            Self::Approval => "approval",
        }
    }
}

impl fmt::Display for ModuleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A valid manifest. Its caller checks whether the named files exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleManifest {
    /// The type of the module.
    pub module_type: ModuleType,
    /// Its transport.
    pub transport: DeclaredTransport,
    /// Oddities of the manifest, for operators.
    pub notes: Vec<String>,
}

/// The transport in a manifest. The names in it were not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredTransport {
    /// A Python package.
    Python {
        /// The word in the manifest, if it is not a known transport. Amplifier treats such a module as a Python
        /// package, and so does this host if there is one.
        unknown_word: Option<String>,
    },
    /// A WebAssembly component.
    Wasm {
        /// The file's name in the folder.
        artifact: String,
        /// The digest that its bytes must have, in lower-case hex.
        sha256: Option<String>,
    },
    /// A running service.
    Grpc {
        /// Its endpoint, as written.
        endpoint: String,
    },
    /// A program that serves gRPC once it is started.
    Rust {
        /// The crate's name, and its binary's.
        name: String,
    },
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleManifestError {
    /// It is not TOML, or a key has a value of the wrong kind.
    #[error("`amplifier.toml` cannot be read: {0}")]
    Toml(String),
    /// There is no table `[module]`.
    #[error("`amplifier.toml` has no `[module]` table")]
    NoModule,
    /// The table lacks the type of the module.
    #[error("`type` is missing in `[module]` of `amplifier.toml`")]
    NoType,
    /// An unknown type.
    #[error("`type = \"{0}\"` in `amplifier.toml` is not one of {words}", words = type_words())]
    UnknownType(String),
    /// The component's name leads out of the folder.
    #[error(
        "`artifact = \"{0}\"` in `amplifier.toml` must be the name of a file in the module's own folder: no `/`, no \
         `\\`, no leading dot"
    )]
    Artifact(String),
    /// The name of the crate is missing.
    #[error(
        "`crate` is missing in `[module]` of `amplifier.toml`; `transport = \"rust\"` requires it"
    )]
    NoCrate,
    /// The name of the crate is invalid.
    #[error(
        "`crate = \"{0}\"` in `amplifier.toml` is not the name of a crate: letters, digits, `-` and `_` are allowed"
    )]
    Crate(String),
    /// The digest is invalid.
    #[error("`sha256 = \"{0}\"` in `amplifier.toml` is not 64 digits of lower-case hex")]
    Sha256(String),
    /// The service's endpoint is missing.
    #[error(
        "`endpoint` is missing in `[grpc]` of `amplifier.toml`; `transport = \"grpc\"` requires it"
    )]
    NoEndpoint,
}

fn type_words() -> String {
    let words: Vec<String> = ModuleType::ALL
        .iter()
        .map(|word| format!("`{word}`"))
        .collect();
    words.join(", ")
}

/// The file as written. Unknown tables and keys are ignored.
#[derive(Deserialize)]
struct WrittenManifest {
    module: Option<WrittenModule>,
    grpc: Option<WrittenGrpc>,
}

#[derive(Deserialize)]
struct WrittenModule {
    transport: Option<String>,
    #[serde(rename = "type")]
    module_type: Option<String>,
    artifact: Option<String>,
    #[serde(rename = "crate")]
    crate_name: Option<String>,
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct WrittenGrpc {
    endpoint: Option<String>,
}

impl ModuleManifest {
    /// Reads the text of an `amplifier.toml`.
    pub fn read(text: &str) -> Result<Self, ModuleManifestError> {
        let written: WrittenManifest = toml::from_str(text)
            .map_err(|error| ModuleManifestError::Toml(error.to_string().trim().to_owned()))?;
        let module = written.module.ok_or(ModuleManifestError::NoModule)?;
        let word = module.module_type.ok_or(ModuleManifestError::NoType)?;
        let module_type = ModuleType::ALL
            .into_iter()
            .find(|known| known.as_str() == word)
            .ok_or(ModuleManifestError::UnknownType(word))?;
        let mut notes = Vec::new();
        let transport = match module.transport.as_deref() {
            None | Some("python") => DeclaredTransport::Python { unknown_word: None },
            Some("wasm") => DeclaredTransport::Wasm {
                artifact: artifact(module.artifact)?,
                sha256: module.sha256.clone().map(sha256).transpose()?,
            },
            Some("grpc") => DeclaredTransport::Grpc {
                endpoint: endpoint(written.grpc).ok_or(ModuleManifestError::NoEndpoint)?,
            },
            Some("rust") => DeclaredTransport::Rust {
                name: crate_name(module.crate_name)?,
            },
            Some(unknown) => {
                notes.push(format!(
                    "`transport = \"{}\"` in `{MANIFEST_FILE}` is not `python`, `wasm`, `grpc` or `rust`; the \
                     module is treated as a Python package",
                    shown(unknown)
                ));
                DeclaredTransport::Python {
                    unknown_word: Some(shown(unknown)),
                }
            }
        };
        if module.sha256.is_some() && !matches!(transport, DeclaredTransport::Wasm { .. }) {
            notes.push(format!(
                "`sha256` in `{MANIFEST_FILE}` is ignored: only `transport = \"wasm\"` uses it"
            ));
        }
        Ok(Self {
            module_type,
            transport,
            notes,
        })
    }
}

/// Text of the file, short enough for a message.
fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut shown: String = text.escape_debug().take(LONGEST).collect();
    if text.chars().count() > LONGEST {
        shown.push('…');
    }
    shown
}

fn artifact(written: Option<String>) -> Result<String, ModuleManifestError> {
    let name = written.unwrap_or_else(|| DEFAULT_ARTIFACT.to_owned());
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    if plain {
        Ok(name)
    } else {
        Err(ModuleManifestError::Artifact(shown(&name)))
    }
}

fn crate_name(written: Option<String>) -> Result<String, ModuleManifestError> {
    let name = written
        .filter(|name| !name.is_empty())
        .ok_or(ModuleManifestError::NoCrate)?;
    let simple = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    // A name that begins with `-` would be an option on a command line.
    if simple && !name.starts_with('-') {
        Ok(name)
    } else {
        Err(ModuleManifestError::Crate(shown(&name)))
    }
}

fn sha256(written: String) -> Result<String, ModuleManifestError> {
    let is_hex = written.len() == 64
        && written
            .bytes()
            .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex {
        Ok(written)
    } else {
        Err(ModuleManifestError::Sha256(shown(&written)))
    }
}

fn endpoint(written: Option<WrittenGrpc>) -> Option<String> {
    let endpoint = written?.endpoint?.trim().to_owned();
    Some(endpoint).filter(|endpoint| !endpoint.is_empty())
}

#[cfg(test)]
mod tests;
