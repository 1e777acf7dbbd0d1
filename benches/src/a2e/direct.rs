//! An agent in the same process: typed messages over a link, beside two channels and a task that passes the same
//! messages on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::json;
use toolpost_a2e::{
    Body, HandshakeRequest, InProcessLink, Message, ToolCallRequest, ToolCancelRequest,
};
use toolpost_core::{
    CallRequest, Host, HostLimits, Journal, MemoryJournal, Policy, SchedulerLimits,
};
use toolpost_model::{ModelInput, PermissionMode, Principal, RequestId};

use super::forgetful::Forgetful;
use crate::{
    children::echoes,
    rounds::{Pairs, rate},
};

const ROUND: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;

pub(super) async fn run() -> anyhow::Result<()> {
    for depth in [1, 16, 64] {
        let under_way = format!("{depth} under way");
        let pairs =
            Pairs::take(ROUNDS, || linked(call, depth, kept()), || bare(call, depth)).await?;
        pairs.tell(
            &format!("A2E in process, reads, {under_way}, record in memory"),
            "calls/s",
        );
        let pairs = Pairs::take(
            ROUNDS,
            || linked(call, depth, forgotten()),
            || bare(call, depth),
        )
        .await?;
        pairs.tell(
            &format!("A2E in process, reads, {under_way}, no record"),
            "calls/s",
        );
        let pairs =
            Pairs::take(ROUNDS, || linked(ping, depth, kept()), || bare(ping, depth)).await?;
        pairs.tell(&format!("A2E in process, pings, {under_way}"), "messages/s");
        let pairs = Pairs::take(
            ROUNDS,
            || linked(cancel, depth, kept()),
            || bare(cancel, depth),
        )
        .await?;
        pairs.tell(
            &format!("A2E in process, a capability at once, {under_way}"),
            "messages/s",
        );
    }
    for (named, name) in [(true, "with"), (false, "without")] {
        let pairs = Pairs::take(
            ROUNDS,
            || linked(call, 16, kept()),
            || without_link(16, kept(), named),
        )
        .await?;
        let name = format!(
            "A2E in process, reads, 16 under way, beside the host's own calls {name} a request id"
        );
        pairs.tell(&name, "calls/s");
    }
    Ok(())
}

fn kept() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::default())
}

fn forgotten() -> Arc<dyn Journal> {
    Arc::new(Forgetful::default())
}

/// A new host for each round, because the state of one host would grow without end.
async fn host(journal: Arc<dyn Journal>) -> anyhow::Result<Host> {
    let scheduler = SchedulerLimits {
        concurrency: 256,
        session_concurrency: 256,
        queue: 1024,
    };
    let limits = HostLimits {
        scheduler,
        ..HostLimits::default()
    };
    let policy = Policy::in_mode(PermissionMode::Bypass);
    let builder = Host::builder()
        .journal(journal)
        .limits(limits)
        .policy(policy);
    Ok(builder.source(echoes(1)).build().await?)
}

fn arguments() -> ModelInput {
    ModelInput::value(
        json!({ "message": "sixteen clients say hello to the host and want it back" }),
    )
}

fn named(number: u64, body: Body) -> Message {
    Message {
        id: format!("{number:016x}"),
        version: None,
        ts: None,
        body,
    }
}

fn call(number: u64) -> Message {
    named(
        number,
        Body::ToolCallRequest(ToolCallRequest::new("echo", arguments())),
    )
}

fn ping(number: u64) -> Message {
    named(number, Body::ping())
}

/// For a call that does not exist: the capability looks it up and answers, and no tool runs.
fn cancel(number: u64) -> Message {
    named(
        number,
        Body::ToolCancelRequest(ToolCancelRequest {
            call_id: "nothing".to_owned(),
        }),
    )
}

async fn linked(
    message: fn(u64) -> Message,
    depth: u64,
    journal: Arc<dyn Journal>,
) -> anyhow::Result<f64> {
    let host = host(journal).await?;
    let mut link = toolpost_serve::a2e::connect(&host);
    let hello = Body::HandshakeRequest(HandshakeRequest::default());
    link.sender
        .send(Message::new(hello))
        .await
        .context("the host is gone")?;
    let welcome = link
        .receiver
        .recv()
        .await
        .context("no answer to the handshake")?;
    anyhow::ensure!(
        matches!(&welcome.body, Body::HandshakeResponse(body) if body.ok),
        "{welcome:?}"
    );
    load(link, message, depth).await
}

async fn bare(message: fn(u64) -> Message, depth: u64) -> anyhow::Result<f64> {
    let (here, mut there) = InProcessLink::pair(1_024);
    tokio::spawn(async move {
        while let Some(message) = there.receiver.recv().await {
            if there.sender.send(message).await.is_err() {
                return;
            }
        }
    });
    load(here, message, depth).await
}

/// Keeps `depth` messages in flight, in a task as an agent would: each answer makes room for another.
async fn load(
    mut link: InProcessLink,
    message: fn(u64) -> Message,
    depth: u64,
) -> anyhow::Result<f64> {
    tokio::spawn(async move {
        let began = Instant::now();
        for number in 0..depth {
            link.sender
                .send(message(number))
                .await
                .context("the host is gone")?;
        }
        let mut answered = 0;
        while began.elapsed() < ROUND {
            let answer = link.receiver.recv().await.context("the host is gone")?;
            let is_fine = match &answer.body {
                Body::Error(_) => false,
                Body::ToolCallResponse(response) => response.data.success,
                _ => true,
            };
            anyhow::ensure!(is_fine, "{answer:?}");
            link.sender
                .send(message(depth + answered))
                .await
                .context("the host is gone")?;
            answered += 1;
        }
        Ok(answered as f64 / began.elapsed().as_secs_f64())
    })
    .await?
}

/// The same calls through the host's own entry point. A call over a link has a request id, which costs a check for
/// repeats and a task of its own.
async fn without_link(
    callers: usize,
    journal: Arc<dyn Journal>,
    named: bool,
) -> anyhow::Result<f64> {
    let host = host(journal).await?;
    let session = host.default_session(&Principal::agent("bench"));
    let began = Instant::now();
    let tasks = (0..callers).map(|caller| {
        let host = host.clone();
        let session = Arc::clone(&session);
        tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                let mut request = CallRequest::new(Arc::clone(&session), "echo", arguments());
                request.identity.request_id =
                    named.then(|| RequestId::new(format!("{caller:04}{calls:012x}")));
                let answer = host.call(request).await;
                anyhow::ensure!(
                    answer.result().outcome.is_success(),
                    "{:?}",
                    answer.result().error
                );
                calls += 1;
            }
            Ok(calls)
        })
    });
    rate(began, tasks.collect()).await
}
