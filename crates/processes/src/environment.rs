//! The environment of child processes: empty, then filled from a list of allowed variables.
//!
//! Everything that starts a process uses it: the shell, declared commands, code. This module does not read the host's
//! own environment; the binary collects the variables that it is willing to show and passes them as
//! [`HostEnvironment`].

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use toolpost_model::{CallContext, never_passed};
use toolpost_sandbox::{PRIVATE_HOME, PRIVATE_TMP};

/// The search path for a host that was started without a `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Copied from the host unchanged.
const INHERITED: [&str; 5] = ["LANG", "TZ", "USER", "LOGNAME", "SHELL"];

/// Toolchains in the user's home, with the variable that points their programs to them. A child's own home is private
/// and empty.
const TOOLCHAINS: [(&str, Option<&str>); 7] = [
    (".cargo", Some("CARGO_HOME")),
    (".rustup", Some("RUSTUP_HOME")),
    (".pyenv", Some("PYENV_ROOT")),
    (".nvm", Some("NVM_DIR")),
    (".local/share/uv", None),
    (".local/bin", None),
    ("go", None),
];
/// Files of the toolchains that contain credentials.
const TOOLCHAIN_CREDENTIALS: [&str; 2] = ["credentials", "credentials.toml"];

/// The part of the host's environment that the binary shows.
#[derive(Clone, Debug, Default)]
pub struct HostEnvironment {
    /// Variables by name. The filter for children applies to them, too.
    pub variables: BTreeMap<String, String>,
    /// The home directory of the host's user.
    pub home: Option<PathBuf>,
}

/// The variables and toolchains of every child.
#[derive(Clone, Debug)]
pub struct ChildEnvironment {
    variables: BTreeMap<String, String>,
    toolchains: Vec<PathBuf>,
    credentials: Vec<PathBuf>,
    refused: Vec<String>,
}

/// Why a child cannot get a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentRefusal {
    /// The name is invalid.
    #[error("`{}` is not the name of a variable; use letters, digits and `_`", name.escape_default())]
    Name {
        /// The name as given.
        name: String,
    },
    /// The variable would change which code runs, or looks like a credential.
    #[error(
        "`{name}` is never passed to a process: it can change which code runs, or it looks like a credential"
    )]
    Never {
        /// The name as given.
        name: String,
    },
    /// The system cannot pass a NUL to a process.
    #[error("the value of `{name}` contains a NUL character")]
    Nul {
        /// The variable.
        name: String,
    },
}

impl ChildEnvironment {
    /// Builds the environment from the host's. `named` are further variables that the operator passes on. `writable`
    /// are the roots that children write; no program is searched in them.
    pub fn new(host: &HostEnvironment, named: &[String], writable: &[PathBuf]) -> Self {
        let mut variables = BTreeMap::new();
        let mut refused = Vec::new();
        for (name, value) in &host.variables {
            let is_named = named.contains(name);
            if is_named && check_variable(name, value).is_err() {
                refused.push(name.clone());
            } else if is_named || INHERITED.contains(&name.as_str()) || name.starts_with("LC_") {
                variables.insert(name.clone(), value.clone());
            }
        }
        let path = host
            .variables
            .get("PATH")
            .map_or(USUAL_PATH, String::as_str);
        let mut child = Self {
            variables,
            toolchains: Vec::new(),
            credentials: Vec::new(),
            refused,
        };
        child.add_toolchains(host);
        let fixed = [
            ("HOME", PRIVATE_HOME),
            ("TMPDIR", PRIVATE_TMP),
            ("TERM", "dumb"),
            ("NO_COLOR", "1"),
        ];
        child
            .variables
            .extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        child
            .variables
            .insert("PATH".to_owned(), cleaned_path(path, writable));
        child
    }

    fn add_toolchains(&mut self, host: &HostEnvironment) {
        let Some(home) = &host.home else { return };
        for (place, variable) in TOOLCHAINS {
            let told = variable
                .and_then(|name| host.variables.get(name))
                .map(PathBuf::from);
            let place = told.unwrap_or_else(|| home.join(place));
            // A variable that points to the home itself would open all of it.
            if !place.is_absolute() || !place.is_dir() || home.starts_with(&place) {
                continue;
            }
            if let (Some(variable), Some(text)) = (variable, place.to_str()) {
                self.variables.insert(variable.to_owned(), text.to_owned());
            }
            self.credentials
                .extend(TOOLCHAIN_CREDENTIALS.map(|name| place.join(name)));
            self.toolchains.push(place);
        }
        self.credentials.retain(|place| place.exists());
    }

    /// The variables, overridden by `more`.
    pub fn with<'a>(
        &self,
        more: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<(OsString, OsString)>, EnvironmentRefusal> {
        let mut all: BTreeMap<&str, &str> = variable_pairs(&self.variables).collect();
        for (name, value) in more {
            check_variable(name, value)?;
            all.insert(name, value);
        }
        Ok(all
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect())
    }

    /// Like [`with`](Self::with), for a process of a call: the call's span is in `TRACEPARENT` and `TRACESTATE`.
    pub fn for_call<'a>(
        &self,
        context: &CallContext,
        more: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<(OsString, OsString)>, EnvironmentRefusal> {
        let span = context.trace();
        let parent = span.traceparent();
        let state = span.tracestate().map(|state| ("TRACESTATE", state));
        let own = [("TRACEPARENT", parent.as_str())].into_iter().chain(state);
        let more = more
            .into_iter()
            .map(|(name, value)| -> (&str, &str) { (name, value) });
        self.with(own.chain(more))
    }

    /// The value of a variable that every child gets.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Toolchain directories in the user's home that children may read.
    pub fn toolchains(&self) -> &[PathBuf] {
        &self.toolchains
    }

    /// Files of the toolchains that children may not see.
    pub fn credentials(&self) -> &[PathBuf] {
        &self.credentials
    }

    /// Variables that the operator named and that are never passed, for a message to the operator.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

impl Default for ChildEnvironment {
    /// The environment for a host that shows no variables.
    fn default() -> Self {
        Self::new(&HostEnvironment::default(), &[], &[])
    }
}

/// Refuses a variable that no child may get.
pub fn check_variable(name: &str, value: &str) -> Result<(), EnvironmentRefusal> {
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
    if !is_name {
        return Err(EnvironmentRefusal::Name {
            name: name.to_owned(),
        });
    }
    if never_passed(name).is_some() {
        return Err(EnvironmentRefusal::Never {
            name: name.to_owned(),
        });
    }
    if value.contains('\0') {
        return Err(EnvironmentRefusal::Nul {
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// Removes relative entries and entries in writable roots. A relative entry would mean another folder in every
/// directory, and an entry in a writable root would run programs that an agent put there.
fn cleaned_path(path: &str, writable: &[PathBuf]) -> String {
    let outside =
        |entry: &Path| entry.is_absolute() && !writable.iter().any(|root| entry.starts_with(root));
    let kept: Vec<&str> = path
        .split(':')
        .filter(|entry| !entry.is_empty() && outside(Path::new(entry)))
        .collect();
    if kept.is_empty() {
        USUAL_PATH.to_owned()
    } else {
        kept.join(":")
    }
}

/// Variables as pairs, as they are added to those of every child.
pub fn variable_pairs(variables: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{
        ChildEnvironment, EnvironmentRefusal, HostEnvironment, PRIVATE_HOME, check_variable,
    };

    fn host(variables: &[(&str, &str)]) -> HostEnvironment {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        HostEnvironment {
            variables: variables.iter().map(owned).collect(),
            home: None,
        }
    }

    #[test]
    fn only_listed_and_named_variables_pass() {
        let host = host(&[
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C"),
            ("JAVA_HOME", "/opt/java"),
            ("EDITOR", "vi"),
            ("API_TOKEN", "x"),
            ("HOME", "/home/me"),
            ("TERM", "xterm"),
        ]);
        let named = ["JAVA_HOME".to_owned(), "API_TOKEN".to_owned()];
        let child = ChildEnvironment::new(&host, &named, &[]);
        let names: Vec<&str> = child.variables.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "HOME",
                "JAVA_HOME",
                "LANG",
                "LC_ALL",
                "NO_COLOR",
                "PATH",
                "TERM",
                "TMPDIR"
            ]
        );
        assert_eq!(
            (child.get("HOME"), child.get("TERM")),
            (Some(PRIVATE_HOME), Some("dumb"))
        );
        assert_eq!(child.refused(), ["API_TOKEN"]);
    }

    #[test]
    fn names_that_change_what_runs_or_hold_credentials_never_pass() {
        for name in [
            "LD_PRELOAD",
            "ld_preload",
            "DYLD_X",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASH_FUNC_x",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "PERL5LIB",
            "RUBYOPT",
            "GIT_DIR",
            "OPENAI_API_KEY",
            "my_secret",
            "GH_TOKEN",
            "PGPASSWORD",
            "AWS_PROFILE",
            "AZURE_X",
            "GOOGLE_X",
            "GCP_X",
            "SSH_AUTH_SOCK",
        ] {
            assert_eq!(
                check_variable(name, ""),
                Err(EnvironmentRefusal::Never {
                    name: name.to_owned()
                }),
                "{name}"
            );
        }
        for name in [
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_EMAIL",
            "RUST_BACKTRACE",
            "CI",
            "MAKEFLAGS",
            "_x1",
        ] {
            assert_eq!(check_variable(name, "1"), Ok(()), "{name}");
        }
        for name in ["", "1a", "a b", "a=b", "é", "BASH_FUNC_x%%"] {
            assert!(
                matches!(
                    check_variable(name, ""),
                    Err(EnvironmentRefusal::Name { .. })
                ),
                "{name}"
            );
        }
        assert!(matches!(
            check_variable("A", "a\0"),
            Err(EnvironmentRefusal::Nul { .. })
        ));
    }

    #[test]
    fn programs_are_never_found_in_a_writable_root_or_a_relative_place() {
        let path = "/w/bin:bin::.:/usr/bin:/w:/wide/bin:/opt/bin";
        let child = ChildEnvironment::new(&host(&[("PATH", path)]), &[], &[PathBuf::from("/w")]);
        assert_eq!(child.get("PATH"), Some("/usr/bin:/wide/bin:/opt/bin"));
        let child = ChildEnvironment::new(&host(&[("PATH", "bin")]), &[], &[]);
        assert!(
            child
                .get("PATH")
                .is_some_and(|path| path.contains(":/usr/bin:"))
        );
    }

    #[test]
    fn toolchains_of_the_home_are_named_and_their_credentials_hidden() {
        let home = tempfile::tempdir().unwrap();
        for (place, file) in [(".cargo", "credentials.toml"), (".rustup", "settings.toml")] {
            let dir = cap_std::fs::Dir::open_ambient_dir(home.path(), cap_std::ambient_authority())
                .unwrap();
            dir.create_dir(place).unwrap();
            dir.write(format!("{place}/{file}"), "x").unwrap();
        }
        let host = HostEnvironment {
            home: Some(home.path().to_owned()),
            ..HostEnvironment::default()
        };
        let child = ChildEnvironment::new(&host, &[], &[]);
        assert_eq!(
            child.toolchains(),
            [home.path().join(".cargo"), home.path().join(".rustup")]
        );
        assert_eq!(child.get("CARGO_HOME"), home.path().join(".cargo").to_str());
        assert_eq!(child.get("PYENV_ROOT"), None);
        assert_eq!(
            child.credentials(),
            [home.path().join(".cargo/credentials.toml")]
        );
    }
}
