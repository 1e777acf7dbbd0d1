//! Unrequested notifications about changed lists and changed resources, on the stream of a session or of a listening
//! request.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};
use tokio_util::sync::CancellationToken;
use toolpost_core::{Host, Session, SourceNews};
use toolpost_model::{SourceNotice, SurfaceId};

use super::{
    asked::McpRequest,
    companions,
    exchange::{ExchangeOutlet, ExchangeResult},
    fault::McpFault,
    meta::SUBSCRIPTION,
    peer::McpPeer,
    sessions::McpSession,
    subscriptions::SubscriptionLease,
    wire::{self, McpReply, McpRequestId},
};

/// The most addresses that one stream can subscribe to.
const MOST_ADDRESSES: usize = 1_024;

/// The receivers of changes and their positions. A session passes them from one stream to the next, so that changes in
/// between are sent too.
pub(super) struct NewsReceivers {
    changes: watch::Receiver<u64>,
    news: broadcast::Receiver<SourceNews>,
    /// Changes of a session's own list.
    own_list: Option<watch::Receiver<u64>>,
    /// The surface of the last notification.
    seen: SurfaceId,
}

impl NewsReceivers {
    pub(super) fn of(
        host: &Host,
        session: &Session,
        own_list: Option<watch::Receiver<u64>>,
    ) -> Self {
        let changes = host.changes();
        let news = host.news();
        Self {
            changes,
            news,
            own_list,
            seen: host.surface(session).id().clone(),
        }
    }

    /// Goes back to the list that the session fetched last. Later notifications may have been written to a stream that
    /// was broken already.
    fn go_back_to(&mut self, listed: Option<(SurfaceId, u64)>) {
        let Some((surface, own)) = listed else { return };
        self.seen = surface;
        self.changes.mark_changed();
        if let Some(list) = &mut self.own_list
            && *list.borrow() != own
        {
            list.mark_changed();
        }
    }
}

struct NewsFilter {
    tools: bool,
    prompts: bool,
    resources: bool,
    addresses: ResourceAddresses,
    /// The subscription id for every notification, if a request listens.
    subscription: Option<Value>,
}

enum ResourceAddresses {
    These(Vec<String>),
    /// The addresses that the session subscribed to one by one.
    OfSession(Arc<McpSession>),
}

impl NewsFilter {
    fn updates(&self, uri: &str) -> bool {
        match &self.addresses {
            ResourceAddresses::These(these) => these.iter().any(|one| one == uri),
            ResourceAddresses::OfSession(stay) => stay.is_subscribed(uri),
        }
    }

    fn note(&self, method: &str, mut params: Map<String, Value>) -> bytes::Bytes {
        if let Some(id) = &self.subscription {
            params.insert("_meta".to_owned(), json!({ SUBSCRIPTION: id }));
        }
        wire::notification(method, &params)
    }

    fn changed(&self, what: &str) -> bytes::Bytes {
        self.note(&format!("notifications/{what}/list_changed"), Map::new())
    }
}

/// Sends a session the notifications that belong to none of its requests, until it ends or another stream takes over.
pub(super) async fn follow(
    peer: McpPeer,
    stay: Arc<McpSession>,
    until: CancellationToken,
    outlet: ExchangeOutlet,
) -> ExchangeResult {
    let followed = Arc::clone(&stay);
    let wanted = NewsFilter {
        tools: true,
        prompts: true,
        resources: true,
        addresses: ResourceAddresses::OfSession(stay),
        subscription: None,
    };
    let telling = async {
        // The earlier stream was canceled and releases the receivers.
        let mut ears = followed.ears.lock().await;
        ears.go_back_to(followed.listed());
        tell(&peer, &wanted, &mut ears, &outlet).await;
    };
    until.run_until_cancelled(telling).await;
    Ok(McpReply::Text("{}".to_owned()))
}

/// Answers `subscriptions/listen`: a confirmation of the subscriptions first, and the answer at the end.
pub(super) async fn listen(
    peer: McpPeer,
    asked: McpRequest,
    id: McpRequestId,
    outlet: ExchangeOutlet,
) -> ExchangeResult {
    let filter = asked.filter.as_ref().and_then(Value::as_object);
    let filter = filter.ok_or_else(|| {
        McpFault::invalid_params("`notifications` must be an object that names the subscriptions")
    })?;
    let _place = peer
        .face
        .streams
        .take(peer.principal())
        .map_err(McpFault::too_many_streams)?;
    let abilities = companions::abilities(&peer);
    let wants = |key: &str| filter.get(key) == Some(&Value::Bool(true));
    let addresses: Vec<String> = match filter.get("resourceSubscriptions") {
        Some(Value::Array(list)) if abilities.subscriptions => list
            .iter()
            .take(MOST_ADDRESSES)
            .filter_map(|uri| uri.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    let subscription: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
    let wanted = NewsFilter {
        tools: wants("toolsListChanged"),
        prompts: wants("promptsListChanged") && abilities.prompts,
        resources: wants("resourcesListChanged"),
        addresses: ResourceAddresses::These(addresses.clone()),
        subscription: Some(subscription.clone()),
    };
    let mut ears = NewsReceivers::of(&peer.face.host, &peer.session, None);
    // Dropping the lease returns the subscriptions on every way out of this function.
    let mut held = SubscriptionLease::nothing(&peer);
    for uri in &addresses {
        held.subscribe(&peer, uri, &outlet).await?;
    }
    let mut accepted = Map::new();
    for (key, is_told) in [
        ("toolsListChanged", wanted.tools),
        ("promptsListChanged", wanted.prompts),
        ("resourcesListChanged", wanted.resources),
    ] {
        if is_told {
            accepted.insert(key.to_owned(), Value::Bool(true));
        }
    }
    if !addresses.is_empty() {
        accepted.insert("resourceSubscriptions".to_owned(), json!(addresses));
    }
    let acknowledged = Map::from_iter([("notifications".to_owned(), Value::Object(accepted))]);
    if outlet
        .tell(wanted.note("notifications/subscriptions/acknowledged", acknowledged))
        .await
    {
        let closing = peer.face.closing.clone();
        closing
            .run_until_cancelled(tell(&peer, &wanted, &mut ears, &outlet))
            .await;
    }
    let told = json!({ "_meta": { SUBSCRIPTION: subscription } });
    Ok(McpReply::Text(wire::json(&super::complete(told, &peer))))
}

/// Sends notifications until the reader is gone.
async fn tell(
    peer: &McpPeer,
    wanted: &NewsFilter,
    ears: &mut NewsReceivers,
    outlet: &ExchangeOutlet,
) {
    let NewsReceivers {
        changes,
        news,
        own_list,
        seen,
    } = ears;
    loop {
        let messages = tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = peer.face.host.surface(&peer.session).id().clone();
                let is_other = now != *seen;
                *seen = now;
                if is_other && wanted.tools { vec![wanted.changed("tools")] } else { Vec::new() }
            }
            () = changed(own_list) => vec![wanted.changed("tools")],
            told = news.recv() => match told {
                Ok(told) => told_by_source(wanted, &told.notice),
                // After missed notifications, the reader is told that all requested lists changed.
                Err(RecvError::Lagged(_)) => {
                    let lists = [("prompts", wanted.prompts), ("resources", wanted.resources)];
                    let missed = lists.into_iter().filter(|(_, is_told)| *is_told);
                    missed.map(|(what, _)| wanted.changed(what)).collect()
                }
                Err(RecvError::Closed) => return,
            },
        };
        for message in messages {
            if !outlet.tell(message).await {
                return;
            }
        }
    }
}

async fn changed(own_list: &mut Option<watch::Receiver<u64>>) {
    if let Some(list) = own_list
        && list.changed().await.is_ok()
    {
        return;
    }
    // The source of changes is closed, or the session is over.
    std::future::pending::<()>().await;
}

fn told_by_source(wanted: &NewsFilter, notice: &SourceNotice) -> Vec<bytes::Bytes> {
    match notice {
        SourceNotice::ResourcesChanged if wanted.resources => vec![wanted.changed("resources")],
        SourceNotice::PromptsChanged if wanted.prompts => vec![wanted.changed("prompts")],
        SourceNotice::ResourceUpdated(uri) if wanted.updates(uri) => {
            let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
            vec![wanted.note("notifications/resources/updated", params)]
        }
        SourceNotice::ToolsChanged
        | SourceNotice::ResourcesChanged
        | SourceNotice::PromptsChanged
        | SourceNotice::ResourceUpdated(_)
        | SourceNotice::Log(_) => Vec::new(),
    }
}
