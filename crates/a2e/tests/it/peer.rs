//! A host whose every move a test decides: raw HTTP on a loopback socket, one request after the other handed to
//! the test, which says what is answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use toolpost_a2e::{Client, ConnectOptions, HostTransport, ToolApi};

/// Nothing on loopback takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Peer {
    pub(crate) url: String,
    requests: mpsc::Receiver<Request>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Request {
    /// Such as `POST /send`.
    pub(crate) line: String,
    pub(crate) session: Option<String>,
    pub(crate) last_event_id: Option<String>,
    pub(crate) body: String,
    /// Counts the connections of the peer.
    pub(crate) connection: usize,
    reply: oneshot::Sender<Reply>,
}

#[derive(Debug)]
enum Reply {
    Plain(u16, String),
    Stream(mpsc::Receiver<Vec<u8>>),
    Nothing,
}

/// A stream that the peer writes to. Dropped, it ends cleanly.
#[derive(Debug)]
pub(crate) struct Events(mpsc::Sender<Vec<u8>>);

impl Drop for Peer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Peer {
    pub(crate) async fn start() -> Self {
        Self::at("127.0.0.1:0").await
    }

    pub(crate) async fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel(64);
        let listening = tokio::spawn(async move {
            let connections = Arc::new(AtomicUsize::new(0));
            let mut serving = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let connection = connections.fetch_add(1, Ordering::Relaxed);
                serving.spawn(serve(socket, connection, sender.clone()));
            }
        });
        Self {
            url,
            requests,
            listening,
        }
    }

    /// A peer, and a client that it has let in. The host announces that it can cancel.
    pub(crate) async fn with_client() -> (Self, Client, Events) {
        Self::with_options(ConnectOptions::new("tester")).await
    }

    pub(crate) async fn with_options(options: ConnectOptions) -> (Self, Client, Events) {
        let mut peer = Self::start().await;
        let transport = HostTransport::http(&peer.url);
        let (client, events) = tokio::join!(Client::connect(transport, options), peer.let_in("s1"));
        (peer, client.unwrap(), events)
    }

    pub(crate) async fn with_api() -> (Self, ToolApi, Events) {
        let (peer, client, events) = Self::with_client().await;
        (peer, ToolApi::new(&client), events)
    }

    /// Opens a session for whoever asks, with the usual welcome.
    pub(crate) async fn let_in(&mut self, session: &str) -> Events {
        let metadata = json!({ "extensions": ["tool/cancel", "tool/list/changed"] });
        let caps = json!([{ "capability": "tools", "metadata": metadata }]);
        self.answer_handshake(
            session,
            json!({ "session_id": session, "accepted_caps": caps }),
        )
        .await
    }

    /// Opens a session and answers its handshake with these fields.
    pub(crate) async fn answer_handshake(&mut self, session: &str, fields: Value) -> Events {
        let mut events = None::<Events>;
        let mut answer = None;
        self.next("POST /session")
            .await
            .answer(200, &json!({ "session_id": session }).to_string());
        while events.is_none() || answer.is_none() {
            let request = self.any().await;
            assert_eq!(request.session.as_deref(), Some(session));
            if request.line == "GET /stream" {
                assert_eq!(request.last_event_id, None);
                events = Some(request.stream());
            } else {
                let message = request.message();
                assert_eq!(message["type"], "handshake/req");
                request.answer(200, r#"{"ok":true}"#);
                answer = Some(message["id"].clone());
            }
        }
        let events = events.unwrap();
        let mut message = json!({ "type": "handshake/resp", "id": "h", "req_id": answer.unwrap() });
        message
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        events.say(&message).await;
        events
    }

    pub(crate) async fn any(&mut self) -> Request {
        let next = timeout(PATIENCE, self.requests.recv()).await;
        next.expect("a request should have come")
            .expect("the peer should be running")
    }

    pub(crate) async fn next(&mut self, line: &str) -> Request {
        let request = self.any().await;
        assert_eq!(request.line, line, "{request:?}");
        request
    }

    /// The next message that is posted, which is confirmed.
    pub(crate) async fn message(&mut self, kind: &str) -> Value {
        let request = self.next("POST /send").await;
        let message = request.message();
        assert_eq!(message["type"], kind, "{message}");
        request.answer(200, r#"{"ok":true}"#);
        message
    }

    /// Stops listening and hangs up on everybody.
    pub(crate) async fn vanish(mut self) {
        self.listening.abort();
        let _ = (&mut self.listening).await;
    }
}

impl Request {
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn answer(self, status: u16, body: &str) {
        self.reply
            .send(Reply::Plain(status, body.to_owned()))
            .unwrap();
    }

    pub(crate) fn confirm(self) {
        self.answer(200, r#"{"ok":true}"#);
    }

    /// Hangs up without a word.
    pub(crate) fn hang_up(self) {
        self.reply.send(Reply::Nothing).unwrap();
    }

    pub(crate) fn stream(self) -> Events {
        let (sender, receiver) = mpsc::channel(64);
        self.reply.send(Reply::Stream(receiver)).unwrap();
        Events(sender)
    }
}

impl Events {
    pub(crate) async fn write(&self, text: impl Into<Vec<u8>>) {
        self.0.send(text.into()).await.unwrap();
    }

    pub(crate) async fn say(&self, message: &Value) {
        self.write(format!("data: {message}\n\n")).await;
    }

    pub(crate) async fn say_as(&self, id: &str, message: &Value) {
        self.write(format!("id: {id}\ndata: {message}\n\n")).await;
    }

    /// Answers a call with this data.
    pub(crate) async fn result(&self, call: &Value, data: Value) {
        self.say(&result(call, data)).await;
    }

    pub(crate) async fn event(&self, call: &Value, seq: u64) {
        let data = json!({ "message": format!("step {seq}") });
        self.say(&json!({ "type": "tool/event", "req_id": call["id"], "kind": "status", "seq": seq, "data": data }))
            .await;
    }
}

/// The message that answers a call.
pub(crate) fn result(call: &Value, data: impl Into<Value>) -> Value {
    let result = json!({ "success": true, "tool_name": call["tool_name"], "duration_ms": 1, "data": data.into() });
    json!({ "type": "tool/call/resp", "id": "r", "req_id": call["id"], "data": result })
}

async fn serve(socket: TcpStream, connection: usize, requests: mpsc::Sender<Request>) {
    socket.set_nodelay(true).unwrap();
    let mut socket = BufReader::new(socket);
    while let Some((request, reply)) = read_request(&mut socket, connection).await {
        if requests.send(request).await.is_err() {
            return;
        }
        let out = socket.get_mut();
        match reply.await {
            Ok(Reply::Plain(status, body)) => {
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                if out.write_all((head + &body).as_bytes()).await.is_err() {
                    return;
                }
            }
            Ok(Reply::Stream(chunks)) => {
                write_stream(out, chunks).await;
                return;
            }
            Ok(Reply::Nothing) | Err(_) => return,
        }
    }
}

async fn write_stream(out: &mut TcpStream, mut chunks: mpsc::Receiver<Vec<u8>>) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    let _ = out.write_all(head.as_bytes()).await;
    let mut unread = [0; 1];
    loop {
        tokio::select! {
            chunk = chunks.recv() => match chunk {
                Some(chunk) => {
                    let framed = [format!("{:x}\r\n", chunk.len()).into_bytes(), chunk, b"\r\n".to_vec()].concat();
                    if out.write_all(&framed).await.is_err() {
                        return;
                    }
                }
                None => {
                    let _ = out.write_all(b"0\r\n\r\n").await;
                    return;
                }
            },
            // The client hung up.
            _ = out.peek(&mut unread) => return,
        }
    }
}

async fn read_request(
    socket: &mut BufReader<TcpStream>,
    connection: usize,
) -> Option<(Request, oneshot::Receiver<Reply>)> {
    let mut first = String::new();
    if socket.read_line(&mut first).await.ok()? == 0 {
        return None;
    }
    let line = first.rsplit_once(' ').unwrap().0.to_owned();
    let mut session = None;
    let mut last_event_id = None;
    let mut length = 0;
    loop {
        let mut header = String::new();
        socket.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "x-session-id" => session = Some(value.to_owned()),
            "last-event-id" => last_event_id = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    let (reply, answered) = oneshot::channel();
    let body = String::from_utf8(body).unwrap();
    Some((
        Request {
            line,
            session,
            last_event_id,
            body,
            connection,
            reply,
        },
        answered,
    ))
}
