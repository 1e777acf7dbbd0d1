//! A gRPC server written out on top of HTTP/2, so that it can say anything. Its messages are its own: field numbers
//! that the client has wrong show.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::Incoming,
    header::{HeaderName, HeaderValue},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use toolpost_model::BoxFuture;

use super::PATIENCE;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Spec {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(string, tag = "3")]
    pub(crate) parameters_json: String,
}

impl Spec {
    pub(crate) fn echo() -> Self {
        let parameters_json =
            r#"{"type": "object", "properties": {"text": {"type": "string"}}}"#.to_owned();
        Self {
            name: "echo".to_owned(),
            description: "Says it again.".to_owned(),
            parameters_json,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecuteRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) input: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) content_type: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecuteResponse {
    #[prost(bool, tag = "1")]
    pub(crate) success: bool,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) output: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) content_type: String,
    #[prost(string, tag = "4")]
    pub(crate) error: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) content_blocks: Vec<Block>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Block {
    #[prost(message, optional, tag = "1")]
    pub(crate) text: Option<Text>,
    #[prost(message, optional, tag = "2")]
    pub(crate) thinking: Option<Text>,
    #[prost(message, optional, tag = "6")]
    pub(crate) image: Option<Image>,
    #[prost(int32, tag = "8")]
    pub(crate) visibility: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Image {
    #[prost(string, tag = "1")]
    pub(crate) media_type: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) data: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) source_json: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MountRequest {
    #[prost(map = "string, string", tag = "1")]
    pub(crate) config: HashMap<String, String>,
    #[prost(string, tag = "2")]
    pub(crate) module_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MountResponse {
    #[prost(bool, tag = "1")]
    pub(crate) success: bool,
    #[prost(string, tag = "2")]
    pub(crate) error: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HealthResponse {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    body: Vec<u8>,
}

impl Heard {
    pub(crate) fn method(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }

    pub(crate) fn read<M: Message + Default>(&self) -> M {
        M::decode(&self.body[5..]).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no `{name}`"))
            .to_str()
            .unwrap()
    }
}

/// What is answered.
pub(crate) enum Reply {
    Message(Vec<u8>),
    Status(i32, String),
    /// These bytes for a body, and these trailers.
    Raw(Vec<u8>, Vec<(&'static str, &'static str)>),
    /// No answer as long as somebody waits for one.
    Never,
}

pub(crate) fn message(message: &impl Message) -> Reply {
    Reply::Message(message.encode_to_vec())
}

/// A message with the five bytes that stand before each.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    bytes.extend(message);
    bytes
}

type Answer = Arc<dyn Fn(Heard) -> BoxFuture<'static, Reply> + Send + Sync>;

pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// The methods that are being answered, as they are asked.
    asked: mpsc::UnboundedReceiver<String>,
    /// The methods whose asker went away before there was an answer.
    abandoned: mpsc::UnboundedReceiver<String>,
    accepting: JoinHandle<()>,
    drain: watch::Sender<()>,
}

impl Service {
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::on("127.0.0.1:0".parse().unwrap(), answer).await
    }

    pub(crate) async fn on(address: SocketAddr, answer: Answer) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ask, asked) = mpsc::unbounded_channel();
        let (abandon, abandoned) = mpsc::unbounded_channel();
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let desk = Arc::new(Desk {
            answer,
            heard: Arc::clone(&heard),
            ask,
            abandon,
        });
        let (drain, drained) = watch::channel(());
        let accepting = tokio::spawn(async move {
            // Dropped with the task, and every connection with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let desk = Arc::clone(&desk);
                let serve = service_fn(move |request| Arc::clone(&desk).serve(request));
                let builder = http2::Builder::new(TokioExecutor::new());
                let mut draining = drained.clone();
                draining.mark_unchanged();
                connections.spawn(async move {
                    let mut connection =
                        pin!(builder.serve_connection(TokioIo::new(stream), serve));
                    tokio::select! {
                        _ = &mut connection => return,
                        _ = draining.changed() => connection.as_mut().graceful_shutdown(),
                    }
                    let _ = connection.await;
                });
            }
        });
        Self {
            address,
            heard,
            asked,
            abandoned,
            accepting,
            drain,
        }
    }

    /// What was asked by this method.
    pub(crate) fn heard(&self, method: &str) -> Vec<Heard> {
        let heard = self.heard.lock().unwrap();
        heard
            .iter()
            .filter(|heard| heard.method() == method)
            .cloned()
            .collect()
    }

    /// Waits until somebody asks by this method.
    pub(crate) async fn until_asked(&mut self, method: &str) {
        while next(&mut self.asked).await != method {}
    }

    /// Waits until somebody who asked gave up.
    pub(crate) async fn until_abandoned(&mut self) -> String {
        next(&mut self.abandoned).await
    }

    /// Takes no more calls on the connections there are, answers what they have, and takes new ones.
    pub(crate) fn drain(&self) {
        self.drain.send_replace(());
    }

    /// Gone from one moment to the next, connections and all. The port can be used again.
    pub(crate) async fn kill(self) -> SocketAddr {
        self.accepting.abort();
        let _ = self.accepting.await;
        self.address
    }
}

async fn next(channel: &mut mpsc::UnboundedReceiver<String>) -> String {
    timeout(PATIENCE, channel.recv()).await.unwrap().unwrap()
}

struct Desk {
    answer: Answer,
    heard: Arc<Mutex<Vec<Heard>>>,
    ask: mpsc::UnboundedSender<String>,
    abandon: mpsc::UnboundedSender<String>,
}

/// Tells when it is dropped that nobody waits any more.
struct Waiting(mpsc::UnboundedSender<String>, Option<String>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(method) = self.1.take() {
            let _ = self.0.send(method);
        }
    }
}

impl Desk {
    async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let body = body.collect().await?.to_bytes().to_vec();
        let heard = Heard {
            path,
            headers: head.headers,
            body,
        };
        let method = heard.method().to_owned();
        self.heard.lock().unwrap().push(heard.clone());
        let mut waiting = Waiting(self.abandon.clone(), Some(method.clone()));
        let _ = self.ask.send(method);
        let reply = (self.answer)(heard).await;
        let (bytes, trailers) = match reply {
            Reply::Message(message) => (
                framed(&message),
                vec![("grpc-status".to_owned(), "0".to_owned())],
            ),
            Reply::Status(code, text) => {
                let status = ("grpc-status".to_owned(), code.to_string());
                (Vec::new(), vec![status, ("grpc-message".to_owned(), text)])
            }
            Reply::Raw(bytes, trailers) => (
                bytes,
                trailers
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
            ),
            Reply::Never => std::future::pending().await,
        };
        waiting.1 = None;
        let trailers: HeaderMap = trailers
            .into_iter()
            .map(|(name, value)| {
                (
                    name.parse::<HeaderName>().unwrap(),
                    HeaderValue::try_from(value).unwrap(),
                )
            })
            .collect();
        let body =
            Full::new(Bytes::from(bytes)).with_trailers(std::future::ready(Some(Ok(trailers))));
        let response = Response::builder().header("content-type", "application/grpc");
        Ok(response.body(body.boxed()).unwrap())
    }
}
