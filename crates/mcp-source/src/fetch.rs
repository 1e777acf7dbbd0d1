//! Fetches the lists of a server, page by page.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use toolpost_model::SourceProblem;

use super::{
    McpServer, clean,
    client::{McpConnection, McpRequestError},
    definition::{Definition, problem},
    listing::objects,
};

/// The most tools of one server.
const TOOLS: usize = 10_000;
/// The most resources, templates or prompts of one server.
const OBJECTS: usize = 2_000;
/// The most pages of one list.
const PAGES: usize = 1_000;

pub(super) struct FetchedDefinitions {
    pub(super) tools: Vec<Definition>,
    pub(super) problems: Vec<SourceProblem>,
    /// Capabilities, resources, templates and prompts.
    pub(super) beside: Value,
}

/// Fetches all lists.
pub(super) async fn everything(
    connection: &McpConnection,
    server: &McpServer,
) -> Result<FetchedDefinitions, McpRequestError> {
    let capabilities = &connection.facts.capabilities;
    let mut problems = Vec::new();
    // A server without the capability is asked too: many servers have tools and do not declare the capability.
    let listed = match list(connection, "tools/list", "tools", TOOLS).await {
        Ok(listed) => listed,
        Err(McpRequestError::Remote { code: -32601, .. })
            if capabilities.get("tools").is_none() =>
        {
            PagedMcpList::default()
        }
        Err(error) => return Err(error),
    };
    problems.extend(
        listed
            .odd
            .map(|odd| problem(&server.name, SourceProblem::REDUCED, odd)),
    );
    let mut tools: Vec<Definition> = Vec::with_capacity(listed.entries.len());
    let mut names = HashSet::new();
    for entry in listed.entries {
        match Definition::read(entry, &server.name) {
            Ok(definition) if !server.wants(&definition.name) => {}
            Ok(definition) if !names.insert(definition.name.clone()) => {
                let message = format!(
                    "it lists `{}` more than once; only the first one is used",
                    definition.name
                );
                problems.push(problem(&server.name, "invalid_spec", message));
            }
            Ok(definition) => tools.push(definition),
            Err(problem) => problems.push(problem),
        }
    }
    let mut beside = json!({ "capabilities": kept_capabilities(capabilities) });
    for (capability, method, field, key, kept) in [
        (
            "resources",
            "resources/list",
            "resources",
            "uri",
            "resources",
        ),
        (
            "resources",
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            "templates",
        ),
        ("prompts", "prompts/list", "prompts", "name", "prompts"),
    ] {
        if capabilities.get(capability).is_none() {
            continue;
        }
        match list(connection, method, field, OBJECTS).await {
            Ok(listed) => {
                problems.extend(
                    listed
                        .odd
                        .map(|odd| problem(&server.name, SourceProblem::REDUCED, odd)),
                );
                let hidden = |entry: &&Value| entry[key].as_str().is_some_and(clean::has_hidden);
                let left_out = listed.entries.iter().filter(hidden).count();
                if left_out > 0 {
                    let message = format!(
                        "{left_out} entries of `{method}` are left out: their `{key}` contains invisible characters"
                    );
                    problems.push(problem(&server.name, SourceProblem::REDUCED, message));
                }
                beside[kept] = Value::Array(objects(listed.entries, key));
            }
            Err(error @ McpRequestError::Lost(_)) => return Err(error),
            // Many servers have resources and no templates.
            Err(McpRequestError::Remote { code: -32601, .. }) => {}
            Err(error) => {
                let message = format!("`{method}` failed: {error}");
                problems.push(problem(&server.name, SourceProblem::REDUCED, message));
            }
        }
    }
    Ok(FetchedDefinitions {
        tools,
        problems,
        beside,
    })
}

/// The capabilities that the host uses. Others are not stored.
fn kept_capabilities(capabilities: &Value) -> Value {
    let known = ["tools", "resources", "prompts", "completions", "logging"];
    let kept: Map<String, Value> = known
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), capabilities.get(name)?.clone())))
        .filter(|(_, value)| value.to_string().len() < 4096)
        .collect();
    Value::Object(kept)
}

#[derive(Default)]
struct PagedMcpList {
    entries: Vec<Value>,
    /// Why the list is incomplete.
    odd: Option<String>,
}

async fn list(
    connection: &McpConnection,
    method: &str,
    field: &str,
    most: usize,
) -> Result<PagedMcpList, McpRequestError> {
    let mut list = PagedMcpList::default();
    let (mut cursor, mut seen): (Option<String>, HashSet<String>) = (None, HashSet::new());
    for _ in 0..PAGES {
        let mut params = Map::new();
        if let Some(cursor) = &cursor {
            params.insert("cursor".to_owned(), Value::String(cursor.clone()));
        }
        let mut page = connection.request(method, params, Map::new(), None).await?;
        let Some(Value::Array(entries)) = page.get_mut(field).map(Value::take) else {
            return Err(McpRequestError::Unreadable(format!(
                "the answer to `{method}` has no `{field}`"
            )));
        };
        list.entries.extend(entries);
        if list.entries.len() > most {
            list.entries.truncate(most);
            list.odd = Some(format!(
                "`{method}` lists more than {most} entries; the others are left out"
            ));
            return Ok(list);
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            None => return Ok(list),
            Some(next) if !seen.insert(next.to_owned()) => {
                list.odd = Some(format!(
                    "`{method}` names the same next page twice; the list ends there"
                ));
                return Ok(list);
            }
            Some(next) => cursor = Some(next.to_owned()),
        }
    }
    list.odd = Some(format!(
        "`{method}` has more than {PAGES} pages; the others are left out"
    ));
    Ok(list)
}
