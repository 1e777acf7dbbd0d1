//! Rust examples in `docs`: each item that they import from a library exists in the listing of its public API.

use super::{Repo, TidyViolation};

/// The listing of each library's public API.
pub(super) const LISTINGS: &str = "docs/reference/api";

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let pages = repo.files.iter().filter(|file| {
        let path = file.path.as_str();
        path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'))
    });
    let mut found = Vec::new();
    for page in pages {
        for (line, library, name) in imports(&page.text) {
            let listing = format!("{LISTINGS}/toolpost-{library}.txt");
            // The other libraries have no listing.
            let Some(listing) = repo.file(&listing) else {
                continue;
            };
            if !has_item(&listing.text, &format!("toolpost_{library}::{name}")) {
                let message = format!("`toolpost_{library}` has no `{name}`");
                let hint = format!("`{}` lists its items", listing.path);
                found.push(TidyViolation::new(&page.path, line, message, hint));
            }
        }
    }
    found
}

/// Whether an API has an item with exactly this path.
fn has_item(listing: &str, path: &str) -> bool {
    let mut rest = listing;
    while let Some(at) = rest.find(path) {
        rest = &rest[at + path.len()..];
        if !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == ':') {
            return true;
        }
    }
    false
}

/// The items that the Rust examples of a page import from Toolpost's libraries: line, library, name.
fn imports(markdown: &str) -> Vec<(usize, String, String)> {
    let mut imports = Vec::new();
    let mut in_example = false;
    let mut library: Option<String> = None;
    let mut module = String::new();
    for (place, line) in markdown.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_example = language == "rust";
            library = None;
            continue;
        }
        if !in_example {
            continue;
        }
        let mut rest = line;
        // `library::module::{…}`: the items are the module's.
        if let Some((name, items)) = line
            .trim_start()
            .strip_prefix("use toolpost_")
            .and_then(|import| import.split_once("::"))
        {
            library = Some(name.to_owned());
            module.clear();
            rest = items;
            if let Some((path, items)) = items.split_once("::{") {
                module = format!("{path}::");
                rest = items;
            }
        }
        let Some(name) = &library else { continue };
        let items = rest.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        imports.extend(
            items
                .filter(|item| !item.is_empty())
                .map(|item| (place + 1, name.clone(), format!("{module}{item}"))),
        );
        if rest.contains(';') {
            library = None;
        }
    }
    imports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_of_rust_examples_are_found() {
        let page = "```rust\nuse std::fmt;\nuse toolpost_model::{\n    Tool, ToolCall,\n};\nuse toolpost_core::Host;\nuse toolpost_testkit::amplifier::{MockTool};\n```\n```sh\nuse toolpost_model::X;\n```\n";
        let expected = [
            (4, "model", "Tool"),
            (4, "model", "ToolCall"),
            (6, "core", "Host"),
            (7, "testkit", "amplifier::MockTool"),
        ];
        let expected =
            expected.map(|(line, library, name)| (line, library.to_owned(), name.to_owned()));
        assert_eq!(imports(page), expected);
    }

    #[test]
    fn an_item_is_its_whole_path() {
        let listing =
            "pub struct toolpost_model::ToolProgress\npub fn toolpost_model::Tool::check(&self)\n";
        assert!(has_item(listing, "toolpost_model::ToolProgress"));
        assert!(!has_item(listing, "toolpost_model::Progress"));
        assert!(!has_item(listing, "toolpost_model::ToolPro"));
        assert!(!has_item(listing, "toolpost_model::Tool"));
    }
}
