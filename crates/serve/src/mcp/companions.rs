//! Resources, prompts and completions: the offers of sources besides tools, served by tools, and the host's own
//! resources.

use serde_json::{Map, Value, json};
use toolpost_core::{Host, Session};
use toolpost_model::{ErrorClass, ModelInput, SourceCompanions, ToolId, ToolResult};

use super::{
    artifacts,
    asked::McpRequest,
    calling,
    exchange::{ExchangeOutlet, ExchangeResult},
    fault::McpFault,
    listing::FRESH_FOR_MS,
    meta::RequestMeta,
    offers::{AddressedOfferKind, CompanionOffers, OfferedPrompt},
    peer::McpPeer,
    wire::{self, McpReply},
};

/// The code for parameters that name nothing.
const INVALID: i32 = -32602;
/// The entries of one page.
const PAGE: usize = 1_000;

fn offered(peer: &McpPeer) -> CompanionOffers {
    CompanionOffers::to(&peer.face.host, &peer.session)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompanionListKind {
    Resources,
    Templates,
    Prompts,
}

impl CompanionListKind {
    /// The list's name in a result, and the member that identifies an entry.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Resources => ("resources", "uri"),
            Self::Templates => ("resourceTemplates", "uriTemplate"),
            Self::Prompts => ("prompts", "name"),
        }
    }
}

/// The kinds of offers that exist, so that the handshake announces nothing that does not work.
pub(super) struct McpAbilities {
    pub(super) prompts: bool,
    pub(super) completions: bool,
    pub(super) subscriptions: bool,
}

pub(super) fn abilities(peer: &McpPeer) -> McpAbilities {
    let offered = offered(peer);
    McpAbilities {
        prompts: offered
            .any(|companions| companions.prompt.is_some() || !companions.prompts.is_empty()),
        completions: offered.any(|companions| companions.complete.is_some()),
        subscriptions: offered.any(|companions| companions.subscribe.is_some()),
    }
}

/// Answers one of the lists, in a fixed order.
pub(super) fn list(
    peer: &McpPeer,
    kind: CompanionListKind,
    cursor: Option<&str>,
) -> ExchangeResult {
    if kind == CompanionListKind::Prompts && !abilities(peer).prompts {
        return Err(McpFault::no_such_method("prompts/list"));
    }
    let (name, key) = kind.words();
    let offered = offered(peer);
    let addressed = |kind| {
        offered
            .addressed(kind, &peer.face.clashes)
            .into_iter()
            .cloned()
    };
    let mut entries: Vec<Value> = match kind {
        CompanionListKind::Resources => addressed(AddressedOfferKind::Resources).collect(),
        CompanionListKind::Templates => addressed(AddressedOfferKind::Templates)
            .chain([artifacts::template()])
            .collect(),
        CompanionListKind::Prompts => offered.prompts().iter().map(OfferedPrompt::entry).collect(),
    };
    entries.sort_by(|one, other| one[key].as_str().cmp(&other[key].as_str()));
    let from = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|from: &usize| *from < entries.len())
            .ok_or_else(|| McpFault::invalid_params("the cursor does not belong to this list"))?,
    };
    let page: Vec<&Value> = entries.iter().skip(from).take(PAGE).collect();
    let mut told = json!({ name: page });
    if from + PAGE < entries.len() {
        told["nextCursor"] = json!((from + PAGE).to_string());
    }
    Ok(McpReply::Text(wire::json(&super::cached(
        told,
        peer,
        FRESH_FOR_MS,
    ))))
}

/// Calls a tool that serves such a request. Its structured content is the whole result.
async fn serve(
    peer: &McpPeer,
    tool: &ToolId,
    arguments: Value,
    meta: &mut RequestMeta,
    outlet: &ExchangeOutlet,
) -> Result<Map<String, Value>, McpFault> {
    let ran = calling::run(
        peer,
        tool.to_string(),
        ModelInput::value(arguments),
        meta,
        outlet,
    )
    .await;
    let result = ran.answer.result();
    if let Some(kind) = ran.lacked {
        return Err(calling::missing_capability(kind));
    }
    if result.is_error {
        return Err(fault(result));
    }
    let told = match &result.structured_content {
        Some(told) => Some(told.clone()),
        // A reader of a resource needs all of it.
        None => artifacts::structured(peer, result).await,
    };
    match told {
        Some(Value::Object(object)) => Ok(object),
        Some(_) => Err(McpFault::internal(
            "the answer of the source is not a valid result",
        )),
        None => Err(McpFault::internal(format!(
            "the result is not shown: {}",
            result.remarks().join("; ")
        ))),
    }
}

/// The fault for a failed call of a request that has no place for a tool's errors. If an MCP server refused the
/// request, its code is among the details; a missing resource has two possible codes.
fn fault(result: &ToolResult) -> McpFault {
    let Some(error) = &result.error else {
        return McpFault::internal("the source failed");
    };
    let hint = error
        .hint
        .as_deref()
        .map(|hint| format!("; {hint}"))
        .unwrap_or_default();
    let message = format!("{}{hint}", error.message);
    let code = error
        .details
        .as_ref()
        .and_then(|details| details["mcp_code"].as_i64());
    let about = json!({ "class": error.class.as_str(), "invocationId": result.invocation_id });
    match (error.class, code) {
        (ErrorClass::InvalidArguments | ErrorClass::SchemaValidationFailed, _)
        | (_, Some(-32602 | -32002)) => McpFault::invalid_params(message).with(about),
        _ => McpFault::internal(message).with(about),
    }
}

/// Answers `resources/read`.
pub(super) async fn read(
    peer: &McpPeer,
    mut asked: McpRequest,
    outlet: &ExchangeOutlet,
) -> ExchangeResult {
    let uri = asked.uri()?.to_owned();
    if artifacts::is_one(&uri) {
        return artifacts::read(peer, &uri).await;
    }
    let offered = offered(peer);
    let missing = || McpFault::no_such_resource(&uri, peer.is_modern());
    let tool = offered
        .owner(&uri)
        .and_then(|found| found.read.clone())
        .ok_or_else(missing)?;
    let read = serve(peer, &tool, json!({ "uri": uri }), &mut asked.meta, outlet).await;
    let told = read.map_err(|fault| match fault.code {
        // The address is the only parameter of the request, so it must be the cause.
        INVALID => missing(),
        _ => fault,
    })?;
    Ok(McpReply::Text(wire::json(&super::cached(
        Value::Object(told),
        peer,
        0,
    ))))
}

pub(super) async fn prompt(
    peer: &McpPeer,
    mut asked: McpRequest,
    outlet: &ExchangeOutlet,
) -> ExchangeResult {
    let name = asked.name()?.to_owned();
    let offered = offered(peer);
    let found = offered.prompt(&name);
    let Some((own, tool)) = found.and_then(|found| Some((found.own, found.of.prompt.clone()?)))
    else {
        let shown: String = name
            .chars()
            .take(200)
            .flat_map(char::escape_debug)
            .collect();
        return Err(McpFault::invalid_params(format!(
            "no prompt is called `{shown}`"
        )));
    };
    let arguments: Value = match asked.arguments.take() {
        None => json!({}),
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            McpFault::invalid_params(format!("the arguments cannot be read: {error}"))
        })?,
    };
    let call = json!({ "name": own, "arguments": arguments });
    let told = serve(peer, &tool, call, &mut asked.meta, outlet).await?;
    Ok(McpReply::Text(wire::json(&super::complete(
        Value::Object(told),
        peer,
    ))))
}

/// Answers `completion/complete`.
pub(super) async fn complete(
    peer: &McpPeer,
    mut asked: McpRequest,
    outlet: &ExchangeOutlet,
) -> ExchangeResult {
    if !abilities(peer).completions {
        return Err(McpFault::no_such_method("completion/complete"));
    }
    let [reference, argument, context] = std::mem::take(&mut asked.completion);
    let (Some(mut reference), Some(argument)) = (reference, argument) else {
        return Err(McpFault::invalid_params(
            "`ref` and `argument` are required",
        ));
    };
    let offered = offered(peer);
    let found = match reference["type"].as_str() {
        Some("ref/prompt") => {
            let found = reference["name"]
                .as_str()
                .and_then(|name| offered.prompt(name));
            found.map(|found| {
                // The server uses its own name for the prompt.
                reference["name"] = json!(found.own);
                found.of
            })
        }
        Some("ref/resource") => reference["uri"]
            .as_str()
            .and_then(|uri| offered.lister(uri)),
        _ => {
            return Err(McpFault::invalid_params(
                "`ref` must name a prompt or a resource",
            ));
        }
    };
    let Some(tool) = found.and_then(|found| found.complete.clone()) else {
        return Err(McpFault::invalid_params(
            "`ref` names an unknown prompt or resource",
        ));
    };
    let mut call = json!({ "ref": reference, "argument": argument });
    if let Some(context) = context {
        call["context"] = context;
    }
    let told = serve(peer, &tool, call, &mut asked.meta, outlet).await?;
    Ok(McpReply::Text(wire::json(&super::complete(
        Value::Object(told),
        peer,
    ))))
}

/// Whether the client subscribes or unsubscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscriptionChange {
    Told,
    NotTold,
}

impl SubscriptionChange {
    fn tool(self, companions: &SourceCompanions) -> Option<ToolId> {
        match self {
            Self::Told => companions.subscribe.clone(),
            Self::NotTold => companions.unsubscribe.clone(),
        }
    }
}

/// Subscribes to the changes of a resource at its source, or unsubscribes.
pub(super) async fn subscribe(
    peer: &McpPeer,
    uri: &str,
    wish: SubscriptionChange,
    outlet: &ExchangeOutlet,
) -> Result<(), McpFault> {
    let offered = offered(peer);
    let missing = || McpFault::no_such_resource(uri, peer.is_modern());
    let found = offered.owner(uri).ok_or_else(missing)?;
    let Some(tool) = wish.tool(found) else {
        return Ok(());
    };
    let done = serve(
        peer,
        &tool,
        json!({ "uri": uri }),
        &mut RequestMeta::default(),
        outlet,
    )
    .await;
    done.map(|_| ()).map_err(|fault| {
        if fault.code == INVALID {
            missing()
        } else {
            fault
        }
    })
}

/// The tool that subscribes at the source of a resource.
pub(super) fn teller(
    host: &Host,
    session: &Session,
    uri: &str,
    wish: SubscriptionChange,
) -> Option<ToolId> {
    CompanionOffers::to(host, session)
        .owner(uri)
        .and_then(|found| wish.tool(found))
}
