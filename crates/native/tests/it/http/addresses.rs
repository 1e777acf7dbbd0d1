use std::sync::Arc;

use serde_json::json;
use toolpost_model::ErrorClass;
use toolpost_processes::{NetworkSettings, PrivateTarget};

use super::{Names, Net, Server, body, refused, reply};

#[test]
fn every_spelling_of_a_private_address_is_refused_before_anything_is_sent() {
    let server = Server::start(|_| reply("200 OK", &[], "reached"));
    let net = Net::closed();
    let port = server.port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "１２７.0.0.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "a.localhost.",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "0xA9FEA9FE",
        "100.64.0.1",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "%31%32%37.0.0.1",
        "loc%61lhost",
    ];
    for host in hosts {
        for tool in ["http_request", "fetch_page"] {
            let failed = refused(
                net.call(tool, json!({ "url": format!("http://{host}:{port}/") })),
                ErrorClass::SandboxViolation,
            );
            assert!(
                failed.message.contains("network.private"),
                "{host}: {failed:?}"
            );
            assert_eq!(failed.hint, "/url");
        }
    }
    assert!(server.seen().is_empty());
}

#[test]
fn what_is_no_url_for_a_request_is_refused() {
    let net = Net::closed();
    let long = format!("http://example.org/{}", "a".repeat(9_000));
    for url in [
        "",
        "example.org",
        "/path",
        "//example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "data:text/plain,a",
        "javascript:alert(1)",
        "unix:/run/docker.sock",
        "gopher://127.0.0.1:6379/_x",
        "http://",
        "http://user@example.org/",
        "http://user:pass@example.org/",
        "http://:pass@example.org/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://[::1",
        "http://exa mple.org/",
        "http://example.org:99999/",
        "http://256.256.256.256/",
        "http://./",
        "http://../",
        &long,
    ] {
        for tool in ["http_request", "fetch_page"] {
            let result = net.call(tool, json!({ "url": url }));
            let failed = result.map(|output| output.content).unwrap_err();
            assert_eq!(
                failed.class,
                ErrorClass::InvalidArguments,
                "{url}: {failed:?}"
            );
            assert!(!failed.message.contains("pass@"), "{failed:?}");
        }
    }
}

#[test]
fn a_listed_target_is_reached_and_nothing_beside_it() {
    let server = Server::start(|_| reply("200 OK", &[], "hello"));
    let other = Server::start(|_| reply("200 OK", &[], "other"));
    let private = vec![PrivateTarget::parse(&server.url("/api")).unwrap()];
    let net = Net::with(NetworkSettings {
        private,
        ..NetworkSettings::default()
    });
    let get = |url: String| net.request(json!({ "url": url }));
    assert_eq!(body(&get(server.url("/api/v1?a=b")).unwrap()), "hello");
    let spelled = format!("http://0x7f.1:{}/api", server.port());
    assert_eq!(body(&get(spelled).unwrap()), "hello");
    for url in [
        server.url("/"),
        server.url("/apix"),
        server.url("/api/../secret"),
        server.url("/api/%2e%2e/secret"),
        server.url("/api/..%2fsecret"),
        other.url("/api"),
        format!("http://localhost:{}/api", server.port()),
        format!("https://127.0.0.1:{}/api", server.port()),
    ] {
        refused(get(url), ErrorClass::SandboxViolation);
    }
    assert_eq!(server.seen().len(), 2);
    assert!(other.seen().is_empty());
}

/// A net whose names are answered by `names`, with these targets listed.
fn net(names: &Names, private: &[String]) -> Net {
    let private = private
        .iter()
        .map(|target| PrivateTarget::parse(target).unwrap())
        .collect();
    Net::with(NetworkSettings {
        private,
        names: Arc::new(names.clone()),
        ..NetworkSettings::default()
    })
}

#[test]
fn a_name_that_stands_for_a_private_address_is_refused_even_among_public_ones() {
    let server = Server::start(|_| reply("200 OK", &[], "reached"));
    let answers: [&[&str]; 9] = [
        &["127.0.0.1"],
        &["8.8.8.8", "127.0.0.1"],
        &["2606:4700::1111", "::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["10.0.0.7"],
        &["169.254.169.254"],
        &["fe80::1"],
        &["0.0.0.0"],
    ];
    for answer in answers {
        let names = Names::default().answer("trap.test", &[answer]);
        let url = format!("http://trap.test:{}/", server.port());
        let failed = refused(
            net(&names, &[]).request(json!({ "url": url })),
            ErrorClass::SandboxViolation,
        );
        assert_eq!(failed.code, "private_address");
        assert!(
            failed.untouched && failed.message.contains("trap.test"),
            "{failed:?}"
        );
        assert_eq!(names.asked(), ["trap.test"]);
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_listed_name_may_be_private_but_not_a_clouds_keys() {
    let server = Server::start(|_| reply("200 OK", &[], "hello"));
    let listed = format!("http://dev.test:{}/", server.port());
    let names = Names::default().answer("dev.test", &[&["127.0.0.1"]]);
    let reached = net(&names, std::slice::from_ref(&listed))
        .request(json!({ "url": listed }))
        .unwrap();
    assert_eq!(body(&reached), "hello");
    for answer in [
        "169.254.169.254",
        "fe80::1",
        "168.63.129.16",
        "0.0.0.0",
        "64:ff9b::7f00:1",
        "224.0.0.1",
    ] {
        let names = Names::default().answer("dev.test", &[&["127.0.0.1", answer]]);
        let result = net(&names, std::slice::from_ref(&listed)).request(json!({ "url": listed }));
        refused(result, ErrorClass::SandboxViolation);
    }
}

#[test]
fn a_name_is_looked_up_once_and_the_answer_is_what_is_connected_to() {
    let server = Server::start(|_| reply("200 OK", &[], "hello"));
    let listed = format!("http://dev.test:{}/", server.port());
    // Whoever looks twice is led to the second list.
    let names = Names::default().answer("dev.test", &[&["127.0.0.1"], &["169.254.169.254"]]);
    let net = net(&names, std::slice::from_ref(&listed));
    assert_eq!(
        body(&net.request(json!({ "url": listed })).unwrap()),
        "hello"
    );
    assert_eq!(names.asked(), ["dev.test"]);
    // The next connection is a new question, and its answer is judged anew.
    let failed = refused(
        net.request(json!({ "url": listed })),
        ErrorClass::SandboxViolation,
    );
    assert!(failed.message.contains("169.254.169.254"), "{failed:?}");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_kept_connection_of_a_listed_url_is_not_there_for_others() {
    use std::io::{BufRead as _, BufReader, Write as _};
    // Keeps the connection open and answers every request on it.
    let server = Server::writing(|_, stream| {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            if line.is_empty() {
                stream.write_all(answer).unwrap();
            }
        }
    });
    let names = Names::default().answer("dev.test", &[&["127.0.0.1"]]);
    let origin = format!("http://dev.test:{}", server.port());
    let net = net(&names, &[format!("{origin}/api")]);
    let get = || {
        assert_eq!(
            body(
                &net.request(json!({ "url": format!("{origin}/api") }))
                    .unwrap()
            ),
            "ok"
        );
    };
    get();
    // A connection goes back to where it is kept a moment after its answer was read.
    let is_kept = || {
        let before = names.asked().len();
        get();
        names.asked().len() == before
    };
    assert!((0..50).any(|_| is_kept()), "the connection was not kept");
    let before = names.asked().len();
    refused(
        net.request(json!({ "url": format!("{origin}/admin") })),
        ErrorClass::SandboxViolation,
    );
    assert_eq!(names.asked().len(), before + 1);
}

#[test]
fn names_that_are_not_known_say_so() {
    let names = Names::default().answer("empty.test", &[&[]]);
    let net = net(&names, &[]);
    let failed = refused(
        net.request(json!({ "url": "http://nowhere.test/" })),
        ErrorClass::DependencyUnavailable,
    );
    assert_eq!(failed.code, "cannot_connect");
    assert!(failed.message.contains("no such name"), "{failed:?}");
    let failed = refused(
        net.request(json!({ "url": "http://empty.test/" })),
        ErrorClass::DependencyUnavailable,
    );
    assert_eq!(failed.code, "name_not_found");
}
