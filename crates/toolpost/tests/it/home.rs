//! A home and a workspace of a test's own, and the command run in them.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// Where a test lives: nothing outside of it is read or written.
pub(crate) struct Home {
    folder: TempDir,
}

/// What a command said, and how it ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "workspace"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.workspace().join(name), text).unwrap();
    }

    /// The user's own configuration.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.folder
            .path()
            .join("home/.config/toolpost/toolpost.yaml")
    }

    pub(crate) fn write_user(&self, text: &str) {
        std::fs::create_dir_all(self.user_file().parent().unwrap()).unwrap();
        std::fs::write(self.user_file(), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace().join(name)).unwrap()
    }

    /// A file of the workspace that may not be there.
    pub(crate) fn try_read(&self, name: &str) -> Option<String> {
        let path = self.workspace().join(name);
        path.exists()
            .then(|| std::fs::read_to_string(path).unwrap())
    }

    /// The one data directory below the state folder.
    pub(crate) fn data_dir(&self) -> PathBuf {
        let state = self.folder.path().join("home/state/toolpost");
        let mut found: Vec<PathBuf> = std::fs::read_dir(state)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// The command in the workspace, with nothing of the environment that runs the test.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolpost"));
        let home = self.folder.path().join("home");
        command
            .env_clear()
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"));
        command.current_dir(self.workspace()).args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Runs with a text on standard input.
    pub(crate) fn feed(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Runs and compares everything that was said with the snapshot of that name.
    #[track_caller]
    pub(crate) fn check(&self, name: &str, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        self.compare(name, arguments, &ran);
        ran
    }

    /// Compares with a snapshot in which what differs from run to run has a name.
    pub(crate) fn compare(&self, name: &str, arguments: &[&str], ran: &Ran) {
        let mut filters = vec![
            (
                r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
                "[ID]",
            ),
            (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?", "[TIME]"),
            (r" *\d+\.\d+ ms", " [MS] ms"),
            (
                r"in \d+\.\d+ ms: \d+\.\d+ waiting, \d+\.\d+ in the tool",
                "in [MS] ms",
            ),
            (
                r"in \[MS\] ms: \d+\.\d+ waiting, \d+\.\d+ in the tool",
                "in [MS] ms",
            ),
            (r#""(at|total|queued|execute)_us": ?\d+"#, "\"[US]\""),
            (r"\|[ #]{30}\|", "|[BAR]|"),
            (r"surface-[0-9a-f-]+", "[SURFACE]"),
            (r"\b[0-9a-f]{64}\b", "[SHA-256]"),
            (r"toolpost/[0-9a-f]{16}\b", "toolpost/[WORKSPACE]"),
            (r"process \d+", "process [PID]"),
            (
                r"(good|odd )  sandbox        tier .*(\n\w.*hold.*)*",
                "good  sandbox        [SANDBOX]",
            ),
            (r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]"),
        ];
        let folder = regex_escaped(self.folder.path());
        filters.insert(0, (&folder, "[FOLDER]"));
        let page = format!("$ toolpost {}\n{}", arguments.join(" "), ran.page());
        insta::with_settings!({ filters => filters, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, page);
        });
    }
}

fn regex_escaped(path: &Path) -> String {
    path.to_str().unwrap().replace('.', r"\.")
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
        let code = output.status.code().expect("no signal ended it");
        Self {
            code,
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ran {
    pub(crate) fn page(&self) -> String {
        format!(
            "exit code {}\n--- stdout\n{}--- stderr\n{}",
            self.code, self.stdout, self.stderr
        )
    }

    /// What was said on stdout, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.page()))
    }

    /// Compares the exit code, and shows everything where it differs.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.page());
        self
    }
}
