//! The part of deny.toml that `check` judges without cargo-deny. It reads only the shape that file
//! has, lists with one entry a line, which saves a TOML parser in every `cargo xtask`.

use anyhow::{Context, ensure};

#[derive(PartialEq, Eq, Debug)]
pub(crate) struct DenyFile {
    /// The platforms of the checked dependencies.
    pub(crate) targets: Vec<String>,
    pub(crate) allowed_licenses: Vec<String>,
    pub(crate) banned: Vec<String>,
    /// The databases of advisories.
    pub(crate) databases: Vec<String>,
}

impl DenyFile {
    pub(crate) fn parse(text: &str) -> anyhow::Result<DenyFile> {
        Ok(DenyFile {
            targets: entries(text, "[graph]", "targets")?,
            allowed_licenses: entries(text, "[licenses]", "allow")?,
            banned: entries(text, "[bans]", "deny")?,
            databases: entries(text, "[advisories]", "db-urls")?,
        })
    }
}

/// A missing or unreadable list is an error: an empty one would allow everything.
fn entries(text: &str, section: &str, key: &str) -> anyhow::Result<Vec<String>> {
    let opening = format!("{key} = [");
    let list = text
        .lines()
        .skip_while(|line| *line != section)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .skip_while(|line| *line != opening)
        .skip(1)
        .take_while(|line| *line != "]");
    let lines: Vec<&str> = list
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    ensure!(
        !lines.is_empty(),
        "no list `{opening}` with one entry a line in `{section}`"
    );
    lines.iter().map(|line| entry(line)).collect()
}

/// `"name",` or `{ crate = "name", reason = "…" },`.
fn entry(line: &str) -> anyhow::Result<String> {
    let value = line.strip_prefix("{ crate = ").unwrap_or(line);
    let name = value
        .strip_prefix('"')
        .and_then(|rest| rest.split('"').next());
    name.map(str::to_owned)
        .with_context(|| format!("cannot read the entry `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_from_their_sections() {
        let text = "\
[graph]
targets = [
    \"linux\",
]

[licenses]
allow = [
    # why
    \"MIT\",
    \"Apache-2.0 WITH LLVM-exception\",
]

[bans]
wildcards = \"deny\"
deny = [
    { crate = \"openssl-sys\", reason = \"a system library\" },
    \"async-std\",
]

[advisories]
db-urls = [
    \"https://advisories.example\",
]
";
        let expected = DenyFile {
            targets: vec!["linux".to_owned()],
            allowed_licenses: vec![
                "MIT".to_owned(),
                "Apache-2.0 WITH LLVM-exception".to_owned(),
            ],
            banned: vec!["openssl-sys".to_owned(), "async-std".to_owned()],
            databases: vec!["https://advisories.example".to_owned()],
        };
        assert_eq!(DenyFile::parse(text).unwrap(), expected);
        for broken in [
            text.replace("[bans]", "[bans ]"),
            text.replace("\"MIT\"", "MIT"),
            text.replace("allow = [", "allow=["),
        ] {
            assert!(DenyFile::parse(&broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn the_repository_s_file_has_the_shape() {
        let rules = DenyFile::parse(include_str!("../../../deny.toml")).unwrap();
        assert!(
            rules
                .allowed_licenses
                .iter()
                .any(|license| license == "MIT")
        );
        assert!(rules.banned.iter().any(|banned| banned == "openssl-sys"));
    }
}
