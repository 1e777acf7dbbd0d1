//! Sentinels: a secret comes in by every way there is, and is then looked for in every byte that the real binary wrote
//! or sent.

mod everywhere;
mod references;

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    home::{Home, Ran},
    http::Http,
    served::Served,
};

/// In the environment of the host.
pub(super) const IN_ENVIRONMENT: &str = "sentinel-of-the-environment-4711";
/// In a field that is marked as sensitive.
pub(super) const IN_SENSITIVE_FIELD: &str = "sentinel in a sensitive field";
/// By their shape.
pub(super) const BY_SHAPE: &str = "ghp_S3nt1nelS3nt1nelS3nt1nelS3nt1nel1234";
pub(super) const KEY_LINE: &str = "c2VudGluZWwtb2YtYS1wcml2YXRlLWtleS1pbi1hLWZpbGU";

/// Every text that must be nowhere, in every form that is looked for.
fn forbidden() -> Vec<String> {
    let hex: String = IN_ENVIRONMENT
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut all: Vec<String> = [IN_ENVIRONMENT, IN_SENSITIVE_FIELD, BY_SHAPE, KEY_LINE]
        .map(str::to_owned)
        .to_vec();
    // What `base64` makes of the whole, and of it behind one or two bytes.
    all.extend(
        [
            "c2VudGluZWwtb2YtdGhlLWVudmlyb25tZW50LTQ3MT",
            "NlbnRpbmVsLW9mLXRoZS1lbnZpcm9ubWVudC00NzEx",
            "zZW50aW5lbC1vZi10aGUtZW52aXJvbm1lbnQtNDcxM",
        ]
        .map(str::to_owned),
    );
    all.push(hex);
    all
}

#[track_caller]
pub(super) fn check(what: &str, bytes: &[u8]) {
    for sentinel in forbidden() {
        let found = bytes
            .windows(sentinel.len())
            .position(|window| window == sentinel.as_bytes());
        if let Some(at) = found {
            let around = String::from_utf8_lossy(
                &bytes[at.saturating_sub(120)..(at + 160).min(bytes.len())],
            );
            panic!("`{sentinel}` is in {what}: …{around}…");
        }
    }
}

/// A home with a host whose configuration, workspace and environment hold sentinels.
pub(super) struct Laid {
    pub(super) home: Home,
    config: PathBuf,
}

impl Laid {
    pub(super) fn new(config: &str) -> Self {
        let home = Home::new();
        let path = home.workspace().parent().unwrap().join("trusted.yaml");
        std::fs::write(&path, config).unwrap();
        Self { home, config: path }
    }

    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.config.with_file_name(name)
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("SENTINEL_API_KEY", IN_ENVIRONMENT);
        command.env("TOOLPOST_LOG", "trace");
        command
    }

    pub(super) fn serve(&self) -> Served {
        let config = self.config.to_str().unwrap();
        Served::spawn(&mut self.command(&["serve", "--http", "127.0.0.1:0", "--config", config]))
    }

    /// Runs a command, and looks through all it says.
    #[track_caller]
    pub(super) fn run(&self, words: &[&str]) -> Ran {
        let ran = Ran::from(self.command(words).output().unwrap());
        check(
            &format!("what `toolpost {words:?}` says"),
            format!("{}{}", ran.stdout, ran.stderr).as_bytes(),
        );
        ran
    }

    /// The same with the trusted configuration.
    #[track_caller]
    pub(super) fn configured(&self, words: &[&str]) -> Ran {
        self.run(&[words, &["--config", self.config.to_str().unwrap()]].concat())
    }

    /// Looks through every file of the data directory.
    #[track_caller]
    pub(super) fn check_disk(&self) {
        let mut seen = 0;
        check_folder(&self.home.data_dir(), &mut seen);
        assert!(seen >= 2, "the record and the token at least");
    }
}

#[track_caller]
fn check_folder(folder: &Path, seen: &mut usize) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = std::fs::symlink_metadata(&path).unwrap();
        check("the name of a file", path.as_os_str().as_encoded_bytes());
        if about.is_dir() {
            check_folder(&path, seen);
        } else if about.is_file() {
            *seen += 1;
            check(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
}

/// A call over HTTP that is answered as one, looked through.
#[track_caller]
pub(super) fn post(http: &mut Http, path: &str, body: &serde_json::Value) -> serde_json::Value {
    let answer = http.post(path, &body.to_string()).unwrap();
    check(path, answer.body.as_bytes());
    answer.json()
}

/// A call over HTTP whose events are streamed: every byte of the stream.
#[track_caller]
pub(super) fn streamed(
    served: &Served,
    home: &Home,
    path: &str,
    body: &serde_json::Value,
) -> String {
    let mut stream = TcpStream::connect(served.address).unwrap();
    let token = Served::token(home);
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    )
    .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    check("a stream of events", &all);
    String::from_utf8(all).unwrap()
}
