//! What passes between the host and a server, looked at on the way: requests are noted before they leave, answers nobody
//! waits for are dropped, and what a server says unasked goes to the call it belongs to, in the order it was said. The
//! SDK would start a task for each of those, and the last word of a call could come after its answer.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientRequest, GetExtensions as _, GetMeta as _, RequestId,
        ServerJsonRpcMessage, ServerNotification,
    },
    transport::Transport,
};

use super::super::desk::{
    AwaitedMcpRequest, McpMessageRouter, McpRequestSendState, UpstreamAnswerMatch, UpstreamNotice,
    UpstreamQuestionAdmission,
};

/// Goes with a request through the SDK, to the place where it leaves.
#[derive(Clone)]
pub(super) struct OutgoingRequestMark(pub(super) Arc<AwaitedMcpRequest>);

/// The requests whose answers the SDK itself reads.
#[derive(Clone, Default)]
pub(super) struct SdkRequestIds(Arc<Mutex<HashSet<String>>>);

impl SdkRequestIds {
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.0.lock().contains(&id.to_string())
    }

    fn add(&self, id: String) {
        self.0.lock().insert(id);
    }

    fn remove(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

/// A transport with the desk in between.
pub(super) struct RoutedTransport<T> {
    pub(super) inner: T,
    pub(super) desk: Arc<McpMessageRouter>,
    pub(super) typed: SdkRequestIds,
}

impl<T: Transport<RoleClient>> RoutedTransport<T> {
    fn note(&self, message: &ClientJsonRpcMessage) -> Option<Arc<AwaitedMcpRequest>> {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let id = request.id.to_string();
                let read_by_sdk = matches!(
                    request.request,
                    ClientRequest::InitializeRequest(_)
                        | ClientRequest::DiscoverRequest(_)
                        | ClientRequest::SubscriptionsListenRequest(_)
                );
                if read_by_sdk {
                    self.typed.add(id.clone());
                }
                let marked = request.request.extensions().get::<OutgoingRequestMark>();
                let slot = marked.map_or_else(
                    || Arc::new(AwaitedMcpRequest::new(None)),
                    |marked| Arc::clone(&marked.0),
                );
                let token = request
                    .request
                    .get_meta()
                    .get_progress_token()
                    .map(|token| token.0.to_string());
                self.desk.await_answer(id, token, &slot);
                Some(slot)
            }
            ClientJsonRpcMessage::Response(response) => {
                self.desk.question_answered(&response.id.to_string());
                None
            }
            ClientJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.desk.question_answered(&id.to_string());
                }
                None
            }
            ClientJsonRpcMessage::Notification(_) => None,
        }
    }

    /// An answer. `false`: nobody waits for it.
    fn settle(&self, id: &RequestId) -> bool {
        let id = id.to_string();
        self.typed.remove(&id);
        let settled = self.desk.settle(&id);
        if settled == UpstreamAnswerMatch::Unknown {
            self.desk.nuisance("answers that nobody waits for");
        }
        settled == UpstreamAnswerMatch::Awaited
    }

    /// Something said unasked. Gives back what the SDK should see.
    fn notified(&self, notification: ServerNotification) -> Option<ServerNotification> {
        let of_subscription = notification.get_meta().subscription_id().is_some();
        match notification {
            other if of_subscription => return Some(other),
            ServerNotification::CancelledNotification(ref canceled) => {
                // The SDK drops the answer to a question that was withdrawn, so that it is not seen on its way out.
                if let Some(id) = &canceled.params.request_id {
                    self.desk.question_withdrawn(&id.to_string());
                }
                return Some(notification);
            }
            ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                return Some(notification);
            }
            ServerNotification::ProgressNotification(progress) => {
                let params = progress.params;
                let token = params.progress_token.0.to_string();
                self.desk
                    .progress(&token, params.progress, params.total, params.message);
            }
            ServerNotification::LoggingMessageNotification(log) => {
                // Read as plain JSON: the SDK marks the fields as deprecated, and servers will send them for years.
                let params = serde_json::to_value(&log.params).unwrap_or_default();
                let level = params["level"].as_str().unwrap_or("info");
                self.desk
                    .log(level, params["logger"].as_str(), &params["data"]);
            }
            other => match told(&other) {
                Some(told) => self.desk.tell(told),
                None => self
                    .desk
                    .nuisance("notifications of a kind that is not known"),
            },
        }
        None
    }
}

/// What a notification means to whoever is not a call.
pub(super) fn told(notification: &ServerNotification) -> Option<UpstreamNotice> {
    match notification {
        ServerNotification::ToolListChangedNotification(_) => Some(UpstreamNotice::Tools),
        ServerNotification::ResourceListChangedNotification(_) => Some(UpstreamNotice::Resources),
        ServerNotification::PromptListChangedNotification(_) => Some(UpstreamNotice::Prompts),
        ServerNotification::ResourceUpdatedNotification(updated) => {
            Some(UpstreamNotice::Updated(updated.params.uri.to_string()))
        }
        _ => None,
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for RoutedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let slot = self.note(&item);
        let sending = self.inner.send(item);
        async move {
            if let Some(slot) = &slot {
                slot.mark(McpRequestSendState::Perhaps);
            }
            let sent = sending.await;
            if let (Some(slot), Ok(())) = (slot, &sent) {
                slot.mark(McpRequestSendState::Yes);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.desk.hang_up();
                return None;
            };
            self.desk.heard();
            if self.desk.ended().is_some() {
                return None;
            }
            match message {
                ServerJsonRpcMessage::Response(response) => {
                    if self.settle(&response.id) {
                        return Some(ServerJsonRpcMessage::Response(response));
                    }
                }
                ServerJsonRpcMessage::Error(error) => match &error.id {
                    Some(id) if !self.settle(id) => {}
                    Some(_) | None => return Some(ServerJsonRpcMessage::Error(error)),
                },
                ServerJsonRpcMessage::Request(request) => {
                    match self.desk.question(request.id.to_string()) {
                        UpstreamQuestionAdmission::New => {
                            return Some(ServerJsonRpcMessage::Request(request));
                        }
                        UpstreamQuestionAdmission::Twice => self
                            .desk
                            .nuisance("questions under an id that waits for an answer"),
                        UpstreamQuestionAdmission::TooMuch => {
                            self.desk.end("it asks too many things at the same time");
                            return None;
                        }
                    }
                }
                ServerJsonRpcMessage::Notification(mut said) => {
                    if let Some(rest) = self.notified(said.notification) {
                        said.notification = rest;
                        return Some(ServerJsonRpcMessage::Notification(said));
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.desk.hang_up();
        self.inner.close().await
    }
}
