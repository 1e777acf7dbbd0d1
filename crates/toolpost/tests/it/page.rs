//! The page that shows live calls, in a real browser, while the command line calls tools.

mod scripted;

use std::{
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{browser::Browser, home::Home, served::Served};

/// Far beyond anything that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the cards on the page say, newest first.
const CARDS: &str = "return [...document.querySelectorAll('.card')].map(card => {
    const text = name => card.querySelector('.' + name).textContent;
    return [card.dataset.state, text('name'), text('arguments'), text('outcome')];
});";
/// How the newest card stands.
const WORD: &str = "return document.querySelector('.card .word').textContent;";
const STATE: &str = "return document.getElementById('state').dataset.state;";

/// Asks the page until its answer is good.
#[track_caller]
fn see(browser: &Browser, script: &str, is_good: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let seen = browser.ask(script);
        if is_good(&seen) {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "the page still says {seen}");
    }
}

/// Keeps a picture for whoever wants to look, once it is one: more than an empty page.
#[track_caller]
fn keep(browser: &Browser, name: &str) -> Vec<u8> {
    let picture = browser.picture();
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), &picture).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"), "{name} is a PNG");
    let size = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert!(
        size(16) >= 600 && size(20) >= 400,
        "{name} is {} by {}",
        size(16),
        size(20)
    );
    assert!(picture.len() > 8_000, "{name} has {} bytes", picture.len());
    picture
}

fn call(home: &Home, words: &[&str]) -> Child {
    let mut all = vec!["call"];
    all.extend(words);
    all.extend(["--session", "default:agent:agent"]);
    home.command(&all).spawn().unwrap()
}

fn question(home: &Home) -> String {
    let begun = Instant::now();
    loop {
        let asked = home.run(&["approvals", "--json"]).expect(0).json();
        if let Some(id) = asked["approvals"][0]["ask_id"].as_str() {
            return id.to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "nobody is asked: {asked}");
    }
}

#[test]
fn a_card_appears_runs_and_finishes_and_survives_the_host() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let browser = Browser::open();
    browser.go(&format!("http://{}/live", served.address));
    browser.colours("light");
    browser.fill("#token", &Served::token(&home));
    browser.click("#go");
    see(&browser, STATE, |state| state == "live");
    let hint = browser.ask("return document.getElementById('try').textContent;");
    assert_eq!(
        hint,
        "toolpost call echo message=hello --session default:agent:agent"
    );
    assert_eq!(
        browser.ask("return location.href.includes('token');"),
        false
    );
    let empty = keep(&browser, "live-calls-empty.png");
    // Whoever copies the command sees its card.
    let words: Vec<&str> = hint.as_str().unwrap().split(' ').skip(1).collect();
    assert_eq!(home.run(&words).expect(0).stdout, "hello\n");
    let cards = see(&browser, CARDS, |cards| cards[0][0] == "done");
    assert_eq!(
        (&cards[0][1], &cards[0][2]),
        (&json!("echo"), &json!("{\"message\":\"hello\"}"))
    );

    // It waits for a person, so there is time to look.
    let writing = call(
        &home,
        &[
            "write_file",
            "path=plan.txt",
            "content=one <b>bold</b> step",
        ],
    );
    let cards = see(&browser, CARDS, |cards| cards[0][0] == "running");
    assert_eq!(
        (&cards[0][1], &cards[0][3]),
        (&json!("write_file"), &json!(""))
    );
    assert!(
        cards[0][2]
            .as_str()
            .unwrap()
            .contains("one <b>bold</b> step"),
        "{cards}"
    );
    see(&browser, WORD, |word| word == "waiting for approval");
    let running = keep(&browser, "live-calls-running.png");
    home.run(&["approvals", "allow", &question(&home)])
        .expect(0);
    assert!(writing.wait_with_output().unwrap().status.success());
    see(&browser, CARDS, |cards| cards[0][0] == "done");

    let missing = call(&home, &["read_file", "path=nothing-here.txt"]);
    assert!(!missing.wait_with_output().unwrap().status.success());
    let cards = see(&browser, CARDS, |cards| cards[0][0] == "failed");
    assert_eq!(cards[0][1], "read_file");
    assert!(
        cards[0][3].as_str().unwrap().contains("nothing-here.txt"),
        "{cards}"
    );
    let reading = call(&home, &["read_file", "path=plan.txt"]);
    reading.wait_with_output().unwrap();
    let cards = see(&browser, CARDS, |cards| cards[0][0] == "done");
    assert!(
        cards[0][3].as_str().unwrap().contains("plan.txt"),
        "{cards}"
    );
    // What tools were given and gave is text and never part of the page.
    assert_eq!(
        browser.ask("return document.querySelectorAll('main b').length;"),
        0
    );
    let finished = keep(&browser, "live-calls-finished.png");
    browser.colours("dark");
    let dark = keep(&browser, "live-calls-dark.png");
    assert!(
        empty != running && running != finished && finished != dark,
        "each picture shows something else"
    );

    // The page comes back to the next host where it was: nothing is told twice, nothing is missed.
    let address = served.address.to_string();
    served.kill();
    see(&browser, STATE, |state| state == "waiting");
    let served = Served::spawn(&mut home.command(&["serve", "--http", &address]));
    see(&browser, STATE, |state| state == "live");
    call(&home, &["list_directory"]).wait_with_output().unwrap();
    let cards = see(&browser, CARDS, |cards| {
        cards[0][1] == "list_directory" && cards[0][0] == "done"
    });
    let names: Vec<&Value> = cards
        .as_array()
        .unwrap()
        .iter()
        .map(|card| &card[1])
        .collect();
    assert_eq!(
        names,
        [
            "list_directory",
            "read_file",
            "read_file",
            "write_file",
            "echo"
        ]
    );
    drop(browser);
    served.stop();
}
