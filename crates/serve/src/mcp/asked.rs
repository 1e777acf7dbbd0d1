//! Reads the parameters of every method into one type, which all transports and both eras pass to the same functions.

use std::{borrow::Cow, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    fault::McpFault,
    meta::{McpClientCapabilities, McpLogLevel, RequestMeta},
    wire,
};

/// The longest name or address. No tool, prompt or resource has a longer one.
const LONGEST_NAME: usize = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum McpMethod {
    Initialize,
    Ping,
    SetLevel,
    Discover,
    Listen,
    ListTools,
    CallTool,
    ListResources,
    ListTemplates,
    ReadResource,
    Subscribe,
    Unsubscribe,
    ListPrompts,
    GetPrompt,
    Complete,
    Other,
}

impl McpMethod {
    pub(super) fn read(name: &str) -> Self {
        match name {
            "initialize" => Self::Initialize,
            "ping" => Self::Ping,
            "logging/setLevel" => Self::SetLevel,
            "server/discover" => Self::Discover,
            "subscriptions/listen" => Self::Listen,
            "tools/list" => Self::ListTools,
            "tools/call" => Self::CallTool,
            "resources/list" => Self::ListResources,
            "resources/templates/list" => Self::ListTemplates,
            "resources/read" => Self::ReadResource,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "prompts/list" => Self::ListPrompts,
            "prompts/get" => Self::GetPrompt,
            "completion/complete" => Self::Complete,
            _ => Self::Other,
        }
    }

    /// Whether an era has the method.
    pub(super) fn is_of(self, modern: bool) -> bool {
        match self {
            Self::Initialize
            | Self::Ping
            | Self::SetLevel
            | Self::Subscribe
            | Self::Unsubscribe => !modern,
            Self::Discover | Self::Listen => modern,
            Self::ListTools
            | Self::CallTool
            | Self::ListResources
            | Self::ListTemplates
            | Self::ReadResource
            | Self::ListPrompts
            | Self::GetPrompt
            | Self::Complete => true,
            Self::Other => false,
        }
    }
}

/// The parameters of all methods. Parameters that a method does not have are ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct McpRequestParams<'a> {
    #[serde(rename = "_meta")]
    meta: RequestMeta,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    cursor: Option<String>,
    input_responses: Option<Map<String, Value>>,
    request_state: Option<String>,
    level: Option<McpLogLevel>,
    #[serde(rename = "ref")]
    reference: Option<Value>,
    argument: Option<Value>,
    context: Option<Value>,
    notifications: Option<Value>,
    protocol_version: Option<String>,
    capabilities: Option<Value>,
}

#[derive(Debug)]
pub(super) struct McpRequest {
    pub(super) method: McpMethod,
    pub(super) meta: RequestMeta,
    pub(super) name: Option<String>,
    pub(super) uri: Option<String>,
    /// The arguments, exactly as received.
    pub(super) arguments: Option<Arc<str>>,
    pub(super) cursor: Option<String>,
    pub(super) answers: Map<String, Value>,
    pub(super) state: Option<String>,
    pub(super) level: Option<McpLogLevel>,
    /// `ref`, `argument` and `context` of a completion.
    pub(super) completion: [Option<Value>; 3],
    /// The notifications that the client requests.
    pub(super) filter: Option<Value>,
    pub(super) handshake: HandshakeWish,
}

#[derive(Debug)]
pub(super) struct HandshakeWish {
    pub(super) version: Option<String>,
    announced: Option<Value>,
}

impl HandshakeWish {
    pub(super) fn version(&self) -> Result<&str, McpFault> {
        self.version
            .as_deref()
            .ok_or_else(|| McpFault::invalid_params("`protocolVersion` is missing"))
    }

    pub(super) fn capabilities(&self) -> McpClientCapabilities {
        self.announced
            .as_ref()
            .and_then(McpClientCapabilities::of)
            .unwrap_or_default()
    }
}

impl McpRequest {
    /// Whether the answer to the request may be a question.
    pub(super) fn may_ask(&self) -> bool {
        matches!(
            self.method,
            McpMethod::CallTool | McpMethod::ReadResource | McpMethod::GetPrompt
        )
    }

    pub(super) fn read(method: McpMethod, params: Option<&RawValue>) -> Result<Self, McpFault> {
        let McpRequestParams {
            meta,
            name,
            uri,
            arguments,
            cursor,
            input_responses,
            request_state,
            level,
            reference,
            argument,
            context,
            notifications,
            protocol_version,
            capabilities,
        } = wire::params(params)?;
        if [&name, &uri]
            .into_iter()
            .flatten()
            .any(|text| text.len() > LONGEST_NAME)
        {
            return Err(McpFault::invalid_params(format!(
                "`name` and `uri` have at most {LONGEST_NAME} bytes"
            )));
        }
        Ok(Self {
            method,
            meta,
            name: name.map(Cow::into_owned),
            uri: uri.map(Cow::into_owned),
            arguments: arguments.map(|raw| Arc::from(raw.get())),
            cursor,
            answers: input_responses.unwrap_or_default(),
            state: request_state,
            level,
            completion: [reference, argument, context],
            filter: notifications,
            handshake: HandshakeWish {
                version: protocol_version,
                announced: capabilities,
            },
        })
    }

    pub(super) fn name(&self) -> Result<&str, McpFault> {
        self.name
            .as_deref()
            .ok_or_else(|| McpFault::invalid_params("`name` is missing"))
    }

    pub(super) fn uri(&self) -> Result<&str, McpFault> {
        self.uri
            .as_deref()
            .ok_or_else(|| McpFault::invalid_params("`uri` is missing"))
    }
}
