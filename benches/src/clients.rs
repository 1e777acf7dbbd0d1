//! A load of plain HTTP clients: keep-alive connections that send one request after another.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::rounds::rate;

/// Calls a second that `clients` connections get through in `time`.
pub(crate) async fn load(
    address: &str,
    request: &str,
    clients: usize,
    time: Duration,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let address = address.to_owned();
        let request = request.to_owned();
        tasks.push(tokio::spawn(async move {
            let mut client = Client::connect(&address).await?;
            let mut calls = 0_u64;
            while began.elapsed() < time {
                client.send(&request).await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        }));
    }
    rate(began, tasks).await
}

/// One keep-alive connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Where the last answer's body is.
    body: std::ops::Range<usize>,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 64 << 10],
            body: 0..0,
        })
    }

    /// Sends a request, reads the whole answer and expects a 200. Returns the length of the body.
    pub(crate) async fn send(&mut self, request: &str) -> anyhow::Result<usize> {
        self.stream.write_all(request.as_bytes()).await?;
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            if read == 0 {
                bail!("the server closed the connection");
            }
            filled += read;
            let head = &self.buffer[..filled.min(4_096)];
            let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else {
                continue;
            };
            let head = std::str::from_utf8(&self.buffer[..end]).context("the answer's head")?;
            if !head.starts_with("HTTP/1.1 200") {
                bail!(
                    "not a 200: {}",
                    String::from_utf8_lossy(&self.buffer[..filled])
                );
            }
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            let length: usize = length.context("an answer without a length")?;
            if filled >= end + 4 + length {
                self.body = end + 4..end + 4 + length;
                return Ok(length);
            }
        }
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.buffer[self.body.clone()]
    }
}

pub(crate) fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}
