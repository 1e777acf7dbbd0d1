//! Messages over the pipes of a program: one a line, and no line longer than the operator allows.
//!
//! The SDK's own line reader throws away what it cannot read without telling anybody; then a call would wait for its
//! deadline. Here a line that cannot be borne ends the connection, and what is no message is counted.

use std::{borrow::Cow, io, sync::Arc};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, CustomResult, JsonRpcResponse, JsonRpcVersion2_0, RequestId,
        ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::pipe::{Receiver, Sender},
    sync::Mutex,
};

use super::{super::desk::McpMessageRouter, heard::SdkRequestIds};

/// The pipes of a program that is an MCP server.
pub(super) struct Pipes {
    reading: Receiver,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    looked: usize,
    longest: usize,
    writing: Arc<Mutex<Option<Sender>>>,
    desk: Arc<McpMessageRouter>,
    typed: SdkRequestIds,
}

impl Pipes {
    pub(super) fn new(
        (reading, writing): (Receiver, Sender),
        longest: usize,
        desk: Arc<McpMessageRouter>,
        typed: SdkRequestIds,
    ) -> Self {
        let writing = Arc::new(Mutex::new(Some(writing)));
        Self {
            reading,
            buffer: Vec::with_capacity(16 << 10),
            looked: 0,
            longest,
            writing,
            desk,
            typed,
        }
    }

    /// The next line, without its end. May be given up and called again. `None`: there are no more.
    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer[self.looked..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let rest = self.buffer.split_off(self.looked + at + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                self.looked = 0;
                return Some(line);
            }
            self.looked = self.buffer.len();
            if self.buffer.len() > self.longest {
                self.desk.end(&format!(
                    "it wrote a message of more than {} bytes",
                    self.longest
                ));
                return None;
            }
            match self.reading.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The message on a line. Answers are taken as they are: the SDK's reading of them loses what it does not know.
    fn read(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
            self.desk.nuisance("lines that are no JSON");
            return None;
        };
        let id = message
            .get("id")
            .and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        if let (Some(id), true, Some(result)) = (
            id,
            message.get("method").is_none(),
            message.get_mut("result").map(Value::take),
        ) {
            if self.typed.has(&id) {
                message["result"] = result;
            } else {
                let result = ServerResult::CustomResult(CustomResult(result));
                let response = JsonRpcResponse {
                    jsonrpc: JsonRpcVersion2_0,
                    id,
                    result,
                };
                return Some(ServerJsonRpcMessage::Response(response));
            }
        }
        let message = serde_json::from_value(message).ok();
        if message.is_none() {
            self.desk.nuisance("JSON that is no message");
        }
        message
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "pipes".into()
    }

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writing = Arc::clone(&self.writing);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut writing = writing.lock().await;
            let closed = || io::Error::new(io::ErrorKind::NotConnected, "its input is closed");
            writing.as_mut().ok_or_else(closed)?.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = self.line().await?;
            if self.desk.ended().is_some() {
                return None;
            }
            if let Some(message) = self.read(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writing.lock().await.take());
        Ok(())
    }
}
