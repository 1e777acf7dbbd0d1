//! Reading the configuration again while the host runs: when a file changed, or on SIGHUP.

use std::{io::IsTerminal as _, path::PathBuf};

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolpost_serve::Server;

use super::ServeArgs;
use crate::{
    settings::{self, CommandSettings},
    terminal,
    watching::ConfigFileWatcher,
};

/// What was typed, to be resolved again, and what of it could not be read when the host last took it up.
pub(super) struct ConfigReloads<'a> {
    arguments: &'a ServeArgs,
    watch: ConfigFileWatcher,
    hangup: Option<Signal>,
    /// Files whose last good text is in force.
    broken: Vec<PathBuf>,
}

impl<'a> ConfigReloads<'a> {
    pub(super) fn begin(arguments: &'a ServeArgs, settings: &CommandSettings) -> Self {
        // On a terminal the signal says that the terminal is gone, and then the host goes too.
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

    /// Waits for a reason to read the files again.
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

    /// Reads the files and puts them in force, or says why they are not.
    pub(super) async fn apply_changes(&mut self, server: &Server) {
        self.watch.follow();
        let settings = match self.read() {
            Ok(settings) => settings,
            Err(error) => return self.refuse(server, &format!("{error:#}")),
        };
        // A file that broke while the host runs: what it said before is in force, all of it, and stays so.
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
            self.print_notice(&format!(
                "the configuration was read again; in force: {}",
                reloaded.changed.join(", ")
            ));
        }
        if !reloaded.after_restart.is_empty() {
            let waiting = reloaded.after_restart.join(", ");
            self.print_warning(&format!(
                "changed, and taken up when the host is started again: {waiting}"
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
            "the configuration changed and cannot be taken up; what was in force stays\n{problem}"
        ));
    }

    /// What needs looking at.
    fn print_warning(&self, text: &str) {
        if self.arguments.talks_over_pipes() {
            tracing::warn!("{text}");
        } else {
            terminal::warn(text);
        }
    }

    /// What is good to know.
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

/// Every file that says something, and the list of what is trusted.
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
