//! An agent in the same process: typed messages over a link, no JSON.

use std::sync::Arc;

use toolpost_a2e::Link;
use toolpost_core::Host;
use toolpost_model::{Principal, SessionId};
use uuid::Uuid;

use super::{
    Face, Settings,
    conversation::{Conversation, Transport},
    wire,
};
use crate::auth::Door;

/// Messages that may wait in the link, each way.
const ROOM: usize = 1_024;
/// What is taken out of the outbox at once.
const BATCH: usize = 64 << 10;

/// Connects an agent in this process to a host, as the agent `embedded`. The other end of the link speaks A2E: a
/// handshake first, then whatever the host serves. Dropping it ends the session.
pub fn connect(host: &Host) -> Link {
    let settings =
        Settings { max_parallel: host.limits().scheduler.session_concurrency, ..Settings::default() };
    let face = Face::new(host.clone(), settings, Vec::new());
    let door = Arc::new(Door::Process { tokens: Vec::new(), principal: Principal::agent("embedded") });
    let id = Uuid::new_v4().simple().to_string();
    let session = SessionId::new(format!("a2e-{id}"));
    let conversation = Conversation::new(&face, Transport::InProcess, &door, id, session);
    conversation.watch_list();
    let (here, there) = Link::pair(ROOM);
    let Link { sender, mut receiver } = here;
    let listening = Arc::clone(&conversation);
    tokio::spawn(async move {
        while let Some(message) = receiver.recv().await {
            listening.receive(Ok(message)).await;
        }
        listening.hang_up();
    });
    tokio::spawn(async move {
        let reader = conversation.outbox.attach(None).reader;
        while let Some(batch) = conversation.outbox.take(reader, BATCH).await {
            for (_, item) in batch {
                if sender.send(wire::message(item)).await.is_err() {
                    return conversation.hang_up();
                }
            }
        }
    });
    there
}
