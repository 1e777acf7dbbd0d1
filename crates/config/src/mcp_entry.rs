//! The checked settings of one MCP server, between an entry as written and the server as used.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use toolpost_model::{NATIVE_NAMESPACES, SandboxProfile};

use crate::{
    ConfigNotice, McpConfig, McpEra, McpNaming, McpNewTools, McpReach, McpServerConfig, McpShare,
    McpStart, McpText, McpUnusable,
};

/// The settings of a server in one or more files. Missing ones are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct McpSaid {
    pub(crate) reach: Option<McpReach>,
    /// Values that an entry without a reach adds to the existing one.
    pub(crate) env: BTreeMap<String, McpText>,
    pub(crate) headers: BTreeMap<String, McpText>,
    pub(crate) disabled: Option<bool>,
    pub(crate) required: Option<bool>,
    pub(crate) era: Option<McpEra>,
    pub(crate) naming: Option<McpNaming>,
    pub(crate) share: Option<McpShare>,
    pub(crate) start: Option<McpStart>,
    pub(crate) new_tools: Option<McpNewTools>,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Vec<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) idle_stop: Option<Duration>,
    pub(crate) max_message: Option<u64>,
    pub(crate) sandbox: Option<SandboxProfile>,
    pub(crate) pass: Vec<String>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) reads: Option<Vec<PathBuf>>,
    /// Files among the program and its arguments with paths relative to the configuration.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) place: String,
    /// Why a foreign file's entry cannot be used.
    pub(crate) unusable: Option<String>,
}

impl McpSaid {
    /// Lays the settings of a file over earlier ones. The reach of a server, with its variables and headers, is
    /// replaced as a whole: a token that was meant for one endpoint must not be sent to another.
    pub(crate) fn over(self, before: Self) -> Self {
        let unite = |mut earlier: Vec<PathBuf>, later: Vec<PathBuf>| {
            earlier.extend(later);
            earlier
        };
        let names = |mut earlier: Vec<String>, later: Vec<String>| {
            earlier.extend(later);
            earlier
        };
        let (reach, env, headers, files, unusable, place) =
            if self.reach.is_some() || self.unusable.is_some() {
                (
                    self.reach,
                    self.env,
                    self.headers,
                    self.files,
                    self.unusable,
                    self.place,
                )
            } else {
                let env = before.env.into_iter().chain(self.env).collect();
                let headers = before.headers.into_iter().chain(self.headers).collect();
                let place = if before.place.is_empty() {
                    self.place
                } else {
                    before.place
                };
                (
                    before.reach,
                    env,
                    headers,
                    before.files,
                    before.unusable,
                    place,
                )
            };
        Self {
            reach,
            env,
            headers,
            files,
            unusable,
            place,
            disabled: self.disabled.or(before.disabled),
            required: self.required.or(before.required),
            era: self.era.or(before.era),
            naming: self.naming.or(before.naming),
            share: self.share.or(before.share),
            start: self.start.or(before.start),
            new_tools: self.new_tools.or(before.new_tools),
            allow: self.allow.or(before.allow),
            deny: names(before.deny, self.deny),
            timeout: self.timeout.or(before.timeout),
            connect_timeout: self.connect_timeout.or(before.connect_timeout),
            idle_stop: self.idle_stop.or(before.idle_stop),
            max_message: self.max_message.or(before.max_message),
            sandbox: self.sandbox.or(before.sandbox),
            pass: names(before.pass, self.pass),
            readable: unite(before.readable, self.readable),
            writable: unite(before.writable, self.writable),
            reads: self.reads.or(before.reads),
        }
    }

    /// The same with relative paths resolved from a folder.
    pub(crate) fn beneath(mut self, folder: &Path) -> Self {
        let texts = |texts: BTreeMap<String, McpText>| {
            texts
                .into_iter()
                .map(|(name, text)| (name, text.beneath(folder)))
                .collect()
        };
        self.env = texts(self.env);
        self.headers = texts(self.headers);
        if let Some(McpReach::Program { folder: begins, .. }) = &mut self.reach {
            *begins = folder.join(&*begins);
        }
        let reads = self.reads.iter_mut().flatten();
        for path in self
            .readable
            .iter_mut()
            .chain(&mut self.writable)
            .chain(reads)
        {
            *path = folder.join(&*path);
        }
        self
    }
}

impl McpSaid {
    /// Applies the readable paths of an untrusted file: only paths that both files name stay. All its other settings
    /// are ignored.
    pub(crate) fn restrict_reads(&mut self, only: Vec<PathBuf>) {
        let Some(before) = self.reads.take() else {
            self.reads = Some(only);
            return;
        };
        let beneath =
            |path: &PathBuf, list: &[PathBuf]| list.iter().any(|above| path.starts_with(above));
        let mut both: Vec<PathBuf> = only
            .iter()
            .filter(|path| beneath(path, &before))
            .cloned()
            .collect();
        let kept = before
            .into_iter()
            .filter(|path| beneath(path, &only) && !both.contains(path));
        let kept: Vec<PathBuf> = kept.collect();
        both.extend(kept);
        self.reads = Some(both);
    }

    /// Whether it only restricts: it disables the server, or limits its reads.
    pub(crate) fn only_restricts(&self) -> bool {
        let reads_less = Self {
            reads: self.reads.clone(),
            place: self.place.clone(),
            ..Self::default()
        };
        self.disabled == Some(true) || (self.reads.is_some() && *self == reads_less)
    }
}

/// The settings in all files, by the names of servers.
#[derive(Default)]
pub(crate) struct McpSaidOfAll(pub(crate) BTreeMap<String, McpSaid>);

impl McpSaidOfAll {
    pub(crate) fn lay(&mut self, name: &str, said: McpSaid) {
        let before = self.0.remove(name).unwrap_or_default();
        self.0.insert(name.to_owned(), said.over(before));
    }

    /// The servers as used.
    pub(crate) fn settle(self, config: &mut McpConfig, notices: &mut Vec<ConfigNotice>) {
        for (name, said) in self.0 {
            if said.disabled == Some(true) {
                continue;
            }
            match settled(name, said, notices) {
                Ok(server) => config.servers.push(server),
                Err(unusable) => config.unusable.push(unusable),
            }
        }
    }
}

fn settled(
    name: String,
    said: McpSaid,
    notices: &mut Vec<ConfigNotice>,
) -> Result<McpServerConfig, McpUnusable> {
    let unusable = |reason: String| McpUnusable {
        name: name.clone(),
        place: said.place.clone(),
        reason,
    };
    if let Some(reason) = said.unusable {
        return Err(unusable(reason));
    }
    let nowhere = "`command` or `url` is missing\nhint: add one, or include the file that has it";
    let mut reach = said.reach.ok_or_else(|| unusable(nowhere.to_owned()))?;
    let unused = match &mut reach {
        McpReach::Program { env, .. } => {
            env.extend(said.env);
            (!said.headers.is_empty()).then_some("headers")
        }
        McpReach::Http { headers, .. } => {
            headers.extend(said.headers);
            (!said.env.is_empty()).then_some("env")
        }
    };
    notices.extend(unused.map(|key| ConfigNotice {
        key: format!("mcp.servers.{name}.{key}"),
        place: said.place.clone(),
        message: format!(
            "`mcp.servers.{name}.{key}` is ignored: it does not apply to this kind of server"
        ),
    }));
    Ok(McpServerConfig {
        reach,
        required: said.required.unwrap_or_default(),
        era: said.era.unwrap_or_default(),
        naming: said.naming.unwrap_or_default(),
        share: said.share.unwrap_or_default(),
        start: said.start.unwrap_or_default(),
        new_tools: said.new_tools.unwrap_or_default(),
        allow: said.allow,
        deny: said.deny,
        timeout: said.timeout,
        connect_timeout: said
            .connect_timeout
            .unwrap_or(McpServerConfig::CONNECT_TIMEOUT),
        idle_stop: said.idle_stop,
        max_message: said.max_message.unwrap_or(McpServerConfig::MAX_MESSAGE),
        sandbox: said.sandbox,
        pass: said.pass,
        readable: said.readable,
        writable: said.writable,
        reads: said.reads,
        files: said.files,
        place: said.place,
        name,
    })
}

/// Names that outside sources may not have, beside [`NATIVE_NAMESPACES`].
const RESERVED: [&str; 4] = ["a2e", "amplifier", "mcp", "toolpost"];

/// Whether a server may have this name: its tools' ids begin with it, and agents see it before a double underscore.
pub(crate) fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !text.is_empty()
        && text.len() <= 48
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(legal)
        && !text.contains("__")
        // `a_` and `_b`, `a` and `__b`: both would be `a___b` on the wire.
        && !text.ends_with('_')
}

/// Whether a name belongs to the host itself. A server, module or plugin with such a name would bring its tools under
/// the rules for the host's own tools.
pub fn is_reserved_name(text: &str) -> bool {
    NATIVE_NAMESPACES.contains(&text) || RESERVED.contains(&text) || text.starts_with("amplifier-")
}

/// Relative words of a command are files beside the configuration; others are names or absolute paths.
pub(crate) fn is_clear_program(text: &str) -> bool {
    ["/", "./", "../", "${"]
        .iter()
        .any(|begin| text.starts_with(begin))
        || !text.contains('/')
}

/// Whether a word is a path relative to its file.
pub(crate) fn is_relative(text: &str) -> bool {
    text.starts_with("./") || text.starts_with("../")
}

/// A word of a command line, with a relative path resolved.
pub(crate) fn program(text: &str, folder: &Path) -> String {
    if is_relative(text) {
        folder
            .join(text.strip_prefix("./").unwrap_or(text))
            .to_string_lossy()
            .into_owned()
    } else {
        text.to_owned()
    }
}
