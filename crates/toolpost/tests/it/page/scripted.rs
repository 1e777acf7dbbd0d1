//! The page before a host that says what a real one says rarely: calls that nobody ended, and texts that hide something.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
};

use serde_json::{Value, json};

use super::{super::browser::Browser, CARDS, STATE, WORD, see};

/// What a stream says at once, and what it says when it is told to; without that, it ends.
type Script = (String, Option<(Receiver<()>, String)>);

/// Serves the page, and one script for each stream that is opened. Gives the page's address.
fn serve(scripts: Vec<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/live/", listener.local_addr().unwrap());
    let scripts = Arc::new(Mutex::new(scripts.into_iter()));
    std::thread::spawn(move || {
        for peer in listener.incoming().map_while(Result::ok) {
            let scripts = Arc::clone(&scripts);
            // A browser may open a connection and say nothing, or be gone before it has read.
            std::thread::spawn(move || {
                let _ = answer(peer, || scripts.lock().unwrap().next());
            });
        }
    });
    url
}

fn answer(mut peer: TcpStream, next: impl FnOnce() -> Option<Script>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (kind, body) = match path {
        "/live/" => (
            "text/html",
            include_str!("../../../../../examples/live-calls/index.html"),
        ),
        "/live/live.js" => (
            "text/javascript",
            include_str!("../../../../../examples/live-calls/live.js"),
        ),
        "/live/live.css" => (
            "text/css",
            include_str!("../../../../../examples/live-calls/live.css"),
        ),
        _ => ("text/event-stream", ""),
    };
    let script = if body.is_empty() { next() } else { None };
    write!(
        peer,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}"
    )?;
    if let Some((at_once, later)) = script {
        peer.write_all(at_once.as_bytes())?;
        if let Some((when, later)) = later {
            let _ = when.recv();
            peer.write_all(later.as_bytes())?;
        }
    }
    Ok(())
}

fn frame(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn begun(id: &str) -> String {
    let started = "2026-01-02T03:04:05.000Z";
    let data = json!({ "type": "tool-call", "toolCallId": id, "toolName": "add", "input": {}, "startedAt": started });
    frame("tool-event", &data)
}

fn ended(id: &str, output: &Value) -> String {
    frame(
        "tool-event",
        &json!({ "type": "tool-result", "toolCallId": id, "output": output, "durationMs": 3 }),
    )
}

fn opening(open: &[&str]) -> String {
    frame("opening", &json!({ "open": open }))
}

fn closing(reason: &str) -> String {
    frame("closing", &json!({ "reason": reason }))
}

#[test]
fn calls_of_a_host_that_is_gone_are_given_up_and_a_closed_session_is_no_fault() {
    let evil = json!({ "toolCallId": "e", "type": "tool-call", "toolName": "she\u{202e}ll\u{200b}", "input": { "a": "\u{2066}\u{9b}b" } });
    let said = json!({ "artifacts": [], "text": "first \u{202e}\nsecond", "remarks": ["r"] });
    let first = [
        opening(&[]),
        begun("lost"),
        begun("open"),
        begun("late"),
        closing("shutdown"),
    ]
    .concat();
    let second = [
        opening(&["open"]),
        begun("open"),
        frame("tool-event", &evil),
        ended("e", &said),
        ended("late", &json!(7)),
    ]
    .concat();
    let third = [
        ended("open", &json!(1)),
        ended("lost", &json!(2)),
        closing("session_closed"),
    ]
    .concat();
    let (go_on, when) = channel();
    let url = serve(vec![(first, None), (second, Some((when, third)))]);
    let browser = Browser::open();
    browser.go(&url);
    browser.click("#go");
    // Newest first: `e`, `late`, `open`, `lost`.
    let cards = see(&browser, CARDS, |cards| cards[3][0] == "lost");
    let states: Vec<&Value> = cards
        .as_array()
        .unwrap()
        .iter()
        .map(|card| &card[0])
        .collect();
    assert_eq!(states, ["done", "done", "running", "lost"]);
    let word = WORD.replace(".card .word", ".card:last-child .word");
    assert_eq!(
        browser.ask(&word),
        "no result: the host that ran it is gone"
    );
    assert_eq!(cards[0][1], "she\\u{202e}ll\\u{200b}");
    assert_eq!(cards[0][2], "{\"a\":\"\\u{2066}\\u{9b}b\"}");
    assert_eq!(
        cards[0][3],
        "first \\u{202e}\nsecond\n\n{\"artifacts\":[],\"remarks\":[\"r\"]}"
    );
    assert_eq!(browser.ask(STATE), "live");
    // An end that comes after all counts.
    go_on.send(()).unwrap();
    let cards = see(&browser, CARDS, |cards| {
        cards[3][0] == "done" && cards[2][0] == "done"
    });
    assert_eq!((&cards[2][3], &cards[3][3]), (&json!("1"), &json!("2")));
    see(&browser, STATE, |state| state == "off");
    assert_eq!(
        browser.ask("return document.getElementById('state').textContent;"),
        "this session was closed"
    );
}

#[test]
fn what_runs_stays_when_there_are_too_many_cards() {
    let mut story = opening(&[]) + &begun("runs");
    for number in 0..250 {
        story += &(begun(&format!("c{number}")) + &ended(&format!("c{number}"), &json!(number)));
    }
    let (go_on, when) = channel();
    let url = serve(vec![(story, Some((when, closing("session_closed"))))]);
    let browser = Browser::open();
    browser.go(&url);
    browser.click("#go");
    let cards = see(&browser, CARDS, |cards| cards[0][3] == "249");
    let cards = cards.as_array().unwrap();
    assert_eq!(cards.len(), 200);
    assert_eq!(
        (&cards[199][0], &cards[198][3]),
        (&json!("running"), &json!("51"))
    );
    go_on.send(()).unwrap();
}
