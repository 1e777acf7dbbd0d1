//! One caller: half of its calls read, half write, each with a key of its own, each repeated until it is answered.
//!
//! It owns one file whose content is a number. A write replaces the number it knows by the next and says which
//! content it expects, so that a write that ran a second time would fail, and one that was lost would show.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{super::http::Answer, Dice, Home, Http, power::Power};

/// More than there are kills; a call that needs more will never be answered.
const TRIES: usize = 100;

/// What kind of call it is, and what must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Echo,
    Read,
    /// Replaces the caller's number: a second run meets another content than it expects.
    Chained,
    /// Makes a file of its own: a second run would not find it missing.
    Fresh,
}

/// A request that can be sent again.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) body: String,
}

/// A request and its answer.
pub(super) struct Said {
    pub(super) kind: Kind,
    pub(super) request: Request,
    pub(super) answer: Answer,
    /// The connection broke before the answer came.
    pub(super) interrupted: bool,
    /// How often the host had been started when it answered.
    pub(super) starts: usize,
}

pub(super) struct Caller<'h> {
    name: usize,
    home: &'h Home,
    power: &'h Power<'h>,
    dice: Dice,
    /// The connection, and which host it leads to.
    http: Option<(usize, Http)>,
    calls: usize,
    number: u64,
}

pub(super) fn chain_file(name: usize) -> String {
    format!("chain-{name}.txt")
}

pub(super) fn chain_text(name: usize, number: u64) -> String {
    format!("caller {name} wrote {number}\n")
}

fn fresh_file(name: usize, key: &str) -> String {
    format!("fresh/{name}/{key}.txt")
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl<'h> Caller<'h> {
    /// Makes every caller's file.
    pub(super) fn prepare(home: &Home, callers: usize) {
        (0..callers).for_each(|name| home.write(&chain_file(name), &chain_text(name, 0)));
    }

    pub(super) fn new(name: usize, home: &'h Home, power: &'h Power<'h>, dice: Dice) -> Self {
        Self {
            name,
            home,
            power,
            dice,
            http: None,
            calls: 0,
            number: 0,
        }
    }

    /// Makes the next call, looks at its answer, and tells both.
    pub(super) fn call(&mut self) -> Said {
        let kind = match self.dice.roll(10) {
            0..3 => Kind::Echo,
            3..5 => Kind::Read,
            5..8 => Kind::Chained,
            _ => Kind::Fresh,
        };
        self.calls += 1;
        let request = self.request(kind);
        let (answer, interrupted, starts) = self.ask(&request);
        assert_eq!(answer.status, 200, "{answer:?}");
        let said = Said {
            kind,
            request,
            answer,
            interrupted,
            starts,
        };
        self.judge(&said);
        said
    }

    fn request(&self, kind: Kind) -> Request {
        let key = format!("{}-{}", self.name, self.calls);
        let old = chain_text(self.name, self.number);
        let (tool, body) = match kind {
            Kind::Echo => ("echo", json!({ "message": key })),
            Kind::Read => (
                "read_file",
                json!({ "path": chain_file(self.name), "line_numbers": false }),
            ),
            Kind::Chained => {
                let new = chain_text(self.name, self.number + 1);
                let path = chain_file(self.name);
                (
                    "write_file",
                    json!({ "path": path, "content": new, "expected_sha256": sha256(&old) }),
                )
            }
            Kind::Fresh => {
                let path = fresh_file(self.name, &key);
                (
                    "write_file",
                    json!({ "path": path, "content": key, "create_directories": true }),
                )
            }
        };
        Request {
            path: format!("/tools/{tool}/call"),
            key,
            body: body.to_string(),
        }
    }

    /// Sends the request until it is answered.
    fn ask(&mut self, request: &Request) -> (Answer, bool, usize) {
        let mut interrupted = false;
        for _ in 0..TRIES {
            let starts = self.power.wait();
            // A connection to a host that is gone broke between two calls: none was interrupted.
            let kept = self
                .http
                .take()
                .filter(|(of, _)| *of == starts)
                .map(|(_, http)| http);
            let sent = kept
                .map_or_else(|| self.power.connect(), Ok)
                .and_then(|mut http| {
                    let answer = http.post_with_key(&request.path, &request.key, &request.body)?;
                    Ok((answer, http))
                });
            match sent {
                Ok((answer, http)) => {
                    self.http = Some((starts, http));
                    return (answer, interrupted, starts);
                }
                Err(_) => interrupted = true,
            }
        }
        panic!("`{}` was never answered", request.key);
    }

    /// Holds the answer against what this caller knows, and learns what it does not.
    fn judge(&mut self, said: &Said) {
        let result = said.answer.json();
        let text = |pointer: &str| {
            result
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let read = (text("/outcome"), text("/content/0/text"));
        match said.kind {
            Kind::Echo => assert_eq!(read, ("succeeded", said.request.key.as_str()), "{result}"),
            Kind::Read => {
                assert_eq!(
                    read,
                    ("succeeded", chain_text(self.name, self.number).as_str()),
                    "{result}"
                );
            }
            Kind::Fresh => {
                let found = self
                    .home
                    .try_read(&fresh_file(self.name, &said.request.key));
                let expected = took_effect(said, found.is_some()).then(|| said.request.key.clone());
                assert_eq!(found, expected, "{result}");
                assert_ne!(
                    result["structured_content"]["created"], false,
                    "it ran twice: {result}"
                );
            }
            Kind::Chained => {
                let old = chain_text(self.name, self.number);
                let new = chain_text(self.name, self.number + 1);
                let found = self.home.read(&chain_file(self.name));
                let took_effect = took_effect(said, found == new);
                assert_eq!(found, if took_effect { new } else { old }, "{result}");
                self.number += u64::from(took_effect);
            }
        }
    }
}

/// Whether a write took effect, by its answer; where nobody knows, by what is `seen`.
fn took_effect(said: &Said, seen: bool) -> bool {
    let result = said.answer.json();
    let code = result.pointer("/error/code").and_then(Value::as_str);
    match (result["outcome"].as_str().unwrap(), code, said.interrupted) {
        ("succeeded", None, _) => true,
        // Not begun when the host died.
        ("canceled", Some("restart"), true) => false,
        // Begun when the host died, and never run again.
        ("unknown", Some("restart"), true) => seen,
        _ => panic!("a write that nothing stands in the way of ended in {result}"),
    }
}
