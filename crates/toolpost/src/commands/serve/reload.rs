//! Reloading the configuration while the host runs: after a file changed, or on SIGHUP.

use std::{io::IsTerminal as _, path::PathBuf};

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolpost_config::LayerTrust;
use toolpost_model::RuleOrigin;
use toolpost_serve::Server;

use super::ServeArgs;
use crate::{
    settings::{self, CommandSettings},
    terminal,
    watching::ConfigFileWatcher,
};

/// The command line, to be resolved again, and the files that were broken at the last reload.
pub(super) struct ConfigReloads<'a> {
    arguments: &'a ServeArgs,
    watch: ConfigFileWatcher,
    hangup: Option<Signal>,
    /// Files that are broken now; their last good text is in force.
    broken: Vec<PathBuf>,
}

impl<'a> ConfigReloads<'a> {
    pub(super) fn begin(arguments: &'a ServeArgs, settings: &CommandSettings) -> Self {
        // On a terminal the signal means that the terminal was closed, and then the host ends too.
        let in_background = !std::io::stderr().is_terminal();
        let hangup = if in_background {
            signal(SignalKind::hangup()).ok()
        } else {
            None
        };
        Self {
            arguments,
            watch: ConfigFileWatcher::on(watched(settings)),
            hangup,
            broken: broken(settings),
        }
    }

    /// Waits for a reason to reload.
    pub(super) async fn due(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.watch.wait_for_change() => {}
            _ = hangup => {}
        }
    }

    /// Reads the files and applies them, or reports why it does not.
    pub(super) async fn apply_changes(&mut self, server: &Server) {
        self.watch.follow();
        let settings = match self.read() {
            Ok(settings) => settings,
            Err(error) => return self.refuse(server, &format!("{error:#}")),
        };
        // A file that broke while the host runs is not replaced by its last good restrictions, as at a start: its last
        // good settings are in force as a whole, and stay so until the file is mended. Files that were broken before
        // do not stop a reload, since the other files may have changed.
        let newly = settings
            .files
            .iter()
            .find(|file| file.broken.is_some() && !self.broken.contains(&file.path));
        if let Some(broken) = newly.and_then(|file| file.broken.as_ref()) {
            return self.refuse(server, &broken.errors);
        }
        let reloaded = match server.reload(settings.config.clone()).await {
            Ok(reloaded) => reloaded,
            Err(error) => return self.refuse(server, &error.to_string()),
        };
        settings.keep_last_good();
        self.broken = broken(&settings);
        if reloaded.changed.is_empty() && reloaded.after_restart.is_empty() {
            return;
        }
        settings
            .warnings()
            .for_each(|warning| self.print_warning(&warning));
        server
            .host()
            .notices()
            .iter()
            .for_each(|notice| self.print_warning(&notice.to_string()));
        if !reloaded.changed.is_empty() {
            let changed = reloaded.changed.join(", ");
            let project = settings.file(RuleOrigin::Project);
            let limit = match project.and_then(|file| file.standing) {
                Some(LayerTrust::Untrusted) => {
                    "; `toolpost.yaml` is not trusted, so only its restrictions apply"
                }
                Some(LayerTrust::Trusted | LayerTrust::LastGood) | None => "",
            };
            self.print_notice(&format!(
                "the configuration was reloaded; now in effect: {changed}{limit}"
            ));
        }
        if !reloaded.after_restart.is_empty() {
            let waiting = reloaded.after_restart.join(", ");
            self.print_warning(&format!(
                "changed, but in effect only after a restart of the host: {waiting}"
            ));
        }
    }

    fn read(&self) -> anyhow::Result<CommandSettings> {
        let mut settings = settings::resolve(&self.arguments.settings, &self.arguments.policy)?;
        if let Some(address) = self.arguments.face.http {
            settings.config.http.listen = address;
        }
        Ok(settings)
    }

    fn refuse(&self, server: &Server, problem: &str) {
        server.keep_configuration(problem);
        self.print_warning(&format!(
            "the changed configuration cannot be applied; the previous one stays in effect\n{problem}"
        ));
    }

    /// Prints a warning for the operator.
    fn print_warning(&self, text: &str) {
        if self.arguments.talks_over_pipes() {
            tracing::warn!("{text}");
        } else {
            terminal::warn(text);
        }
    }

    /// Prints a notice for the operator.
    fn print_notice(&self, text: &str) {
        if self.arguments.talks_over_pipes() {
            tracing::info!("{text}");
        } else {
            anstream::eprintln!("{}", terminal::styled(terminal::DIM, text));
        }
    }
}

fn broken(settings: &CommandSettings) -> Vec<PathBuf> {
    settings
        .files
        .iter()
        .filter(|file| file.broken.is_some())
        .map(|file| file.path.clone())
        .collect()
}

/// Every file in force, and the list of trusted files.
fn watched(settings: &CommandSettings) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = settings
        .files
        .iter()
        .map(|file| file.path.clone())
        .collect();
    files.extend(settings.plans.files.iter().cloned());
    files.push(settings.place.data_dir.join("trust.json"));
    files
        .iter()
        .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
        .collect()
}
