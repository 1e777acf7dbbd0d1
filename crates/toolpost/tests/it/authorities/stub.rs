//! A policy endpoint on loopback that answers in OPA's form, or as a broken or hostile one would.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

/// What the endpoint does with a question.
#[derive(Clone)]
pub(crate) enum Manner {
    /// Answers 200 in JSON.
    Answers(&'static str),
    /// Answers with this status line and further headers.
    Says {
        status: &'static str,
        headers: String,
        body: Vec<u8>,
    },
    /// Reads the question and never answers.
    Sleeps,
    /// Reads the question and closes the connection.
    HangsUp,
    /// Promises more than it sends.
    BreaksOff,
    /// Sends the body without an end and without its length.
    Floods,
}

/// The endpoint. Its thread ends with the test's process.
pub(crate) struct StubEndpoint {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<StubRequest>>>,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct StubRequest {
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
}

impl StubEndpoint {
    pub(crate) fn new(manner: Manner) -> Self {
        Self::deciding(move |_| manner.clone())
    }

    /// Answers by what it is asked.
    pub(crate) fn deciding(decide: impl Fn(&Value) -> Manner + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!(
            "http://{}/v1/data/toolpost/decision",
            listener.local_addr().unwrap()
        );
        let requests: Arc<Mutex<Vec<StubRequest>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let decide = Arc::new(decide);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                let decide = Arc::clone(&decide);
                thread::spawn(move || while serve(&stream, &kept, &*decide).is_some() {});
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<StubRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// What was asked, as OPA's `input`.
    pub(crate) fn inputs(&self) -> Vec<Value> {
        self.requests()
            .iter()
            .map(|request| request.body["input"].clone())
            .collect()
    }
}

/// Serves one request; `None` where the connection is over.
fn serve(
    stream: &TcpStream,
    kept: &Mutex<Vec<StubRequest>>,
    decide: &(dyn Fn(&Value) -> Manner + Send + Sync),
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    })?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let manner = decide(&body["input"]);
    let line = lines.remove(0);
    let headers = lines;
    kept.lock().unwrap().push(StubRequest {
        line,
        headers,
        body,
    });
    answer(stream, manner)
}

fn answer(mut stream: &TcpStream, manner: Manner) -> Option<()> {
    let head = |status: &str, headers: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n")
    };
    let json = "Content-Type: application/json\r\n";
    match manner {
        Manner::Answers(body) => {
            stream
                .write_all(head("200 OK", json, body.len()).as_bytes())
                .ok()?;
            stream.write_all(body.as_bytes()).ok()
        }
        Manner::Says {
            status,
            headers,
            body,
        } => {
            stream
                .write_all(head(status, &headers, body.len()).as_bytes())
                .ok()?;
            stream.write_all(&body).ok()
        }
        Manner::Sleeps => {
            // Until the host gives up and closes.
            stream
                .set_read_timeout(Some(Duration::from_secs(120)))
                .ok()?;
            let _ = stream.read(&mut [0]);
            None
        }
        Manner::HangsUp => None,
        Manner::BreaksOff => {
            stream
                .write_all(head("200 OK", json, 1_000).as_bytes())
                .ok()?;
            stream.write_all(b"{\"result\": true").ok()?;
            None
        }
        Manner::Floods => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").ok()?;
            let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
            // Ends when the host closes the connection.
            loop {
                stream.write_all(chunk.as_bytes()).ok()?;
            }
        }
    }
}
