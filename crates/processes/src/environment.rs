//! The environment of child processes: cleared, and rebuilt from a list of what may pass.
//!
//! Used by everything that starts a process: the shell, declared commands, code. Nothing here reads the host's own
//! environment; the binary gathers what it is willing to show and hands it in as [`HostEnvironment`].

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use toolpost_model::{CallContext, never_passed};
use toolpost_sandbox::{PRIVATE_HOME, PRIVATE_TMP};

/// For a host that was started without a `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Taken over from the host as they are.
const INHERITED: [&str; 5] = ["LANG", "TZ", "USER", "LOGNAME", "SHELL"];

/// Toolchains in the user's home, with the variable by which their programs find them: a child's own home is private
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
/// Files of those toolchains that hold credentials.
const TOOLCHAIN_CREDENTIALS: [&str; 2] = ["credentials", "credentials.toml"];

/// What the binary shows of its own environment.
#[derive(Clone, Debug, Default)]
pub struct HostEnvironment {
    /// Variables by name. Those that may not pass are left out here once more.
    pub variables: BTreeMap<String, String>,
    /// The home of the user the host runs as.
    pub home: Option<PathBuf>,
}

/// What every child is given.
#[derive(Clone, Debug)]
pub struct ChildEnvironment {
    variables: BTreeMap<String, String>,
    toolchains: Vec<PathBuf>,
    credentials: Vec<PathBuf>,
    refused: Vec<String>,
}

/// Why a variable cannot be given to a child.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentRefusal {
    /// Not a name.
    #[error("`{}` is not the name of a variable; letters, digits and `_` make one", name.escape_default())]
    Name {
        /// As given.
        name: String,
    },
    /// It would change which code runs, or looks like a credential.
    #[error(
        "`{name}` is never passed to a process: it can change which code runs, or it looks like a credential"
    )]
    Never {
        /// As given.
        name: String,
    },
    /// No process can be given a NUL.
    #[error("the value of `{name}` holds a NUL character")]
    Nul {
        /// The variable.
        name: String,
    },
}

impl ChildEnvironment {
    /// From what the host shows. `named` are the variables the operator wants passed as well; `writable` are the
    /// roots that children write, from which no program is ever found.
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
            // A variable that points at the home itself would open all of it.
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

    /// The variables, with `more` laid over them.
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

    /// The same for a process of a call, with the call's span as `TRACEPARENT` and `TRACESTATE`.
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

    /// A variable every child gets.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Directories of toolchains that children may read, though they lie in the user's home.
    pub fn toolchains(&self) -> &[PathBuf] {
        &self.toolchains
    }

    /// Files of those toolchains that children may not see.
    pub fn credentials(&self) -> &[PathBuf] {
        &self.credentials
    }

    /// Variables the operator named that are never passed, for whoever tells the operator.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

impl Default for ChildEnvironment {
    /// Of a host that shows nothing.
    fn default() -> Self {
        Self::new(&HostEnvironment::default(), &[], &[])
    }
}

/// Whether a variable may be given to a child at all.
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

/// Programs are found at fixed places only: a relative entry would mean another one in every directory, and one
/// inside a writable root would run what an agent put there.
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

/// Variables as they are added to those of every child.
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
