//! What a server asks of the host: put to the caller of the call that it belongs to.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientResult, CustomResult, ErrorCode, ErrorData,
        Implementation, InitializeRequestParams, ProtocolVersion, ServerNotification,
        ServerRequest,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext, Service},
};
use serde_json::{Value, json};

use super::super::{
    consult::{self, UpstreamQuestionAnswer},
    desk::McpMessageRouter,
};

/// Answers what a server asks.
pub(super) struct UpstreamRequestHandler {
    pub(super) desk: Arc<McpMessageRouter>,
}

/// What the host tells servers that it can be asked.
pub(super) fn capabilities() -> ClientCapabilities {
    let offered = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    serde_json::from_value(offered).unwrap_or_default()
}

impl UpstreamRequestHandler {
    async fn answer(
        &self,
        request: ServerRequest,
        origin: Option<InboundStreamOrigin>,
    ) -> Result<Value, ErrorData> {
        if matches!(request, ServerRequest::PingRequest(_)) {
            return Ok(json!({}));
        }
        let mut asked = serde_json::to_value(&request).unwrap_or_default();
        let method = asked["method"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = consult::kind_of(&method, &asked["params"]) else {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        };
        let slot = match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => self.desk.of(&id.to_string()),
            Some(InboundStreamOrigin::Unassociated) | None => self.desk.asker(),
        };
        let Some((slot, call)) = slot
            .as_ref()
            .and_then(|slot| Some((slot, slot.call.as_ref()?)))
        else {
            let why = "it cannot be told which call this belongs to, so nobody can be asked";
            return Err(ErrorData::invalid_request(why, None));
        };
        let _open = slot.asking();
        match consult::ask(call, &self.desk.server, kind, asked["params"].take()).await {
            UpstreamQuestionAnswer::Value(value) => Ok(value),
            UpstreamQuestionAnswer::Refused { code, message } => {
                Err(ErrorData::new(ErrorCode(code), message, None))
            }
        }
    }
}

impl Service<RoleClient> for UpstreamRequestHandler {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let origin = context.extensions.get::<InboundStreamOrigin>().cloned();
        let withdrawn = || ErrorData::invalid_request("it was withdrawn", None);
        let Some(open) = self.desk.open_question(&context.id.to_string()) else {
            return Err(withdrawn());
        };
        let answered = tokio::select! {
            answered = self.answer(request, origin) => answered,
            () = open.notified() => Err(withdrawn()),
            () = context.ct.cancelled() => Err(withdrawn()),
        };
        answered.map(|value| ClientResult::CustomResult(CustomResult(value)))
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        // Those that mean something were heard on their way in.
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let who = Implementation::new("toolpost", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(capabilities(), who)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}
