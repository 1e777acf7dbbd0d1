//! `mcp` and the lists of servers under `include`. A server is a program, or an endpoint that receives arguments of
//! agents, so only trusted files may add one. An untrusted file may disable servers and limit their reads.

use crate::{
    ConfigNotice, LayerTrust, LocatedValue, McpReach, McpText,
    mcp_entry::{McpSaid, McpSaidOfAll, is_relative, program},
    snippet::shown,
};

use super::LayerMerge;

impl LayerMerge<'_> {
    /// Lays the lists of servers under a trusted layer's `include` over the earlier settings.
    pub(crate) fn mcp_files(&mut self, all: &mut McpSaidOfAll) {
        match self.layer.standing {
            LayerTrust::Trusted => {
                for file in &self.layer.mcp_files {
                    for (name, said) in file.said() {
                        all.lay(name, said.clone());
                    }
                }
            }
            // The notice about its ignored `include` comes with the plans.
            LayerTrust::Untrusted | LayerTrust::LastGood => {}
        }
    }

    /// Lays the section over the earlier settings.
    pub(crate) fn mcp(&mut self, all: &mut McpSaidOfAll) {
        for LocatedValue {
            value: (name, said),
            at,
        } in &self.layer.parsed.checked().mcp
        {
            match self.layer.standing {
                LayerTrust::Trusted => {
                    self.plain_secrets(name, said);
                    all.lay(name, self.placed(said));
                }
                LayerTrust::Untrusted | LayerTrust::LastGood => {
                    if !said.only_restricts() {
                        self.ignored("mcp.servers", *at, &format!("mcp.servers: {}", shown(name)));
                    }
                    if let Some(known) = all.0.get_mut(name) {
                        if said.disabled == Some(true) {
                            known.disabled = Some(true);
                        }
                        if let Some(only) = self.placed(said).reads {
                            known.restrict_reads(only);
                        }
                    }
                }
            }
        }
    }

    /// The settings of the section with their paths resolved from the file's folder. A word of the command line that
    /// begins as a relative path is a file beside the configuration, unless the server starts in a folder of its own.
    fn placed(&self, said: &McpSaid) -> McpSaid {
        // The program starts in another folder than the host.
        let base =
            std::path::absolute(&self.layer.base).unwrap_or_else(|_| self.layer.base.clone());
        let mut said = said.clone().beneath(&base);
        if let Some(McpReach::Program {
            command, args, cwd, ..
        }) = &mut said.reach
        {
            let args = args.iter_mut().filter(|_| cwd.is_none());
            for word in std::iter::once(command).chain(args) {
                let Some(text) = word.as_plain().filter(|text| is_relative(text)) else {
                    continue;
                };
                let file = program(text, &base);
                said.files.push(file.clone().into());
                *word = McpText::plain(file);
            }
        }
        said
    }

    /// A token in plain text is visible to every reader of the file.
    fn plain_secrets(&mut self, name: &str, said: &McpSaid) {
        for (part, values) in [("env", &said.env), ("headers", &said.headers)] {
            for variable in values
                .iter()
                .filter(|(name, text)| text.plain_secret(name).is_some())
                .map(|(name, _)| name)
            {
                let key = format!("mcp.servers.{name}.{part}.{variable}");
                let message = format!(
                    "`{key}` looks like a secret in plain text; refer to it with `${{env:NAME}}` or `${{file:PATH}}`"
                );
                self.notices.push(ConfigNotice {
                    key,
                    place: said.place.clone(),
                    message,
                });
            }
        }
    }
}
