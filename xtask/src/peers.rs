//! `cargo xtask peers`: the peers of end-to-end tests, in environments of their own under `target`. Each is made once,
//! and again when its list changes; `cargo xtask test` makes them first.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, ensure};

use crate::ChoreVerdict;
use crate::cargo::verdict;

/// Packages that can be installed together.
struct Environment {
    /// Its folder in `target`.
    folder: &'static str,
    /// The file with the list, in `xtask/peers`.
    file: &'static str,
    list: &'static str,
    /// The npm packages of the list, installed with its npm.
    npm: Option<Npm>,
}

struct Npm {
    package: &'static str,
    lock: &'static str,
}

const ENVIRONMENTS: [Environment; 6] = [
    Environment {
        folder: "peers",
        file: "main.txt",
        list: include_str!("../peers/main.txt"),
        npm: None,
    },
    Environment {
        folder: "peers-a2a-1",
        file: "a2a-1.txt",
        list: include_str!("../peers/a2a-1.txt"),
        npm: None,
    },
    Environment {
        folder: "peers-a2a-0.3",
        file: "a2a-0.3.txt",
        list: include_str!("../peers/a2a-0.3.txt"),
        npm: None,
    },
    Environment {
        folder: "peers-fuzz",
        file: "fuzz.txt",
        list: include_str!("../peers/fuzz.txt"),
        npm: None,
    },
    Environment {
        folder: "peers-mcp",
        file: "mcp.txt",
        list: include_str!("../peers/mcp.txt"),
        npm: None,
    },
    Environment {
        folder: "peers-node",
        file: "node.txt",
        list: include_str!("../peers/node.txt"),
        npm: Some(Npm {
            package: include_str!("../peers/package.json"),
            lock: include_str!("../peers/package-lock.json"),
        }),
    },
];

pub(crate) fn run(root: &Path) -> anyhow::Result<ChoreVerdict> {
    let target = root.join("target");
    if ENVIRONMENTS
        .iter()
        .all(|environment| environment.is_made(&target))
    {
        return Ok(ChoreVerdict::Pass);
    }
    fs::create_dir_all(&target).with_context(|| format!("cannot make `{}`", target.display()))?;
    // Two concurrent runs would clear each other's folders. The lock ends with the process.
    let lock = target.join("peers.lock");
    let lock = File::create(&lock).with_context(|| format!("cannot write `{}`", lock.display()))?;
    lock.lock().context("cannot lock `target/peers.lock`")?;
    thread::scope(|scope| {
        let missing = ENVIRONMENTS
            .iter()
            .filter(|environment| !environment.is_made(&target));
        let made: Vec<_> = missing
            .map(|missing| scope.spawn(|| missing.make(root, &target)))
            .collect();
        made.into_iter().try_for_each(|one| {
            one.join()
                .unwrap_or_else(|_| anyhow::bail!("an installation broke"))
        })
    })?;
    Ok(ChoreVerdict::Pass)
}

impl Environment {
    /// Written last: an environment without it is incomplete.
    fn mark(&self, target: &Path) -> PathBuf {
        target.join(self.folder).join("made-of.txt")
    }

    fn made_of(&self) -> String {
        let npm = self
            .npm
            .as_ref()
            .map(|npm| [npm.package, npm.lock].concat());
        [self.list, npm.as_deref().unwrap_or_default()].concat()
    }

    fn is_made(&self, target: &Path) -> bool {
        fs::read_to_string(self.mark(target)).is_ok_and(|made_of| made_of == self.made_of())
    }

    fn make(&self, root: &Path, target: &Path) -> anyhow::Result<()> {
        let Self { folder, file, .. } = self;
        let place = target.join(folder);
        eprintln!("installing the packages of xtask/peers/{file} into target/{folder}");
        let make = verdict(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&place),
        )?;
        ensure!(
            make == ChoreVerdict::Pass,
            "`python3 -m venv` failed\nhint: apt-get install python3-venv (the Debian package `python3-venv`)"
        );
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
            "-r",
        ];
        let list = root.join("xtask/peers").join(file);
        let installed = verdict(Command::new(place.join("bin/python")).args(pip).arg(list))?;
        ensure!(
            installed == ChoreVerdict::Pass,
            "the packages of xtask/peers/{file} cannot be installed\n\
             hint: pip must reach a package index; Python must be 3.11 or newer"
        );
        if let Some(npm) = &self.npm {
            npm.install(folder, &place)?;
        }
        let mark = self.mark(target);
        fs::write(&mark, self.made_of())
            .with_context(|| format!("cannot write `{}`", mark.display()))?;
        eprintln!("target/{folder} is ready");
        Ok(())
    }
}

impl Npm {
    /// Installs exactly the packages of the lock file, and runs none of their scripts.
    fn install(&self, folder: &str, place: &Path) -> anyhow::Result<()> {
        for (name, text) in [
            ("package.json", self.package),
            ("package-lock.json", self.lock),
        ] {
            let file = place.join(name);
            fs::write(&file, text).with_context(|| format!("cannot write `{}`", file.display()))?;
        }
        let options = [
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel",
            "error",
        ];
        let installed = verdict(
            Command::new(place.join("bin/npm"))
                .args(options)
                .current_dir(place)
                .stdout(Stdio::null()),
        )?;
        ensure!(
            installed == ChoreVerdict::Pass,
            "the packages of xtask/peers/package.json cannot be installed into target/{folder}\n\
             hint: npm must reach a registry (its setting `registry`)"
        );
        Ok(())
    }
}
