//! Servers that mean no good.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use tokio::runtime::Builder;
use toolpost_model::{CallContext, ErrorClass, ToolCall};
use toolpost_processes::NetworkSettings;

use super::{Net, Port, Server, body, facts, listing, refused, reply};
use crate::desk::input;

const TOOLS: [&str; 2] = ["http_request", "fetch_page"];

/// Zeros, compressed about 1:1,000, without an end.
struct ZeroBits {
    bits: u64,
    count: u32,
}

impl ZeroBits {
    /// The head of a gzip stream, a block with fixed codes, one zero.
    fn begin() -> (Vec<u8>, Self) {
        let mut stream = vec![31, 139, 8, 0, 0, 0, 0, 0, 0, 255];
        let mut bits = Self { bits: 0, count: 0 };
        bits.push(0b010, 3, &mut stream);
        // The literal 0 is `00110000`, written from the top.
        bits.push(0b0000_1100, 8, &mut stream);
        (stream, bits)
    }

    fn push(&mut self, value: u64, length: u32, stream: &mut Vec<u8>) {
        self.bits |= value << self.count;
        self.count += length;
        while self.count >= 8 {
            stream.push(self.bits as u8);
            self.bits >>= 8;
            self.count -= 8;
        }
    }

    /// `runs` times 258 zeros more: "258 bytes from 1 byte before".
    fn more(&mut self, runs: usize) -> Vec<u8> {
        let mut stream = Vec::new();
        for _ in 0..runs {
            self.push(0b1010_0011, 8, &mut stream);
            self.push(0, 5, &mut stream);
        }
        stream
    }
}

#[test]
fn a_decompression_bomb_is_cut_while_it_unpacks() {
    const UNPACKED: u64 = 2 << 30;
    let sent = Arc::new(AtomicU64::new(0));
    let count = sent.clone();
    let server = Server::writing(move |_, stream| {
        let (head, mut zeros) = ZeroBits::begin();
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n",
        );
        let _ = stream.write_all(&head);
        let piece = 8_192;
        for _ in 0..UNPACKED / (piece * 258) {
            let bytes = zeros.more(piece as usize);
            if stream.write_all(&bytes).is_err() {
                return;
            }
            count.fetch_add(piece * 258, Ordering::SeqCst);
        }
    });
    let net = Net::open(&[&server]);
    let output = net
        .request(json!({ "url": server.url("/"), "max_bytes": 1_000_000 }))
        .unwrap();
    assert_eq!(
        (&facts(&output)["bytes"], output.truncated.is_some()),
        (&json!(1_000_000), true)
    );
    let failed = refused(
        net.request(json!({ "url": server.url("/"), "save_to": "bomb", "max_bytes": 1_000_000 })),
        ErrorClass::ResultTooLarge,
    );
    assert_eq!(failed.code, "too_large");
    assert!(net.files().is_empty(), "{:?}", net.files());
    // Zeros are no page.
    assert_eq!(
        net.page(json!({ "url": server.url("/") }))
            .unwrap_err()
            .code,
        "not_a_page"
    );
    assert!(
        sent.load(Ordering::SeqCst) < 3 * UNPACKED,
        "everything was sent"
    );
}

/// All of a small compressed body is there at once, so unpacking it never waits for the network.
#[test]
fn other_tasks_get_their_turn_while_a_bomb_unpacks() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&vec![0; 24 << 20]).unwrap();
    let bomb = packer.finish().unwrap();
    let server = Server::writing(move |_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n",
        );
        let _ = stream.write_all(&bomb);
    });
    let net = Net::with(NetworkSettings {
        max_body_bytes: 24 << 20,
        ..listing(&[&server])
    });
    let one_thread = Builder::new_current_thread().enable_all().build().unwrap();
    let port = Arc::new(Port::default());
    let reports = Arc::clone(&port);
    let most_without_a_turn = Arc::new(AtomicU64::new(0));
    let most = Arc::clone(&most_without_a_turn);
    one_thread.spawn(async move {
        let mut before = 0;
        loop {
            let now = reports.events.lock().unwrap().len();
            most.fetch_max((now - before) as u64, Ordering::SeqCst);
            before = now;
            tokio::task::yield_now().await;
        }
    });
    let arguments = input(json!({ "url": server.url("/"), "max_bytes": 24 << 20 }));
    let call = ToolCall {
        input: arguments,
        context: CallContext::new(port.clone()),
    };
    let _ = one_thread.block_on(net.tool("http_request").execute(call));
    let reported = port.events.lock().unwrap().len();
    assert!(
        reported >= 20,
        "a report for each MiB was expected: {reported}"
    );
    let most = most_without_a_turn.load(Ordering::SeqCst);
    assert!(
        most <= 4,
        "{most} of {reported} MiB were unpacked in one go"
    );
}

#[test]
fn endless_headers_end() {
    let server = Server::writing(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        for number in 0_u64.. {
            let line = format!("X-{number}: {}\r\n", "a".repeat(1_000));
            if stream.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let net = Net::open(&[&server]);
    for tool in TOOLS {
        let failed = refused(
            net.call(tool, json!({ "url": server.url("/") })),
            ErrorClass::DependencyUnavailable,
        );
        assert_eq!(failed.code, "broken_exchange");
        assert!(failed.message.len() < 500, "{failed:?}");
    }
}

#[test]
fn one_endless_header_line_ends() {
    let server = Server::writing(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        while stream.write_all(&[b'a'; 65_536]).is_ok() {}
    });
    let net = Net::open(&[&server]);
    refused(
        net.request(json!({ "url": server.url("/") })),
        ErrorClass::DependencyUnavailable,
    );
}

#[test]
fn endless_interim_answers_end_at_the_deadline() {
    let server = Server::writing(|_, stream| {
        while stream
            .write_all(&b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10))
            .is_ok()
        {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let net = Net::open(&[&server]);
    let failed = net
        .request(json!({ "url": server.url("/"), "timeout_seconds": 1 }))
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(
            failed.class,
            ErrorClass::Timeout | ErrorClass::DependencyUnavailable
        ),
        "{failed:?}"
    );
}

/// Writes a byte now and then until the other side goes away.
fn drip(stream: &mut std::net::TcpStream) {
    while stream.write_all(b"a").is_ok() {
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_slow_drip_ends_at_the_deadline() {
    let server = Server::writing(|seen, stream| match seen.path.as_str() {
        "/silent" => thread::sleep(Duration::from_secs(20)),
        "/head" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
            drip(stream);
        }
        _ => {
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999\r\n\r\n",
            );
            drip(stream);
        }
    });
    let net = Net::open(&[&server]);
    for path in ["/silent", "/head", "/body"] {
        for tool in TOOLS {
            let failed = refused(
                net.call(
                    tool,
                    json!({ "url": server.url(path), "timeout_seconds": 1 }),
                ),
                ErrorClass::Timeout,
            );
            assert_eq!(failed.code, "timeout");
        }
    }
    let saved =
        net.request(json!({ "url": server.url("/body"), "timeout_seconds": 1, "save_to": "a" }));
    refused(saved, ErrorClass::Timeout);
    assert!(net.files().is_empty());
}

#[test]
fn answers_that_are_cut_off_or_garbled_say_so() {
    let check = |answer: &'static [u8], code: &str| {
        let server = Server::start(move |_| answer.to_vec());
        let net = Net::open(&[&server]);
        for tool in TOOLS {
            let failed = refused(
                net.call(tool, json!({ "url": server.url("/") })),
                ErrorClass::DependencyUnavailable,
            );
            assert_eq!(failed.code, code, "{failed:?}");
        }
        let saved = net.request(json!({ "url": server.url("/"), "save_to": "a" }));
        assert_eq!(saved.map(|_| ()).unwrap_err().code, code);
        assert!(net.files().is_empty());
    };
    check(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nshort",
        "cut_off",
    );
    check(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", "cut_off");
    check(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx", "cut_off");
    check(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "cut_off",
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "broken_exchange",
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
        "broken_exchange",
    );
    check(b"HTTP/1.1 99999 What\r\n\r\n", "broken_exchange");
    check(b"SSH-2.0-OpenSSH_9.2\r\n", "broken_exchange");
    check(b"", "broken_exchange");
}

#[test]
fn more_bytes_than_announced_are_not_read() {
    let server = Server::start(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n".to_vec()
    });
    let net = Net::open(&[&server]);
    for _ in 0..2 {
        assert_eq!(
            body(&net.request(json!({ "url": server.url("/") })).unwrap()),
            "hello"
        );
    }
}

#[test]
fn many_and_odd_headers_are_bounded_in_the_result() {
    let server = Server::start(|_| {
        let many: Vec<String> = (0..80)
            .map(|number| format!("X-{number}: {}", "v".repeat(3_000)))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        reply("200 OK", &many, "ok")
    });
    let output = Net::open(&[&server])
        .request(json!({ "url": server.url("/") }))
        .unwrap();
    let headers = facts(&output)["headers"].as_object().unwrap();
    assert_eq!(headers.len(), 60);
    assert!(
        headers
            .values()
            .all(|value| value.as_str().unwrap().len() <= 1_000)
    );
    assert!(
        facts(&output)["notes"][0]
            .as_str()
            .unwrap()
            .contains("more headers")
    );
}

#[test]
fn a_server_that_speaks_no_tls_is_not_trusted() {
    let server = Server::start(|_| reply("200 OK", &[], "plain"));
    let url = server.url("/").replace("http://", "https://");
    let private = vec![toolpost_processes::PrivateTarget::parse(&url).unwrap()];
    let net = Net::with(NetworkSettings {
        private,
        ..Default::default()
    });
    let failed = net
        .request(json!({ "url": url, "timeout_seconds": 5 }))
        .map(|_| ())
        .unwrap_err();
    assert!(
        ["cannot_connect", "no_certificates"].contains(&failed.code.as_str()),
        "{failed:?}"
    );
    assert!(server.seen().is_empty());
}
