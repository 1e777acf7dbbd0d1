//! The direction of dependencies: model ← core ← adapters ← the binary. Dev-dependencies are free, since tests may use
//! anything.

use serde_json::Value;

use super::{Repo, TidyViolation};
use crate::cargo::{self, list, text};

const MODEL: &str = "toolpost-model";
const CORE: &str = "toolpost-core";
const AMPLIFIER: &str = "toolpost-amplifier";
const COMMAND: &str = "toolpost-command";
const A2A: &str = "toolpost-a2a";
const A2E: &str = "toolpost-a2e";
const CONFIG: &str = "toolpost-config";
const STORE: &str = "toolpost-store";
const SANDBOX: &str = "toolpost-sandbox";
const PROCESSES: &str = "toolpost-processes";
const NATIVE: &str = "toolpost-native";
const MCP_SOURCE: &str = "toolpost-mcp-source";
const MODULES: &str = "toolpost-modules";
const SERVE: &str = "toolpost-serve";
const WASM: &str = "toolpost-wasm";
const TESTKIT: &str = "toolpost-testkit";

/// Each crate with the workspace crates it may use; ARCHITECTURE.md gives the reasons.
const MAY_USE: &[(&str, &[&str])] = &[
    (MODEL, &[]),
    (COMMAND, &[]),
    (CORE, &[MODEL, COMMAND]),
    (A2A, &[MODEL]),
    (A2E, &[MODEL]),
    (AMPLIFIER, &[MODEL]),
    (CONFIG, &[MODEL, AMPLIFIER]),
    (SANDBOX, &[MODEL]),
    (STORE, &[MODEL, CORE]),
    (WASM, &[MODEL, AMPLIFIER]),
    (PROCESSES, &[MODEL, COMMAND, CORE, SANDBOX]),
    (NATIVE, &[MODEL, COMMAND, PROCESSES, SANDBOX]),
    (MCP_SOURCE, &[MODEL, CORE, PROCESSES, SANDBOX]),
    (MODULES, &[MODEL, AMPLIFIER, A2E, CORE, PROCESSES, SANDBOX]),
    (
        SERVE,
        &[
            MODEL, AMPLIFIER, COMMAND, CORE, A2A, A2E, CONFIG, SANDBOX, STORE, PROCESSES, NATIVE,
            MCP_SOURCE, MODULES, WASM,
        ],
    ),
    (TESTKIT, &[MODEL, AMPLIFIER, CORE]),
    (
        "toolpost",
        &[
            MODEL, AMPLIFIER, COMMAND, CORE, A2A, A2E, CONFIG, SANDBOX, STORE, NATIVE, MODULES,
            SERVE,
        ],
    ),
    (
        "toolpost-bench",
        &[
            MODEL, AMPLIFIER, COMMAND, CORE, A2A, A2E, CONFIG, SANDBOX, STORE, PROCESSES, NATIVE,
            MODULES, SERVE, WASM, TESTKIT,
        ],
    ),
    ("xtask", &[]),
];

/// Examples show the crates for embedders and tool authors.
const EXAMPLES_MAY_USE: &[&str] = &[MODEL, AMPLIFIER, CORE, A2A, A2E, SERVE, CONFIG];

/// Crates that would bring the outside world into the inner two: model has no runtime, core opens nothing.
const MAY_NOT_USE: &[(&str, &[&str])] = &[
    (
        MODEL,
        &["tokio", "axum", "hyper", "rusqlite", "reqwest", "cap-std"],
    ),
    (CORE, &["axum", "hyper", "rusqlite", "reqwest", "cap-std"]),
];

/// The features of tokio that core must not enable. Timers and channels are allowed.
const TOKIO_IO_FEATURES: &[&str] = &["net", "fs", "process", "full"];

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    match cargo::metadata(&repo.root, &["--no-deps"]) {
        Ok(metadata) => check_metadata(repo, &metadata),
        Err(error) => {
            let hint = "fix the manifests; see the output of cargo above";
            vec![TidyViolation::new(
                "Cargo.toml",
                1,
                format!("cannot list the workspace: {error:#}"),
                hint,
            )]
        }
    }
}

fn check_metadata(repo: &Repo, metadata: &Value) -> Vec<TidyViolation> {
    let packages = list(metadata, "packages");
    let members: Vec<&str> = packages
        .iter()
        .map(|package| text(package, "name"))
        .collect();
    let root = text(metadata, "workspace_root");
    let mut found = Vec::new();
    for package in packages {
        let manifest = text(package, "manifest_path");
        let manifest = manifest
            .strip_prefix(root)
            .unwrap_or(manifest)
            .trim_start_matches('/');
        let package = Package {
            name: text(package, "name"),
            manifest,
            package,
        };
        found.extend(package.check_direction(repo, &members));
        found.extend(package.check_forbidden(repo));
    }
    found
}

struct Package<'a> {
    name: &'a str,
    /// Its path from the root.
    manifest: &'a str,
    package: &'a Value,
}

impl<'a> Package<'a> {
    fn check_direction(&self, repo: &Repo, members: &[&str]) -> Vec<TidyViolation> {
        let Some(may_use) = self.may_use() else {
            let message = format!("crate `{}` is not in the table of dependencies", self.name);
            let hint =
                "add it to the table in xtask/src/tidy/dependencies.rs and to ARCHITECTURE.md";
            return vec![TidyViolation::new(self.manifest, 1, message, hint)];
        };
        self.shipped_dependencies()
            .filter(|(name, _)| members.contains(name) && !may_use.contains(name))
            .map(|(name, _)| {
                let message = format!("`{}` may not depend on `{name}`", self.name);
                let hint = match may_use {
                    [] => "it may use no crate of the workspace".to_owned(),
                    _ => format!(
                        "it may use {}; put a port in `core` or wire it in the binary",
                        may_use.join(", ")
                    ),
                };
                TidyViolation::new(self.manifest, self.line_of(repo, name), message, hint)
            })
            .collect()
    }

    fn may_use(&self) -> Option<&'static [&'static str]> {
        if self.manifest.starts_with("examples/") {
            return Some(EXAMPLES_MAY_USE);
        }
        MAY_USE
            .iter()
            .find(|(name, _)| *name == self.name)
            .map(|(_, may_use)| *may_use)
    }

    fn check_forbidden(&self, repo: &Repo) -> Vec<TidyViolation> {
        let forbidden = MAY_NOT_USE
            .iter()
            .find(|(name, _)| *name == self.name)
            .map_or(&[][..], |(_, list)| list);
        let mut found = Vec::new();
        for (name, dependency) in self.shipped_dependencies() {
            let line = self.line_of(repo, name);
            if forbidden.contains(&name) {
                let message = format!("`{}` may not depend on `{name}`", self.name);
                let hint =
                    "declare a port in `core` and put the adapter into store, a source or serve";
                found.push(TidyViolation::new(self.manifest, line, message, hint));
            }
            if self.name == CORE && name == "tokio" {
                let features = list(dependency, "features")
                    .iter()
                    .filter_map(Value::as_str);
                for feature in features.filter(|feature| TOKIO_IO_FEATURES.contains(feature)) {
                    let message = format!("`{CORE}` may not switch on tokio's `{feature}`");
                    let hint = "list tokio's features in this manifest: `workspace = true` brings the workspace's";
                    found.push(TidyViolation::new(self.manifest, line, message, hint));
                }
            }
        }
        found
    }

    /// Normal and build dependencies by package name, even if they were renamed.
    fn shipped_dependencies(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let dependencies = list(self.package, "dependencies").iter();
        dependencies
            .filter(|one| one["kind"] != "dev")
            .map(|one| (text(one, "name"), one))
    }

    fn line_of(&self, repo: &Repo, dependency: &str) -> usize {
        let manifest = repo
            .file(self.manifest)
            .map_or("", |file| file.text.as_str());
        let names_it = |line: &str| {
            line.trim_start()
                .trim_start_matches('"')
                .strip_prefix(dependency)
                .is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
        };
        manifest
            .lines()
            .position(names_it)
            .map_or(1, |index| index + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(folder: &str, name: &str, dependencies: &Value) -> Value {
        json!({ "name": name, "manifest_path": format!("/w/{folder}/Cargo.toml"), "dependencies": dependencies })
    }

    /// The violations of the crate `name` in `folder` with one dependency, beside three other crates.
    fn said(folder: &str, name: &str, dependency: &Value) -> Vec<String> {
        let mut packages = vec![package(folder, name, &json!([dependency]))];
        let others = [
            (MODEL, "crates/model"),
            (CORE, "crates/core"),
            ("toolpost", "crates/toolpost"),
        ];
        for (other, folder) in others.into_iter().filter(|(other, _)| *other != name) {
            packages.push(package(folder, other, &json!([])));
        }
        let metadata = json!({ "workspace_root": "/w", "packages": packages });
        check_metadata(&Repo::of(&[]), &metadata)
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    #[test]
    fn dependencies_point_one_way() {
        for (folder, name, dependency, kind, allowed) in [
            ("crates/core", CORE, MODEL, Value::Null, true),
            ("crates/core", CORE, "serde", Value::Null, true),
            ("crates/core", CORE, "axum", Value::Null, false),
            ("crates/core", CORE, "toolpost", Value::Null, false),
            ("crates/core", CORE, "toolpost", json!("build"), false),
            ("crates/core", CORE, "toolpost", json!("dev"), true),
            ("crates/model", MODEL, "tokio", Value::Null, false),
            ("examples/embed", "embed", CORE, Value::Null, true),
            ("examples/embed", "embed", "toolpost", Value::Null, false),
        ] {
            let message = format!("`{name}` may not depend on `{dependency}`");
            let expected = if allowed { vec![] } else { vec![message] };
            assert_eq!(
                said(folder, name, &json!({ "name": dependency, "kind": kind })),
                expected
            );
        }
    }

    #[test]
    fn core_leaves_io_to_adapters() {
        for (folder, name, feature, allowed) in [
            ("crates/core", CORE, "time", true),
            ("crates/core", CORE, "net", false),
            ("crates/core", CORE, "full", false),
            ("crates/serve", SERVE, "net", true),
        ] {
            let tokio = json!({ "name": "tokio", "kind": null, "features": ["sync", feature] });
            let message = format!("`{name}` may not switch on tokio's `{feature}`");
            let expected = if allowed { vec![] } else { vec![message] };
            assert_eq!(said(folder, name, &tokio), expected);
        }
    }

    #[test]
    fn a_new_crate_is_put_into_the_table() {
        let said = said("crates/new", "toolpost-new", &json!({ "name": "serde" }));
        assert_eq!(
            said,
            ["crate `toolpost-new` is not in the table of dependencies"]
        );
    }

    #[test]
    fn a_violation_names_the_line_of_the_dependency() {
        let manifest = "[dependencies]\naxum-core = \"1\"\naxum.workspace = true\n";
        let repo = Repo::of(&[("crates/core/Cargo.toml", manifest)]);
        let packages = [package(
            "crates/core",
            CORE,
            &json!([{ "name": "axum", "kind": null }]),
        )];
        let found = check_metadata(
            &repo,
            &json!({ "workspace_root": "/w", "packages": packages }),
        );
        assert_eq!(crate::tidy::places(&found), ["crates/core/Cargo.toml:3"]);
    }
}
