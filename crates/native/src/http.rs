//! The HTTP tools: namespace `http`.
//!
//! What a URL leads to is looked at three times: its host if that is an address (`target`), every address its name
//! stands for before a connection is made (`names`), and who really answered (`exchange`); all of it again at every
//! redirect. Bodies are counted while they come in, after decompression, and everything ends at the deadline.

mod body;
mod charset;
mod exchange;
mod fetch_page;
mod http_request;
mod request_headers;

use std::sync::Arc;

use schemars::JsonSchema;
use toolpost_model::{
    AccessKind, ArgumentKind, ArgumentMeaning, CancelSupport, Declaration, DynTool, EffectClass,
    ExecutionKind, InputRefusal, ResourceKey, ToolKind,
};
use toolpost_processes::{HttpClients, HttpTarget, NetworkSettings, Workspace};

use super::declaration;

/// The longest time a call may give itself.
const LONGEST_SECONDS: u64 = 300;
/// What the host should allow a call: a little more, so that the tool itself says what it waited for.
const TIMEOUT_MS: u64 = (LONGEST_SECONDS + 10) * 1000;

/// The HTTP tools. Bodies are saved into files of `workspace`.
pub(super) fn tools(workspace: Arc<Workspace>, settings: NetworkSettings) -> Vec<Arc<dyn DynTool>> {
    let network = Arc::new(HttpToolNetwork {
        clients: HttpClients::new(settings.names.clone()),
        settings,
    });
    vec![
        Arc::new(http_request::HttpRequest::new(workspace, network.clone())),
        Arc::new(fetch_page::FetchPage::new(network)),
    ]
}

/// What both tools work with.
struct HttpToolNetwork {
    settings: NetworkSettings,
    clients: HttpClients,
}

/// What both tools have in common.
fn declare<In: JsonSchema, Out: JsonSchema>(name: &str, description: &str) -> Declaration {
    let class = EffectClass::Network;
    let mut declaration =
        declaration::declare::<In, Out>(ToolKind::Http, "http", name, description, class);
    declaration.tags = vec!["http".to_owned(), "network".to_owned()];
    let interface = &mut declaration.interface;
    interface.execution.kind = ExecutionKind::EmbeddedRuntime;
    interface.execution.cancel = CancelSupport::AtAwaitPoints;
    interface.execution.streaming = true;
    interface.execution.timeout_ms = Some(TIMEOUT_MS);
    interface.rendering.subject_argument = Some("url".to_owned());
    interface.permission.access = vec![AccessKind::Network];
    interface.permission.arguments = vec![ArgumentMeaning::of("url", ArgumentKind::Url)];
    declaration
}

/// The scheduler's name of what a URL stands for, and the fact that a decision is made on: scheme, host, port and
/// path as they will be requested. The query is among the arguments.
fn key(target: &HttpTarget) -> ResourceKey {
    let url = &target.url;
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    ResourceKey::new(
        "url",
        &format!("{}://{host}:{port}{}", url.scheme(), url.path()),
    )
}

/// A number of seconds that a call may give itself.
fn check_seconds(seconds: u64) -> Result<(), InputRefusal> {
    match seconds {
        1..=LONGEST_SECONDS => Ok(()),
        other => {
            let message =
                format!("`{other}` seconds are not possible; give 1 to {LONGEST_SECONDS}");
            Err(InputRefusal::invalid("/timeout_seconds", message))
        }
    }
}
