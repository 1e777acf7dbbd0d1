//! The dependencies that may enter through Cargo.lock: licenses, banned crates, sources. cargo-deny checks them if it
//! is installed. Otherwise this file applies the same deny.toml, so that a fresh machine does not skip it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::deny_file::DenyFile;
use super::license;
use crate::ChoreVerdict;
use crate::cargo::{answers, cargo, list, metadata, text, verdict};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check(root: &Path) -> anyhow::Result<ChoreVerdict> {
    if answers(&mut cargo(root, &["deny", "--version"])) {
        let args = ["deny", "check", "bans", "licenses", "sources"];
        return verdict(&mut cargo(root, &args));
    }
    eprintln!("cargo-deny is not installed: reading deny.toml without it");
    let deny_toml =
        fs::read_to_string(root.join("deny.toml")).context("cannot read `deny.toml`")?;
    let rules = DenyFile::parse(&deny_toml).context("cannot read `deny.toml`")?;
    let mut args = vec!["--all-features"];
    for target in &rules.targets {
        args.extend(["--filter-platform", target]);
    }
    let metadata = metadata(root, &args)?;
    let complaints = complaints(&rules, &metadata);
    for complaint in &complaints {
        println!("{complaint}");
    }
    let packages = list(&metadata, "packages").len();
    println!(
        "dependencies: {} complaints about {packages} packages",
        complaints.len()
    );
    Ok(ChoreVerdict::pass_if(complaints.is_empty()))
}

fn complaints(rules: &DenyFile, metadata: &Value) -> Vec<String> {
    let members: BTreeSet<&str> = list(metadata, "workspace_members")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut found = Vec::new();
    for package in list(metadata, "packages") {
        let name = text(package, "name");
        let version = text(package, "version");
        let mut complain = |what: String| found.push(format!("{name} {version}: {what}"));
        let expression = text(package, "license");
        match license::is_allowed(expression, &rules.allowed_licenses) {
            Ok(true) => {}
            Ok(false) => complain(format!(
                "license `{expression}` is not allowed by deny.toml"
            )),
            Err(error) => complain(format!("cannot read the license `{expression}`: {error}")),
        }
        if rules.banned.iter().any(|banned| banned == name) {
            complain("banned by deny.toml".to_owned());
        }
        if let Some(source) = package["source"]
            .as_str()
            .filter(|source| *source != CRATES_IO)
        {
            complain(format!("comes from `{source}`, not from crates.io"));
        }
        if members.contains(text(package, "id")) {
            wildcards(package)
                .for_each(|dependency| complain(format!("takes any version of `{dependency}`")));
        }
    }
    found
}

/// Dependencies from a registry without a version. Path dependencies have none.
fn wildcards(package: &Value) -> impl Iterator<Item = &str> {
    let dependencies = list(package, "dependencies").iter();
    dependencies
        .filter(|one| text(one, "req") == "*" && one["path"].is_null())
        .map(|one| text(one, "name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judge(package: &Value) -> Vec<String> {
        let rules = DenyFile {
            targets: Vec::new(),
            allowed_licenses: vec!["MIT".to_owned()],
            banned: vec!["openssl-sys".to_owned()],
            databases: Vec::new(),
        };
        complaints(
            &rules,
            &json!({ "packages": [package], "workspace_members": ["member"] }),
        )
    }

    #[test]
    fn packages_are_judged() {
        for (name, license, source, expected) in [
            ("a", "MIT", CRATES_IO, None),
            (
                "a",
                "GPL-3.0",
                CRATES_IO,
                Some("license `GPL-3.0` is not allowed by deny.toml"),
            ),
            (
                "a",
                "",
                CRATES_IO,
                Some("cannot read the license ``: no license is given"),
            ),
            ("openssl-sys", "MIT", CRATES_IO, Some("banned by deny.toml")),
            (
                "a",
                "MIT",
                "git+x.org",
                Some("comes from `git+x.org`, not from crates.io"),
            ),
        ] {
            let package =
                json!({ "name": name, "version": "1.0.0", "license": license, "source": source });
            let expected: Vec<String> = expected
                .iter()
                .map(|what| format!("{name} 1.0.0: {what}"))
                .collect();
            assert_eq!(judge(&package), expected);
        }
    }

    #[test]
    fn members_name_the_versions_they_take() {
        for (id, path, expected) in [
            (
                "member",
                Value::Null,
                &["a 1.0.0: takes any version of `b`"][..],
            ),
            ("member", json!("/w/b"), &[]),
            ("not ours to mend", Value::Null, &[]),
        ] {
            let dependencies = json!([{ "name": "b", "req": "*", "path": path }]);
            let package = json!({
                "id": id, "name": "a", "version": "1.0.0", "license": "MIT", "dependencies": dependencies,
            });
            assert_eq!(judge(&package), expected, "{id} {path}");
        }
    }
}
