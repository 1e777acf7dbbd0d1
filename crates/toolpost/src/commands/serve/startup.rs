//! The inputs of a host's start: the files and flags of the command line, resolved, and the server built from them.

use toolpost_serve::{CallerAuthentication, Server, ServerBuilder};

use super::{ServeArgs, access};
use crate::settings::{self, CommandSettings};

/// The settings of a host before its start.
pub(super) struct StartupSettings {
    pub(super) settings: CommandSettings,
    pub(super) access: CallerAuthentication,
}

impl StartupSettings {
    /// Reads every file of the command line and the folder.
    pub(super) async fn read(arguments: &ServeArgs) -> anyhow::Result<Self> {
        let resolve = || settings::resolve(&arguments.settings, &arguments.policy);
        let mut settings = settings::with_bundles(resolve).await?;
        if let Some(address) = arguments.face.http {
            settings.config.http.listen = address;
        }
        let access = access(&arguments.face, settings.a2e_host.as_ref())?;
        Ok(Self { settings, access })
    }

    /// The notices about the files for the operator.
    pub(super) fn notices(&self) -> impl Iterator<Item = String> {
        self.settings.warnings()
    }

    /// A server with these settings, not yet started.
    pub(super) fn builder(&self) -> anyhow::Result<ServerBuilder> {
        let config = self.settings.config.clone();
        let builder = Server::builder(config).native(self.settings.handover()?);
        Ok(builder.access(self.access.clone()))
    }
}
