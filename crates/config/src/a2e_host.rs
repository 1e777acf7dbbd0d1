//! The YAML file of an A2E host, as people have it for the hosts they run today, in this host's terms.
//!
//! What fits becomes a [`ConfigFile`], goes through the same checks as `toolpost.yaml` and can be laid under
//! other files. What does not fit is beside it: the token, which our own file never holds in plain, how
//! agents come in, and the plugins.
//!
//! Other hosts ignore what they do not know without a word, so files with dead keys are about. Such a key is
//! no error here, or those files could not be used; but each is named in a notice.

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

/// The keys that mean something to an A2E host, for suggestions.
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

/// How agents come in.
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
    /// How agents come in.
    pub face: A2eFace,
    /// The token that agents must give in their handshake.
    pub token: Option<Secret>,
    /// The enabled plugins, in the order of the file.
    pub plugins: Vec<A2ePlugin>,
    /// What the plugins leave of the host's own tools.
    pub native_tools: NativeToolsChoice,
    /// What has no meaning here, or not the one its place suggests, in the order of the file.
    pub notices: Vec<ConfigNotice>,
}

impl A2eHostFile {
    /// Translates a file's text. `name` is what places in messages begin with.
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
        // Every file that was made from the SDK's has these, and no released host does anything with them.
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

/// `global_limits`, of which `max_workers` is the one that other hosts are documented to have.
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
    let why = "this host has no such limit; the ones it has stand in `limits` of `toolpost.yaml`";
    reading.ignore_the_rest(&limits, why);
}
