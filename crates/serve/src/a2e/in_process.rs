//! An agent in the same process: typed messages over a link, no JSON.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolpost_a2e::{InProcessLink, Message};
use toolpost_core::Host;
use toolpost_model::{Principal, SessionId};
use uuid::Uuid;

use super::{
    A2eFaceSettings, A2eServerFace,
    conversation::{A2eConversation, ConversationTransport},
    wire,
};
use crate::auth::{KnownToken, RequestAuthenticator};

/// The most messages that wait in the link in each direction.
const ROOM: usize = 1_024;
/// The approximate size of one batch from the outbox.
const BATCH: usize = 64 << 10;

/// Connects an agent in this process to a host, as the agent `embedded`. The other end of the link uses A2E: a
/// handshake first, then any message that the host handles. Dropping it ends the session.
pub fn connect(host: &Host) -> InProcessLink {
    let max_parallel = host.limits().scheduler.session_concurrency;
    let settings = A2eFaceSettings {
        max_parallel,
        ..A2eFaceSettings::default()
    };
    link(
        &A2eServerFace::new(host.clone(), settings, Vec::new()),
        Vec::new(),
    )
}

/// Connects an agent to an existing face.
pub(crate) fn link(face: &Arc<A2eServerFace>, tokens: Vec<KnownToken>) -> InProcessLink {
    let door = Arc::new(RequestAuthenticator::Process {
        tokens,
        token_required: false,
        principal: Principal::agent("embedded"),
    });
    let id = Uuid::new_v4().simple().to_string();
    let session = SessionId::new(format!("a2e-{id}"));
    let conversation =
        A2eConversation::new(face, ConversationTransport::InProcess, &door, id, session);
    conversation.watch_list();
    let (InProcessLink { sender, receiver }, there) = InProcessLink::pair(ROOM);
    tokio::spawn(hear(Arc::clone(&conversation), receiver));
    tokio::spawn(tell(conversation, sender));
    there
}

async fn hear(conversation: Arc<A2eConversation>, mut from: mpsc::Receiver<Message>) {
    while let Some(message) = from.recv().await {
        conversation.receive(Ok(message)).await;
        // If the agent does not read, the link fills up and the agent's next send waits.
        conversation.outbox.room().await;
    }
    conversation.hang_up();
}

async fn tell(conversation: Arc<A2eConversation>, to: mpsc::Sender<Message>) {
    let reader = conversation.outbox.attach(None).reader;
    while let Some(batch) = conversation.outbox.take(reader, BATCH).await {
        for (_, item) in batch {
            if to.send(wire::message(item)).await.is_err() {
                return conversation.hang_up();
            }
        }
    }
}
