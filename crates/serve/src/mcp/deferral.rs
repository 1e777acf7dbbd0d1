//! Two tools for deferred tools: one that searches them, and one that calls them for clients that call only listed
//! tools. Both exist only if there are deferred tools.

use serde::Deserialize;
use serde_json::{Value, json};
use toolpost_core::{Surface, SurfaceEntry, ToolFilter};
use toolpost_model::Visibility;

use super::{
    asked::McpRequest,
    exchange::ExchangeResult,
    fault::McpFault,
    listing::definition,
    peer::McpPeer,
    wire::{self, McpReply},
};

const FOUND_BY_DEFAULT: usize = 5;
const MOST_FOUND: usize = 20;
/// The most tries to find a name that no tool has.
const TRIES: usize = 8;

/// The names of the two tools, which no other tool has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeferralToolNames {
    search: String,
    call: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeferralTool {
    Search,
    Call,
}

impl DeferralToolNames {
    pub(super) fn free_on(surface: &Surface) -> Self {
        let free = |name: &str| {
            let prefixed = (0..TRIES).map(|times| "toolpost_".repeat(times) + name);
            prefixed
                .into_iter()
                .find(|name| surface.find(name).is_none())
                .unwrap_or_else(|| name.to_owned())
        };
        Self {
            search: free("search_tools"),
            call: free("call_tool"),
        }
    }

    pub(super) fn meant(&self, name: &str) -> Option<DeferralTool> {
        if name == self.search {
            Some(DeferralTool::Search)
        } else if name == self.call {
            Some(DeferralTool::Call)
        } else {
            None
        }
    }

    /// The definitions of both tools, as listed.
    pub(super) fn definitions(&self) -> Vec<String> {
        let search = json!({
            "name": self.search,
            "title": "Search tools",
            "description": "Finds tools that are not in the list, by what they do. Answers their names, descriptions \
                            and schemas; what was found can be called from then on.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Words for what the tool should do" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND,
                               "description": "How many to answer at most" },
                },
                "required": ["query"],
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
                             "openWorldHint": false },
        });
        let call = json!({
            "name": self.call,
            "title": "Call a tool",
            "description": format!(
                "Calls a tool that {} found, as if it were called by its own name.", self.search
            ),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "The tool's name" },
                    "arguments": { "type": "object", "description": "Its arguments, by its own schema" },
                },
                "required": ["name"],
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false,
                             "openWorldHint": true },
        });
        vec![wire::json(&search), wire::json(&call)]
    }
}

/// The tool that a name stands for on this peer's surface. The names are computed only for names that can match.
pub(super) fn meant(peer: &McpPeer, name: &str) -> Option<DeferralTool> {
    if !name.ends_with("search_tools") && !name.ends_with("call_tool") {
        return None;
    }
    let surface = peer.face.host.surface(&peer.session);
    peer.face.lists.of(&surface).deferral.as_ref()?.meant(name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeferredSearchArguments {
    query: String,
    limit: Option<usize>,
}

/// Parses arguments that are an object.
fn arguments<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    wire::is_object(text)
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}

/// The answer for invalid arguments. It is a result of the tool, because the model can correct them.
fn mistaken(peer: &McpPeer, expected: &str) -> McpReply {
    let text = format!("invalid_arguments: {expected}; other properties are not allowed");
    let told = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    McpReply::Text(wire::json(&super::complete(told, peer)))
}

/// Searches tools, listed ones included, and marks the found tools as discovered by this session.
pub(super) async fn search(peer: &McpPeer, asked: &McpRequest) -> ExchangeResult {
    let Some(wanted) =
        arguments::<DeferredSearchArguments>(asked.arguments.as_deref().unwrap_or("{}"))
    else {
        return Ok(mistaken(
            peer,
            "`query` must be a text and is required, `limit` must be a whole number",
        ));
    };
    let limit = wanted
        .limit
        .unwrap_or(FOUND_BY_DEFAULT)
        .clamp(1, MOST_FOUND);
    let filter = ToolFilter {
        query: wanted.query,
        include_deferred: true,
        limit: Some(limit),
        ..ToolFilter::default()
    };
    let found = peer.face.host.list(&peer.session, &filter).await;
    if let Some(stay) = &peer.stay {
        let deferred = found
            .iter()
            .filter(|tool| tool.visibility == Visibility::Deferred);
        stay.join(deferred.map(|tool| tool.entry.name().to_owned()));
    }
    let tools: Vec<Value> = found
        .iter()
        .filter_map(|tool| serde_json::from_str(&definition(tool)).ok())
        .collect();
    let text = match found.is_empty() {
        true => "no tool found; try other words".to_owned(),
        false => found.iter().map(told).collect::<Vec<_>>().join("\n\n"),
    };
    let told = json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": { "tools": tools },
        "isError": false,
    });
    Ok(McpReply::Text(wire::json(&super::complete(told, peer))))
}

fn told(tool: &SurfaceEntry) -> String {
    let declaration = tool.entry.declaration();
    format!(
        "{}: {}\ninput schema: {}",
        tool.entry.name(),
        declaration.description,
        declaration.input.schema
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeferredCallArguments<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a serde_json::value::RawValue>,
}

/// Turns a call through the second tool into a direct call of the named tool.
pub(super) fn unwrap(peer: &McpPeer, mut asked: McpRequest) -> Result<McpRequest, ExchangeResult> {
    let text = asked.arguments.take().unwrap_or_else(|| "{}".into());
    let Some(called) = arguments::<DeferredCallArguments<'_>>(&text) else {
        return Err(Ok(mistaken(
            peer,
            "`name` must be a text and is required, `arguments` must be an object",
        )));
    };
    if meant(peer, &called.name).is_some() {
        return Err(Err(McpFault::invalid_params(
            "this tool cannot call itself",
        )));
    }
    asked.arguments = called.arguments.map(|raw| raw.get().into());
    asked.name = Some(called.name);
    Ok(asked)
}
