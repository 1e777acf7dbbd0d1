use serde_json::{Value, json};
use toolpost_model::ErrorClass;
use toolpost_processes::PrivateTarget;

use super::{Net, Server, body, facts, listing, refused, reply};

/// Redirects `/STATUS/rest` to what the query says, and answers everything else.
fn redirector() -> Server {
    Server::start(|seen| {
        let Some((path, to)) = seen.path.split_once('?') else {
            return reply("200 OK", &[], "arrived");
        };
        let status = path.trim_matches('/');
        reply(
            &format!("{status} Moved"),
            &[&format!("Location: {to}")],
            "moved",
        )
    })
}

#[test]
fn redirects_are_followed_and_told() {
    let server = redirector();
    let net = Net::open(&[&server]);
    let url = server.url("/302?/301?/end");
    let output = net.request(json!({ "url": url })).unwrap();
    assert_eq!(body(&output), "arrived");
    assert_eq!(facts(&output)["url"], server.url("/end"));
    let hops = json!([{ "status": 302, "to": server.url("/301?/end") }, { "status": 301, "to": server.url("/end") }]);
    assert_eq!(facts(&output)["redirects"], hops);
    let shown = net
        .request(json!({ "url": url, "follow_redirects": false }))
        .unwrap();
    assert_eq!(
        (&facts(&shown)["status"], body(&shown)),
        (&json!(302), "moved")
    );
}

#[test]
fn methods_and_bodies_change_as_the_standard_says() {
    let check = |status: u16, method: &str, then: &str, keeps_body: bool| {
        let server = redirector();
        let net = Net::open(&[&server]);
        let mut arguments =
            json!({ "url": server.url(&format!("/{status}?/end")), "method": method });
        if method != "GET" && method != "HEAD" {
            arguments["json"] = json!({ "a": 1 });
        }
        net.request(arguments).unwrap();
        let last = server.seen().pop().unwrap();
        assert_eq!(
            (last.path.as_str(), last.method.as_str()),
            ("/end", then),
            "{status} {method}"
        );
        assert_eq!(!last.body.is_empty(), keeps_body, "{status} {method}");
        assert_eq!(
            last.header("content-type").is_some(),
            keeps_body,
            "{status} {method}"
        );
    };
    for status in [301, 302] {
        check(status, "POST", "GET", false);
        check(status, "PUT", "PUT", true);
        check(status, "GET", "GET", false);
        check(status, "HEAD", "HEAD", false);
    }
    check(303, "POST", "GET", false);
    check(303, "DELETE", "GET", false);
    check(303, "HEAD", "HEAD", false);
    for status in [307, 308] {
        check(status, "POST", "POST", true);
        check(status, "PATCH", "PATCH", true);
        check(status, "GET", "GET", false);
    }
}

#[test]
fn a_redirect_to_a_private_address_is_not_followed() {
    let secret = Server::start(|_| reply("200 OK", &[], "secret"));
    let server = redirector();
    let net = Net::open(&[&server]);
    let port = secret.port();
    for to in [
        secret.url("/"),
        format!("http://localhost:{port}/"),
        format!("//127.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://0x7f000001:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:a9fe:a9fe]/".to_owned(),
    ] {
        for tool in ["http_request", "fetch_page"] {
            let result = net.call(tool, json!({ "url": server.url(&format!("/302?{to}")) }));
            let failed = refused(result, ErrorClass::SandboxViolation);
            assert!(failed.message.contains("redirect"), "{failed:?}");
        }
    }
    for to in [
        "file:///etc/passwd",
        "ftp://example.org/",
        "http://u:p@example.org/",
        "data:text/html,x",
    ] {
        let result = net.request(json!({ "url": server.url(&format!("/302?{to}")) }));
        refused(result, ErrorClass::InvalidArguments);
    }
    assert!(secret.seen().is_empty());
}

#[test]
fn circles_and_endless_chains_end() {
    let server = Server::start(|seen| {
        let number: u32 = seen.path.trim_start_matches("/n").parse().unwrap_or(0);
        match seen.path.as_str() {
            "/self" => reply("302 Found", &["Location: /self"], ""),
            "/a" => reply("302 Found", &["Location: /b"], ""),
            "/b" => reply("302 Found", &["Location: /a"], ""),
            _ => reply("302 Found", &[&format!("Location: /n{}", number + 1)], ""),
        }
    });
    let net = Net::open(&[&server]);
    for (path, code, requests) in [
        ("/self", "redirect_loop", 1),
        ("/a", "redirect_loop", 2),
        ("/n0", "too_many_redirects", 6),
    ] {
        let before = server.seen().len();
        let failed = refused(
            net.request(json!({ "url": server.url(path) })),
            ErrorClass::ExecutionFailed,
        );
        assert_eq!(
            (failed.code.as_str(), server.seen().len() - before),
            (code, requests),
            "{path}"
        );
    }
}

#[test]
fn odd_locations() {
    let server = Server::start(|seen| {
        match seen.path.as_str() {
        "/none" => reply("302 Found", &[], "stay"),
        "/304" => reply("304 Not Modified", &["Location: /x"], ""),
        "/bad" => reply("302 Found", &["Location: http://[::1"], ""),
        "/bytes" => {
            b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: /\xff\r\n\r\n"
                .to_vec()
        }
        _ => reply("200 OK", &[], "arrived"),
    }
    });
    let net = Net::open(&[&server]);
    let status = |path: &str| {
        net.request(json!({ "url": server.url(path) }))
            .map(|output| facts(&output)["status"].clone())
    };
    assert_eq!(status("/none").unwrap(), 302);
    assert_eq!(status("/304").unwrap(), 304);
    for path in ["/bad", "/bytes"] {
        assert_eq!(status(path).unwrap_err().code, "bad_redirect");
    }
}

#[test]
fn keys_do_not_follow_to_another_origin_and_changes_are_not_repeated_there() {
    let there = Server::start(|_| reply("200 OK", &[], "there"));
    let server = redirector();
    let net = Net::open(&[&server, &there]);
    let send = |status: u16, to: String, method: &str| -> Value {
        let output = net.request(json!({
            "url": server.url(&format!("/{status}?{to}")), "method": method,
            "headers": { "Authorization": "Bearer k", "Cookie": "a=b", "X-Api-Key": "k", "X-Trace": "t" }
        }));
        facts(&output.unwrap()).clone()
    };
    // The same host on another port is another origin.
    send(302, there.url("/"), "GET");
    let seen = there.seen().pop().unwrap();
    for name in ["authorization", "cookie", "x-api-key", "referer"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("x-trace"), Some("t"));
    send(302, "/same".to_owned(), "GET");
    assert_eq!(
        server.seen().pop().unwrap().header("authorization"),
        Some("Bearer k")
    );
    let before = there.seen().len();
    for (status, method) in [(307, "POST"), (308, "DELETE"), (302, "PUT")] {
        let stayed = send(status, there.url("/"), method);
        assert_eq!(stayed["status"], status);
        assert!(
            stayed["notes"][0]
                .as_str()
                .unwrap()
                .contains("another origin"),
            "{stayed}"
        );
    }
    assert_eq!(there.seen().len(), before);
    // A POST that became a GET changes nothing there.
    assert_eq!(send(303, there.url("/"), "POST")["status"], 200);
}

#[test]
fn a_failure_behind_a_redirect_does_not_promise_that_nothing_happened() {
    let gone = format!(
        "http://{}/",
        std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
    );
    let server = redirector();
    let mut settings = listing(&[&server]);
    settings.private.push(PrivateTarget::parse(&gone).unwrap());
    let net = Net::with(settings);
    let first = net
        .request(json!({ "url": gone, "method": "POST" }))
        .map(|_| ())
        .unwrap_err();
    assert!(
        first.code == "cannot_connect" && first.untouched,
        "{first:?}"
    );
    let url = server.url(&format!("/303?{gone}"));
    let second = net
        .request(json!({ "url": url, "method": "POST" }))
        .map(|_| ())
        .unwrap_err();
    assert!(
        second.code == "cannot_connect" && !second.untouched,
        "{second:?}"
    );
    let url = server.url("/303?http://10.0.0.1/");
    let third = net
        .request(json!({ "url": url, "method": "POST" }))
        .map(|_| ())
        .unwrap_err();
    assert!(
        third.code == "private_address" && !third.untouched,
        "{third:?}"
    );
}
