//! The HTTP tools: namespace `http`.
//!
//! The target of a URL is checked three times: its host if that is an address (`target`), every address of its name
//! before a connection is made (`names`), and the peer that answered (`exchange`); all of this again at every redirect.
//! Bodies are counted as they arrive, after decompression, and everything ends at the deadline.

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

/// The longest time limit of a call.
const LONGEST_SECONDS: u64 = 300;
/// The time limit of the host is a little longer, so that the tool itself reports its timeout.
const TIMEOUT_MS: u64 = (LONGEST_SECONDS + 10) * 1000;

/// The HTTP tools. They save bodies to files of `workspace`.
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

/// The state of both tools.
struct HttpToolNetwork {
    settings: NetworkSettings,
    clients: HttpClients,
}

/// The common declaration.
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

/// The resource key of a URL, which is also the fact for a decision: scheme, host, port and path as they will be
/// requested. The query belongs to the arguments.
fn key(target: &HttpTarget) -> ResourceKey {
    let url = &target.url;
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    ResourceKey::new(
        "url",
        &format!("{}://{host}:{port}{}", url.scheme(), url.path()),
    )
}

/// Refuses a time limit out of range.
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
