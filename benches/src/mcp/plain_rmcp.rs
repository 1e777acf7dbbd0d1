//! An echo server on plain rmcp, with its best options. Only this module of the benchmarks uses that crate.

use std::sync::Arc;

use axum::Router;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::{
        io::stdio_pipes,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};

/// Cloned for every request in the stateless revision, so a clone must cost nothing.
#[derive(Clone)]
struct Echo(Arc<Vec<Tool>>);

impl Echo {
    fn new(count: usize) -> anyhow::Result<Self> {
        let schema: JsonObject = serde_json::from_value(serde_json::json!({
            "type": "object",
            "properties": { "message": { "type": "string" } },
            "required": ["message"],
        }))?;
        let schema = Arc::new(schema);
        let tool = |place: usize| {
            let name = if place == 0 {
                "echo".to_owned()
            } else {
                format!("echo_{place}")
            };
            let description = format!(
                "Gives the message back, variant {place}, for measuring how a host carries many tools"
            );
            Tool::new(name, description, Arc::clone(&schema))
        };
        Ok(Self(Arc::new((0..count).map(tool).collect())))
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = request
            .arguments
            .as_ref()
            .and_then(|given| given.get("message")?.as_str());
        let message =
            message.ok_or_else(|| ErrorData::invalid_params("a message is needed", None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(message)]).into())
    }
}

/// Over HTTP: plain JSON in the revision that allows it, sessions and their streams in the other.
pub(crate) fn serve(words: &[String]) -> anyhow::Result<Router> {
    let echo = Echo::new(words.first().map_or(Ok(1), |count| count.parse())?)?;
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service: StreamableHttpService<Echo, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(echo.clone()), Arc::default(), config);
    Ok(Router::new().nest_service("/mcp", service))
}

/// Over its own pipes, until they close.
pub(crate) async fn converse() -> anyhow::Result<()> {
    Echo::new(1)?.serve(stdio_pipes()).await?.waiting().await?;
    Ok(())
}
