//! The `tools` capability on the agent's side: listing and calling tools.

mod call;
mod options;

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

pub use call::{CallEvent, ClientCall};
pub use options::{CallOptions, ListOptions};

use crate::{
    Body, CallError, Client, ToolDefinition, ToolListRequest, ToolResult,
    client::{AbandonedRequestAction, unlike},
};

/// The limit for a list; ten thousand tools take a while.
const LIST: Duration = Duration::from_secs(30);
/// A host answers a call slightly after the call's time limit.
const ANSWER_GRACE: Duration = Duration::from_secs(5);
/// The number of different lists that are kept.
const LISTS: usize = 64;

/// The tools of a host. Clones share the fetched lists.
///
/// ```no_run
/// use serde_json::json;
/// use toolpost_a2e::{CallEvent, CallOptions, Client, ConnectOptions, HostTransport, ListOptions, ToolApi};
///
/// # async fn agent() -> Result<(), Box<dyn std::error::Error>> {
/// let options = ConnectOptions::new("my-agent").token("the host's token");
/// let client = Client::connect(HostTransport::http("http://127.0.0.1:8765"), options).await?;
/// let tools = ToolApi::new(&client);
/// for tool in tools.list(&ListOptions::all()).await?.iter() {
///     println!("{}: {}", tool.name, tool.description);
/// }
///
/// let result = tools.call("read_file", json!({ "path": "README.md" })).await?;
/// println!("{:?} {:?}", result.data, result.error);
///
/// let mut call = tools.start(CallOptions::new("search", json!({ "text": "a2e" })).streaming()).await?;
/// while let Some(CallEvent::Event(event)) = call.next_event().await {
///     println!("{}: {:?}", event.kind, event.data);
/// }
/// let result = call.result().await?;
/// # drop(result);
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ToolApi {
    client: Client,
    lists: Arc<Mutex<HashMap<ToolListRequest, CachedToolList>>>,
}

#[derive(Debug)]
struct CachedToolList {
    /// The client's counter when the list was requested. If it has changed, the list may be out of date.
    as_of: u64,
    tools: Arc<[ToolDefinition]>,
}

impl ToolApi {
    /// The tools of the host that a client is connected to.
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            lists: Arc::default(),
        }
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The tools that match, best first in a search. A list is fetched once and kept until the host reports a change,
    /// the connection breaks, or [`refresh`](Self::refresh) is called.
    pub async fn list(&self, options: &ListOptions) -> Result<Arc<[ToolDefinition]>, CallError> {
        let request = options.request();
        let as_of = self.client.lists();
        if let Some(kept) = self
            .lists
            .lock()
            .get(&request)
            .filter(|kept| kept.as_of == as_of)
        {
            return Ok(kept.tools.clone());
        }
        let tools = match self
            .client
            .request(Body::ToolListRequest(request.clone()), LIST)
            .await?
        {
            Body::ToolListResponse(response) => Arc::<[ToolDefinition]>::from(response.tools),
            other => return Err(unlike("tool/list/resp", &other)),
        };
        let mut lists = self.lists.lock();
        if lists.len() >= LISTS && !lists.contains_key(&request) {
            lists.clear();
        }
        lists.insert(
            request,
            CachedToolList {
                as_of,
                tools: tools.clone(),
            },
        );
        Ok(tools)
    }

    /// Drops the fetched lists.
    pub fn refresh(&self) {
        self.lists.lock().clear();
    }

    /// Calls a tool and waits for its result. The failure of a tool is a result too, with `success` false.
    pub async fn call(
        &self,
        name: impl Into<String>,
        arguments: Value,
    ) -> Result<ToolResult, CallError> {
        self.start(CallOptions::new(name, arguments))
            .await?
            .result()
            .await
    }

    /// Starts a call, for reading its events, stopping it, or waiting for its result later.
    pub async fn start(&self, options: CallOptions) -> Result<ClientCall, CallError> {
        let wait = options.timeout.saturating_add(ANSWER_GRACE);
        let event_room = options.streaming.then_some(options.event_room);
        let body = Body::ToolCallRequest(options.request()?);
        let ticket = self
            .client
            .send(body, wait, event_room, AbandonedRequestAction::Cancel)
            .await?;
        Ok(ClientCall::new(ticket))
    }
}
