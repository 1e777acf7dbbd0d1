use serde_json::{Value, json};
use toolpost_model::{EffectClass, ErrorClass, ResourceAccess};

use super::{Net, Server, body, facts, refused, reply, text};

#[test]
fn methods_headers_queries_and_bodies_are_sent_as_given() {
    let server = Server::start(|_| reply("201 Created", &["Location: /items/7"], ""));
    let net = Net::open(&[&server]);
    let output = net
        .request(json!({
            "url": server.url("/items?a=1"), "method": "POST", "headers": { "X-Trace": "t", "Accept": "text/x" },
            "query": { "q": "ä b&c", "n": 3, "on": true, "tag": ["x", "y"] }, "json": { "name": "lathe" }
        }))
        .unwrap();
    assert_eq!(
        (
            &facts(&output)["status"],
            &facts(&output)["headers"]["location"]
        ),
        (&json!(201), &json!("/items/7"))
    );
    assert!(
        text(&output).starts_with("HTTP 201 Created\n"),
        "{}",
        text(&output)
    );
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/items?a=1&n=3&on=true&q=%C3%A4+b%26c&tag=x&tag=y")
    );
    assert_eq!(
        (seen.header("x-trace"), seen.header("accept")),
        (Some("t"), Some("text/x"))
    );
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("user-agent").unwrap().starts_with("toolpost/"));
    assert_eq!(
        serde_json::from_slice::<Value>(&seen.body).unwrap(),
        json!({ "name": "lathe" })
    );
}

#[test]
fn every_kind_of_body() {
    let server = Server::start(|_| reply("200 OK", &[], ""));
    let net = Net::open(&[&server]);
    let check = |mut arguments: Value, media_type: &str, content: &str| {
        arguments["url"] = json!(server.url("/"));
        net.request(arguments.clone()).unwrap();
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.header("content-type"), Some(media_type), "{arguments}");
        assert_eq!(String::from_utf8_lossy(&seen.body), content, "{arguments}");
    };
    check(
        json!({ "method": "POST", "json": null }),
        "application/json",
        "null",
    );
    check(
        json!({ "method": "PUT", "form": { "a b": "c&d", "n": [1, 2] } }),
        "application/x-www-form-urlencoded",
        "a+b=c%26d&n=1&n=2",
    );
    check(
        json!({ "method": "PATCH", "body": "ä" }),
        "text/plain; charset=utf-8",
        "ä",
    );
    let own =
        json!({ "method": "POST", "body": "<a/>", "headers": { "content-type": "text/xml" } });
    check(own, "text/xml", "<a/>");
    check(
        json!({ "method": "DELETE", "json": [1] }),
        "application/json",
        "[1]",
    );
}

#[test]
fn requests_that_make_no_sense_are_refused_before_they_are_sent() {
    let server = Server::start(|_| reply("200 OK", &[], ""));
    let net = Net::open(&[&server]);
    for (mut arguments, word) in [
        (
            json!({ "method": "POST", "json": 1, "body": "a" }),
            "one of",
        ),
        (json!({ "json": 1 }), "GET"),
        (json!({ "method": "HEAD", "body": "" }), "HEAD"),
        (json!({ "method": "CONNECT" }), "CONNECT"),
        (json!({ "method": "TRACE" }), "TRACE"),
        (json!({ "method": "GET / HTTP/1.1\r\nX: y\r\n" }), "variant"),
        (json!({ "headers": { "Host": "evil" } }), "host"),
        (
            json!({ "headers": { "Transfer-Encoding": "chunked" } }),
            "transfer-encoding",
        ),
        (json!({ "headers": { "X": "a\r\nHost: b" } }), "line break"),
        (json!({ "max_bytes": 0 }), "max_bytes"),
        (json!({ "timeout_seconds": 0 }), "seconds"),
        (json!({ "timeout_seconds": 301 }), "seconds"),
        (json!({ "credential": "github" }), "github"),
        (json!({ "proxy": "http://127.0.0.1:3128" }), "proxy"),
    ] {
        arguments["url"] = json!(server.url("/"));
        let failed = refused(net.request(arguments.clone()), ErrorClass::InvalidArguments);
        assert!(failed.message.contains(word), "{arguments}: {failed:?}");
    }
    for path in ["../up", "/etc/passwd"] {
        let result = net.request(json!({ "url": server.url("/"), "save_to": path }));
        assert_eq!(
            refused(result, ErrorClass::SandboxViolation).hint,
            "/save_to"
        );
    }
    assert!(server.seen().is_empty());
}

#[test]
fn an_error_status_is_an_answer() {
    let server = Server::start(|_| {
        reply(
            "404 Not Found",
            &["Content-Type: application/json"],
            r#"{"error":"gone"}"#,
        )
    });
    let net = Net::open(&[&server]);
    let output = net.request(json!({ "url": server.url("/x") })).unwrap();
    assert_eq!(facts(&output)["status"], 404);
    assert_eq!(facts(&output)["json"], json!({ "error": "gone" }));
    let failed = refused(
        net.page(json!({ "url": server.url("/x") })),
        ErrorClass::ExecutionFailed,
    );
    assert_eq!(failed.code, "http_status");
    let failure = net.failure("fetch_page", json!({ "url": server.url("/x") }));
    assert!(format!("{:?}", failure.content).contains("gone"));
}

#[test]
fn effects_follow_the_input() {
    let net = Net::closed();
    let effects = |arguments: Value| net.effects("http_request", arguments).unwrap();
    let read = effects(json!({ "url": "https://API.example.org/a/b?q=1#f" }));
    assert_eq!(read.class, EffectClass::Network);
    assert!(read.idempotent && read.concurrency_safe && read.open_world);
    assert_eq!(read.uses.len(), 1);
    assert_eq!(
        (read.uses[0].key.as_str(), read.uses[0].access),
        ("url:https://api.example.org:443/a/b", ResourceAccess::Read)
    );
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let change = effects(json!({ "url": "http://example.org:8080/a", "method": method }));
        assert!(!change.idempotent && !change.concurrency_safe);
        assert_eq!(
            (change.uses[0].key.as_str(), change.uses[0].access),
            ("url:http://example.org:8080/a", ResourceAccess::Write)
        );
    }
    let saved = effects(json!({ "url": "https://example.org/", "save_to": "a.bin" }));
    assert_eq!(saved.class, EffectClass::Network);
    assert_eq!(
        saved.uses[1].key.as_str(),
        format!("path:{}", net.path("a.bin").display())
    );
    assert_eq!(saved.uses[1].access, ResourceAccess::Write);
    let page = net
        .effects("fetch_page", json!({ "url": "https://example.org/p" }))
        .unwrap();
    assert!(page.class == EffectClass::Network && page.idempotent && page.concurrency_safe);
    // What would be refused has no facts; the declaration's class counts.
    assert_eq!(
        net.effects("fetch_page", json!({ "url": "http://127.0.0.1/" })),
        None
    );
}

#[test]
fn proxies_of_the_environment_and_cookies_are_not_used() {
    let server = Server::start(|_| {
        reply(
            "200 OK",
            &["Set-Cookie: sid=abc123; HttpOnly", "Set-Cookie: b=2"],
            "x",
        )
    });
    let net = Net::open(&[&server]);
    for _ in 0..2 {
        let output = net.request(json!({ "url": server.url("/") })).unwrap();
        assert_eq!(
            facts(&output)["headers"]["set-cookie"],
            "sid=[left out], b=[left out]"
        );
        assert!(!format!("{output:?}").contains("abc123"));
    }
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("cookie").is_none())
    );
    assert_eq!(
        body(&net.request(json!({ "url": server.url("/") })).unwrap()),
        "x"
    );
}
