//! `docs/options.md` lists every flag and every key with its reason, and nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Repo, TidyViolation};

const PAGE: &str = "docs/options.md";
const FLAGS: &str = "docs/reference/cli.md";
/// The schema of the configuration file.
pub(super) const KEYS: &str = "docs/reference/toolpost.schema.json";
/// From here on the page lists removed options.
const END: &str = "## Dropped";

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let (Some(page), Some(flags), Some(schema)) =
        (repo.file(PAGE), repo.file(FLAGS), repo.file(KEYS))
    else {
        return Vec::new();
    };
    let schema: Value = match serde_json::from_str(&schema.text) {
        Ok(schema) => schema,
        Err(error) => {
            return vec![TidyViolation::new(
                KEYS,
                1,
                error.to_string(),
                "generate it again",
            )];
        }
    };
    let mut options: BTreeSet<String> = flags.text.lines().filter_map(flag).collect();
    collect_keys(&schema, &schema, "", &mut Vec::new(), &mut options);
    let listed = listed(&page.text);
    let violation = |option: &String, message: &str, hint: &str| {
        TidyViolation::new(PAGE, 1, format!("`{option}` {message}"), hint)
    };
    let missing = options.difference(&listed).map(|option| {
        let hint = "add a row that names its user, or drop the option";
        violation(option, "has no row", hint)
    });
    let gone = listed.difference(&options).map(|option| {
        violation(
            option,
            "is not an option",
            "remove it from the table, or correct its name",
        )
    });
    missing.chain(gone).collect()
}

/// The flag of a line in the reference, in its long form.
fn flag(line: &str) -> Option<String> {
    let text = line.strip_prefix("  ")?.trim_start();
    let text = match text.as_bytes() {
        [b'-', short, b',', b' ', ..] if *short != b'-' => &text[4..],
        _ => text,
    };
    let name = text.strip_prefix("--")?;
    let end = name.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
    Some(format!("--{}", &name[..end.unwrap_or(name.len())]))
}

/// The paths of the keys in a schema. A name that the operator chooses is `NAME`; an item of a list adds nothing.
fn collect_keys(
    root: &Value,
    schema: &Value,
    path: &str,
    within: &mut Vec<String>,
    keys: &mut BTreeSet<String>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        if within.iter().any(|seen| seen == reference) {
            return;
        }
        within.push(reference.to_owned());
        let pointer = reference.trim_start_matches('#');
        if let Some(target) = root.pointer(pointer) {
            collect_keys(root, target, path, within, keys);
        }
        within.pop();
    }
    for form in ["anyOf", "oneOf", "allOf"] {
        for schema in schema[form].as_array().into_iter().flatten() {
            collect_keys(root, schema, path, within, keys);
        }
    }
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = below(name);
        collect_keys(root, schema, &path, within, keys);
        keys.insert(path);
    }
    if schema["additionalProperties"].is_object() {
        let named = &schema["additionalProperties"];
        collect_keys(root, named, &below("NAME"), within, keys);
    }
    if schema["items"].is_object() {
        collect_keys(root, &schema["items"], path, within, keys);
    }
}

/// The options in the first column of the page's tables and in the headings of sections.
fn listed(page: &str) -> BTreeSet<String> {
    let lines = page.lines().take_while(|line| *line != END);
    let cells = lines.filter_map(|line| match line.strip_prefix("| ") {
        Some(row) => Some(row.split(" | ").next().unwrap_or(row)),
        None => line.strip_prefix("### "),
    });
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let options = names.filter(|name| !name.starts_with("toolpost"));
    options.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(page: &str) -> Vec<String> {
        let flags = "toolpost\n\n  -n, --lines <COUNT>\n          How many\n      --json\n";
        let schema = r##"{ "properties": { "limits": { "$ref": "#/$defs/L" }, "tools": { "additionalProperties": { "$ref": "#/$defs/T" } } },
            "$defs": { "L": { "properties": { "queue": {} } }, "T": { "properties": { "hidden": {} } } } }"##;
        let repo = Repo::of(&[(PAGE, page), (FLAGS, flags), (KEYS, schema)]);
        check(&repo)
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    #[test]
    fn every_option_has_a_row_and_every_row_an_option() {
        let page = "| flag | needed by |\n|---|---|\n| `--json`, `--lines` | a script |\n\n### `limits`\n\n| `limits.queue` | x |\n\n### `tools`\n\n| `tools.NAME.hidden` | y |\n\n## Dropped\n\n| `--gone` | z |\n";
        assert!(violations(page).is_empty());
        let page = page
            .replace(", `--lines`", ", `--line`")
            .replace("| `limits.queue` | x |", "");
        let expected = [
            "`--lines` has no row",
            "`limits.queue` has no row",
            "`--line` is not an option",
        ];
        assert_eq!(violations(&page), expected);
    }
}
