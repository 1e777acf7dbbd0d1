//! The suite against the real binary with a conformance server behind it: both faces of the host, and the bridge between
//! the revisions. The server is on the official SDK and passes the suite by itself, which the first test here shows.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use super::{
    home::Home,
    served::Served,
    suite::{self, Known, peers},
};

const SESSIONS: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_peers/conformance_server.py")
}

fn python() -> PathBuf {
    peers("peers-mcp").join("bin/python")
}

/// The conformance server at an address of its own. Killed when dropped.
struct Upstream {
    child: Child,
    url: String,
}

impl Upstream {
    fn start() -> Self {
        let mut child = Command::new(python())
            .arg(program())
            .args(["--http", "0"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A host with the server's tools under their own names, and with rules that allow everything.
fn host(home: &Home, reach: &str, era: &str) -> Served {
    let text = format!(
        "mode: bypass\nmcp:\n  servers:\n    conformance:\n      {reach}\n      era: {era}\n      naming: bare\n      \
         start: eager\n      new_tools: take\n"
    );
    home.write("host.yaml", &text);
    Served::start(home, &["--no-token", "--config", "host.yaml"])
}

#[track_caller]
fn check(what: &str, reach: &str, era: &str, revision: &str, known: Known) {
    let home = Home::new();
    let served = host(&home, reach, era);
    let report = suite::run(&format!("http://{}/mcp", served.address), revision);
    report.judge(
        &format!("{what}, upstream {era}, downstream {revision}"),
        known,
    );
    served.stop();
}

fn over_pipes(era: &str, revision: &str, known: Known) {
    let reach = format!(
        "command: {}\n      args: [{}]\n      sandbox: none",
        python().display(),
        program().display()
    );
    check("over pipes", &reach, era, revision, known);
}

fn over_http(era: &str, revision: &str, known: Known) {
    let upstream = Upstream::start();
    check(
        "over HTTP",
        &format!("url: {}", upstream.url),
        era,
        revision,
        known,
    );
}

#[test]
fn the_server_by_itself_with_sessions() {
    suite::run(&Upstream::start().url, SESSIONS).judge("the server itself, 2025-11-25", &[]);
}

#[test]
fn the_server_by_itself_stateless() {
    suite::run(&Upstream::start().url, STATELESS).judge("the server itself, 2026-07-28", &[]);
}

/// What a server with sessions cannot say to a client without them.
const BETWEEN_THE_REVISIONS: Known = &[
    (
        "input-required-result-basic-elicitation",
        "the asker names its question in 2026-07-28, and questions have no names in 2025-11-25",
    ),
    (
        "input-required-result-multiple-input-requests",
        "a server asks one thing after another in 2025-11-25, so its questions do not come together",
    ),
];

#[test]
fn sessions_to_sessions() {
    over_pipes(SESSIONS, SESSIONS, &[]);
}

/// Over pipes a server with sessions does not say which call a question belongs to, and the suite leaves calls open that
/// wait for an answer.
#[test]
fn sessions_to_stateless() {
    over_pipes(SESSIONS, STATELESS, BETWEEN_THE_REVISIONS);
}

#[test]
fn over_http_sessions_to_stateless() {
    over_http(SESSIONS, STATELESS, BETWEEN_THE_REVISIONS);
}

#[test]
fn stateless_to_sessions() {
    over_pipes(STATELESS, SESSIONS, &[]);
}

#[test]
fn stateless_to_stateless() {
    over_pipes(STATELESS, STATELESS, &[]);
}

#[test]
fn over_http_with_sessions_on_both_sides() {
    over_http(SESSIONS, SESSIONS, &[]);
}

#[test]
fn over_http_whatever_the_server_answers() {
    over_http("auto", STATELESS, &[]);
}
