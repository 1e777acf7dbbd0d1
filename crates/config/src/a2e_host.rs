//! The YAML file of an A2E host, as written for today's hosts, translated to this host's configuration.
//!
//! The supported keys become a [`ConfigFile`], which passes the same checks as `toolpost.yaml` and can be laid under
//! other files. The rest is beside it: the token, which `toolpost.yaml` never holds in plain text, the transport, and
//! the plugins.
//!
//! Other hosts silently ignore unknown keys, so many files have dead keys. Such a key is no error here, or those files
//! could not be used; but each one is reported in a notice.

mod audit;
mod plugins;
mod server;
mod transport;

use toolpost_model::Secret;

use crate::{
    ConfigErrors, ConfigFile, ConfigNotice, NativeToolsChoice, ParsedConfig,
    check::{a2e::host_id_complaint, limits::check_count},
    error::ConfigSourceText,
    yaml,
};

pub use plugins::{A2ePlugin, A2ePluginClass};

use crate::reading::{ConfigTable, ConfigTreeReader};

/// The keys of an A2E host's file, for suggestions.
const KEYS: [&str; 10] = [
    "host_id",
    "server",
    "auth_token",
    "transport",
    "audit",
    "plugins",
    "snapshot_store",
    "snapshot_mode",
    "audit_log_path",
    "global_limits",
];

/// The transport for agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum A2eFace {
    /// Over HTTP, with a stream of events back.
    #[default]
    Http,
    /// Over standard input and output of a process that the agent starts.
    Stdio,
}

/// An A2E host's file, translated.
#[derive(Clone, Debug)]
pub struct A2eHostFile {
    /// The settings that `toolpost.yaml` has too, checked, for use as a trusted layer.
    pub parsed: ParsedConfig,
    /// The transport for agents.
    pub face: A2eFace,
    /// The token for the agents' handshake.
    pub token: Option<Secret>,
    /// The enabled plugins, in the order of the file.
    pub plugins: Vec<A2ePlugin>,
    /// The host's own tools that `plugins` leaves in place.
    pub native_tools: NativeToolsChoice,
    /// Keys that have no meaning here, or another one than their place suggests, in the order of the file.
    pub notices: Vec<ConfigNotice>,
}

impl A2eHostFile {
    /// Translates the text of a file. `name` is the file's name in messages.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigErrors> {
        let source = ConfigSourceText { name, text };
        let mut reading = ConfigTreeReader::new(source);
        let mut root = reading.root(yaml::read_tree(source)?);
        let mut file = ConfigFile::default();
        file.a2e.host_id = reading.text(&mut root, "host_id").filter(|id| {
            let complaint = host_id_complaint("host_id", id);
            reading.complain_if(complaint)
        });
        let token = server::read(&mut root, &mut file.http, &mut reading);
        let face = transport::read(&mut root, &mut reading);
        file.a2e.audit = audit::read(&mut root, &mut reading);
        let (plugins, native_tools) = plugins::read(&mut root, &mut reading);
        limits(&mut root, &mut file, &mut reading);
        // Every file made with the SDK has these keys, and no released host uses them.
        for key in ["snapshot_store", "snapshot_mode"] {
            root.take_entry(key);
        }
        reading.name_the_rest(&root, "A2E", &KEYS);
        let notices = reading.finish()?;
        let parsed = ParsedConfig::new(file, source, Vec::new())?;
        Ok(Self {
            parsed,
            face,
            token,
            plugins,
            native_tools,
            notices,
        })
    }
}

/// `global_limits`; only `max_workers` is documented by other hosts.
fn limits(root: &mut ConfigTable, file: &mut ConfigFile, reading: &mut ConfigTreeReader<'_>) {
    let Some(mut limits) = reading.table(root, "global_limits") else {
        return;
    };
    let workers = reading.whole(&mut limits, "max_workers");
    check_count(
        "global_limits.max_workers",
        workers,
        &mut reading.complaints,
    );
    file.limits.session_concurrency = workers;
    let why = "this host has no such limit; its limits are under `limits` in `toolpost.yaml`";
    reading.ignore_the_rest(&limits, why);
}
