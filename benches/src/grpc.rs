//! Calls of a tool behind gRPC through a whole host, beside the same calls with tonic alone, over the same service.
//!
//! The service is a process of its own that returns the arguments. The host's journal is in memory, because another
//! benchmark measures the journal on disk.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::{Request, Response, body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tonic::{
    Status,
    codegen::{Service, http::uri::PathAndQuery},
    server::Grpc as Serving,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use toolpost_amplifier::{ModuleId, ModuleKind, PlannedModule};
use toolpost_core::{CallRequest, Host, HostLimits, Policy, SchedulerLimits};
use toolpost_model::{ModelInput, PermissionMode, Principal};
use toolpost_modules::{GrpcModule, GrpcSettings};

use crate::{
    children::{Served, announce},
    rounds::{Pairs, rate},
};

const ROUND: Duration = Duration::from_secs(2);
const INPUT: &str = r#"{"message":"a caller says hello to the service and wants it back"}"#;

#[derive(Clone, PartialEq, prost::Message)]
struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
struct Spec {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Question {
    #[prost(bytes = "vec", tag = "1")]
    input: Vec<u8>,
    #[prost(string, tag = "2")]
    content_type: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(bool, tag = "1")]
    success: bool,
    #[prost(bytes = "vec", tag = "2")]
    output: Vec<u8>,
}

pub(crate) async fn run() -> anyhow::Result<()> {
    let served = Served::start(&["--serve-grpc"])?;
    let host = host(&served.address).await?;
    let channel = Endpoint::from_shared(format!("http://{}", served.address))?
        .connect()
        .await?;
    for callers in [1, 16] {
        let pairs = Pairs::take(7, || calls(&host, callers), || bare(&channel, callers)).await?;
        pairs.tell(
            &format!("gRPC calls from {callers} callers through a host"),
            "calls/s",
        );
    }
    Ok(())
}

async fn host(endpoint: &str) -> anyhow::Result<Host> {
    let module = PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new("tool-bench"),
        source: None,
        config: serde_json::Map::new(),
        place: "bench".to_owned(),
    };
    let source = GrpcModule::service(&module, endpoint, GrpcSettings::default())?;
    let limits = HostLimits {
        scheduler: SchedulerLimits {
            concurrency: 256,
            session_concurrency: 256,
            queue: 1024,
        },
        ..HostLimits::default()
    };
    Ok(Host::builder()
        .limits(limits)
        .policy(Policy::in_mode(PermissionMode::Bypass))
        .source(source)
        .build()
        .await?)
}

/// Each caller is an agent with a session of its own: tools of unknown effect run alone in theirs.
async fn calls(host: &Host, callers: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let arguments: serde_json::Value = serde_json::from_str(INPUT)?;
    let mut tasks = Vec::new();
    for caller in 0..callers {
        let session = host.default_session(&Principal::agent(&format!("bench-{caller}")));
        let host = host.clone();
        let arguments = arguments.clone();
        tasks.push(tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                let input = ModelInput::value(arguments.clone());
                let answer = host
                    .call(CallRequest::new(Arc::clone(&session), "echo", input))
                    .await;
                anyhow::ensure!(
                    answer.result().structured_content.is_some(),
                    "{:?}",
                    answer.result().error
                );
                calls += 1;
            }
            Ok(calls)
        }));
    }
    rate(began, tasks).await
}

/// The floor: tonic's own client, and the answer read as JSON.
async fn bare(channel: &Channel, callers: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let mut client = tonic::client::Grpc::new(channel.clone());
        tasks.push(tokio::spawn(async move {
            let mut calls = 0_u64;
            while began.elapsed() < ROUND {
                client.ready().await?;
                let question = Question {
                    input: INPUT.as_bytes().to_vec(),
                    content_type: "application/json".to_owned(),
                };
                let path = PathAndQuery::from_static("/amplifier.module.ToolService/Execute");
                let codec = ProstCodec::<Question, Answer>::default();
                let answer = client
                    .unary(tonic::Request::new(question), path, codec)
                    .await?
                    .into_inner();
                let output: serde_json::Value = serde_json::from_slice(&answer.output)?;
                anyhow::ensure!(answer.success && output.is_object(), "{output}");
                calls += 1;
            }
            Ok(calls)
        }));
    }
    rate(began, tasks).await
}

/// The service, in a process of its own.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    announce(&listener.local_addr()?.to_string())?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let builder = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(builder.serve_connection(TokioIo::new(stream), service_fn(answer)));
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<tonic::body::Body>, Infallible> {
    let response = match request.uri().path().rsplit('/').next() {
        Some("GetSpec") => {
            Serving::new(ProstCodec::<Spec, Empty>::default())
                .unary(Describing, request)
                .await
        }
        Some("Execute") => {
            Serving::new(ProstCodec::<Answer, Question>::default())
                .unary(Echoing, request)
                .await
        }
        _ => Status::unimplemented("no such method").into_http(),
    };
    Ok(response)
}

struct Describing;

impl Service<tonic::Request<Empty>> for Describing {
    type Response = tonic::Response<Spec>;
    type Error = Status;
    type Future = Ready<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: tonic::Request<Empty>) -> Self::Future {
        ready(Ok(tonic::Response::new(Spec {
            name: "echo".to_owned(),
        })))
    }
}

struct Echoing;

impl Service<tonic::Request<Question>> for Echoing {
    type Response = tonic::Response<Answer>;
    type Error = Status;
    type Future = Ready<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<Question>) -> Self::Future {
        ready(Ok(tonic::Response::new(Answer {
            success: true,
            output: request.into_inner().input,
        })))
    }
}
