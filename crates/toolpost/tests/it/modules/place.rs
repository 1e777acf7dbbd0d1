//! A folder with plans, modules and a cache of a test's own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use crate::home::{Home, Ran};

pub(super) struct Place {
    pub(super) home: Home,
    folder: tempfile::TempDir,
}

/// The Python that runs tests: itself, not a script that finds it.
pub(crate) fn python() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        said(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))
    })
}

/// What a command says that must succeed.
pub(super) fn said(command: &mut Command) -> String {
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        ran.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

impl Place {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self {
            home: Home::new(),
            folder,
        };
        place.config("");
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn plan(&self, text: &str) {
        self.write("plan.yaml", text);
    }

    /// The configuration that commands are given, with the Python to use.
    pub(super) fn config(&self, more: &str) {
        let python = format!("python: '{}'", python());
        let text = match more.strip_prefix("amplifier: {") {
            Some(rest) => format!("amplifier: {{ {python},{rest}"),
            None => format!("amplifier: {{ {python} }}\n{more}"),
        };
        self.write("config.yaml", &text);
    }

    /// Writes a Python module that has one tool and needs what `dependencies` lists.
    pub(super) fn module(&self, folder: &str, id: &str, dependencies: &str) {
        let package = format!("amplifier_module_{}", id.replace('-', "_"));
        let code = format!(
            "class Greet:\n    name = '{package}'\n    description = 'Greets.'\n    input_schema = {{'type': 'object'}}\n\n    \
             async def execute(self, input):\n        return {{'success': True, 'output': 'hello'}}\n\n\n\
             async def mount(coordinator, config=None):\n    await coordinator.mount('tools', Greet(), name='{package}')\n"
        );
        self.write(&format!("{folder}/{package}/__init__.py"), &code);
        let project = format!(
            "[project]\nname = 'amplifier-module-{id}'\nversion = '1'\ndependencies = [{dependencies}]\n\n\
             [project.entry-points.'amplifier.modules']\n{id} = '{package}:mount'\n"
        );
        self.write(&format!("{folder}/pyproject.toml"), &project);
    }

    /// A command with the plan, the configuration and a cache.
    pub(super) fn command_of(&self, command: &str, words: &[&str], cache: &Path) -> Command {
        let [plan, config] = ["plan.yaml", "config.yaml"].map(|name| self.path(name));
        let mut all = vec![command];
        all.extend(words);
        let named = [
            ("--mount-plan", plan.as_path()),
            ("--config", &config),
            ("--cache-dir", cache),
        ];
        for (flag, path) in &named {
            all.extend([*flag, path.to_str().unwrap()]);
        }
        let mut command = self.home.command(&all);
        command.env("PATH", std::env::var("PATH").unwrap());
        command
    }

    pub(super) fn run(&self, command: &str, words: &[&str]) -> Ran {
        Ran::from(
            self.command_of(command, words, &self.cache())
                .output()
                .unwrap(),
        )
    }

    /// `toolpost modules`.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        self.command_of("modules", words, &self.cache())
    }

    pub(super) fn modules(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).output().unwrap())
    }
}

/// Every file beneath a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
