//! The cost of scheduling: calls that pass the scheduler beside the same calls without it, in the same host.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use serde_json::json;
use tokio::sync::Semaphore;
use toolpost_core::{CallRequest, Host, HostLimits, Policy, SchedulerLimits};
use toolpost_model::{
    CallInput, Declaration, EffectClass, Effects, ModelInput, PermissionMode, Principal,
    ResourceAccess, ResourceKey, Tool, ToolCall, ToolFailure, ToolOutput,
};

use crate::rounds::{Pairs, rate};

const ROUNDS: usize = 7;
/// Calls of one round: enough to measure, few enough that the journal in memory stays small.
const CALLS: usize = 16_000;
const READERS: usize = 16;

pub(crate) async fn run() -> anyhow::Result<()> {
    for waiting in [1, 64, 1_024] {
        let busy = Busy::with(waiting).await?;
        let pairs = Pairs::take(
            ROUNDS,
            || busy.calls_from_one("read"),
            || busy.calls_from_one("free"),
        )
        .await?;
        pairs.tell(
            &format!("calls past {waiting} that wait for something else"),
            "calls/s",
        );
        busy.done.add_permits(2 * waiting + 2);
    }
    for callers in [1, 64, 1_024] {
        let pairs = Pairs::take(
            ROUNDS,
            || queued("read", callers),
            || queued("free", callers),
        )
        .await?;
        pairs.tell(
            &format!("calls through four slots with {callers} waiting for them"),
            "calls/s",
        );
    }
    let pairs = Pairs::take(
        ROUNDS,
        || beside_a_writer("read", "write"),
        || beside_a_writer("free", "free"),
    );
    pairs.await?.tell(
        &format!("{READERS} readers beside a writer that waits its turn"),
        "calls/s",
    );
    Ok(())
}

/// Has an effect on a path and does nothing. `free` is the same call without a turn.
struct Touch {
    name: &'static str,
    access: ResourceAccess,
    unscheduled: bool,
    /// The call ends when it gets a permit, if there is a semaphore.
    until: Option<Arc<Semaphore>>,
}

impl Tool for Touch {
    fn declaration(&self) -> Declaration {
        let id = format!("bench.{}", self.name);
        let id = id
            .parse()
            .unwrap_or_else(|error| panic!("`{id}` is no tool id: {error}"));
        Declaration::new(id, "Touches a path")
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let path = ResourceKey::path(input.arguments().str("path")?);
        // All are of class read, so that their records cost the same.
        let effects = Effects {
            unscheduled: self.unscheduled,
            ..Effects::of(EffectClass::Read)
        };
        Some(effects.using(path, self.access))
    }

    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolFailure> {
        if let Some(until) = &self.until {
            until.acquire().await?.forget();
        }
        Ok(ToolOutput::text("touched"))
    }
}

async fn host(concurrency: usize, until: &Arc<Semaphore>) -> anyhow::Result<Host> {
    let limits = HostLimits {
        scheduler: SchedulerLimits {
            concurrency,
            session_concurrency: concurrency,
            queue: 1 << 14,
        },
        ..HostLimits::default()
    };
    let touch = |name, access, unscheduled| Touch {
        name,
        access,
        unscheduled,
        until: None,
    };
    Ok(Host::builder()
        .limits(limits)
        .policy(Policy::in_mode(PermissionMode::Bypass))
        .tool(touch("read", ResourceAccess::Read, false))
        .tool(touch("write", ResourceAccess::Write, false))
        .tool(touch("free", ResourceAccess::Read, true))
        .tool(Touch {
            until: Some(Arc::clone(until)),
            ..touch("hold", ResourceAccess::Write, false)
        })
        .build()
        .await?)
}

fn request(host: &Host, who: usize, tool: &str, path: &str) -> CallRequest {
    let session = host.default_session(&Principal::agent(&format!("agent {who}")));
    CallRequest::new(session, tool, ModelInput::value(json!({ "path": path })))
}

async fn call(host: &Host, who: usize, tool: &str, path: &str) -> anyhow::Result<()> {
    let answer = host.call(request(host, who, tool, path)).await;
    anyhow::ensure!(
        answer.result().outcome.is_success(),
        "{:?}",
        answer.result().error
    );
    Ok(())
}

/// A host in which calls wait for one that does not end.
struct Busy {
    host: Host,
    done: Arc<Semaphore>,
}

impl Busy {
    async fn with(waiting: usize) -> anyhow::Result<Self> {
        let done = Arc::new(Semaphore::new(0));
        let host = host(64, &done).await?;
        for who in 0..=waiting {
            let mut call = request(&host, who % 8, "hold", "/busy/file");
            call.delivery.background = true;
            drop(host.start(call).await);
        }
        while host.health().queued < waiting {
            tokio::task::yield_now().await;
        }
        Ok(Self { host, done })
    }

    async fn calls_from_one(&self, tool: &str) -> anyhow::Result<f64> {
        let began = Instant::now();
        for _ in 0..CALLS / 4 {
            call(&self.host, 9, tool, "/w/src/main.rs").await?;
        }
        Ok((CALLS / 4) as f64 / began.elapsed().as_secs_f64())
    }
}

/// Many callers and few slots: almost every call waits in the queue and is woken from it.
async fn queued(tool: &'static str, waiting: usize) -> anyhow::Result<f64> {
    let host = host(4, &Arc::new(Semaphore::new(0))).await?;
    let callers = waiting + 4;
    let began = Instant::now();
    let tasks = (0..callers).map(|who| {
        let host = host.clone();
        tokio::spawn(async move {
            let path = format!("/w/src/{who}.rs");
            let calls = (CALLS / callers).max(8) as u64;
            for _ in 0..calls {
                call(&host, who % 32, tool, &path).await?;
            }
            Ok(calls)
        })
    });
    rate(began, tasks.collect()).await
}

/// Sixteen sessions read files of their own, while a writer requests again and again the file of one of them.
async fn beside_a_writer(reading: &'static str, writing: &'static str) -> anyhow::Result<f64> {
    let host = host(64, &Arc::new(Semaphore::new(0))).await?;
    let over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let host = host.clone();
        let over = Arc::clone(&over);
        async move {
            let mut written = 0_u64;
            while !over.load(Ordering::Relaxed) {
                call(&host, READERS, writing, "/w/0").await?;
                written += 1;
            }
            anyhow::Ok(written)
        }
    });
    let began = Instant::now();
    let tasks = (0..READERS).map(|who| {
        let host = host.clone();
        tokio::spawn(async move {
            let path = format!("/w/{who}/lib.rs");
            for _ in 0..CALLS / READERS {
                call(&host, who, reading, &path).await?;
            }
            Ok((CALLS / READERS) as u64)
        })
    });
    let rate = rate(began, tasks.collect()).await?;
    over.store(true, Ordering::Relaxed);
    anyhow::ensure!(writer.await?? > 0, "the writer never had its turn");
    Ok(rate)
}
