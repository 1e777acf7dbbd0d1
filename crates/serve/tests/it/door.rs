//! Who may come in: tokens, roles, the checks of `Host` and `Origin`, the unix socket.

use serde_json::json;
use toolpost_model::{PrincipalRole, Requirements};
use toolpost_serve::{CallerAuthentication, StartError};
use toolpost_testkit::MockNativeTool;

use super::{
    client::{Connection, Request},
    running::{Place, Running},
};

/// One request for every route, each answered with something else than 403 where the door is open.
fn routes() -> Vec<Request> {
    let unknown = "00000000-0000-7000-8000-000000000000";
    vec![
        Request::get("/health"),
        Request::get("/tools"),
        Request::get("/tools/echo"),
        Request::post("/tools/echo/call", r#"{"message":"hi"}"#),
        Request::post("/tools/echo/explain", r#"{"message":"hi"}"#),
        Request::get(format!("/invocations/{unknown}")),
        Request::post(format!("/invocations/{unknown}/cancel"), ""),
        Request::post("/sessions", ""),
        Request::get("/sessions/none"),
        Request::new("DELETE", "/sessions/none"),
        Request::get("/openapi.json"),
        Request::get("/nowhere"),
        Request::new("PUT", "/tools"),
    ]
}

#[tokio::test]
async fn health_needs_no_token_and_every_other_route_does() {
    let server = Place::new().start().await;
    let health = server.send_bare(Request::get("/health")).await;
    assert_eq!(health.status(), 200);
    assert_eq!(health.json()["status"], "ok");
    assert_eq!(health.json()["tools"], 22);
    for request in routes().into_iter().skip(1) {
        for token in [
            None,
            Some("Bearer wrong"),
            Some("Bearer"),
            Some("Basic dXNlcjpwYXNz"),
            Some(""),
        ] {
            let request = match token {
                None => request.clone(),
                Some(value) => request.clone().header("Authorization", value),
            };
            let refused = server.send_bare(request.clone()).await;
            let line = String::from_utf8_lossy(&request.bytes())
                .lines()
                .next()
                .unwrap()
                .to_owned();
            assert_eq!(
                (refused.status(), refused.code().as_str()),
                (401, "unauthorized"),
                "{line} {token:?}"
            );
            assert_eq!(
                refused.head.header("www-authenticate"),
                Some("Bearer"),
                "{line}"
            );
        }
    }
    let taken = server
        .send_bare(Request::get("/tools").bearer(server.token()))
        .await;
    assert_eq!(taken.status(), 200);
    let any_case =
        Request::get("/tools").header("Authorization", format!("bEARER  {} ", server.token()));
    assert_eq!(server.send_bare(any_case).await.status(), 200);
}

#[tokio::test]
async fn a_configured_token_says_who_comes_and_in_which_role() {
    let place = Place::without_native_tools()
        .with_token("alice", PrincipalRole::Agent, "alice-has-a-token")
        .with_token("olga", PrincipalRole::Operator, "olga-has-a-token");
    let only = Requirements {
        roles: vec![PrincipalRole::Operator],
        ..Requirements::default()
    };
    let tool =
        MockNativeTool::named("demo.operate").declare(|declaration| declaration.requires = only);
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let own = server.token().to_owned();
    for (token, name, role, status) in [
        ("alice-has-a-token", "alice", "agent", 403),
        ("olga-has-a-token", "olga", "operator", 200),
        (own.as_str(), "agent", "agent", 403),
    ] {
        let opened = server
            .send_bare(Request::post("/sessions", "").bearer(token))
            .await
            .json();
        assert_eq!(
            (&opened["principal"], &opened["role"]),
            (&json!(name), &json!(role))
        );
        let called = server
            .send_bare(Request::call("operate", &json!({})).bearer(token))
            .await;
        assert_eq!(called.status(), status, "{name}: {called:?}");
        if status == 403 {
            assert_eq!(
                (called.code().as_str(), &called.json()["error"]["class"]),
                ("role", &json!("policy_blocked"))
            );
        }
    }
    let hash = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
    let with_the_hash = server.send_bare(Request::get("/tools").bearer(hash)).await;
    assert_eq!(with_the_hash.status(), 401);
}

/// The host names two callers by itself: `agent` with its own token and `local` at the socket.
#[tokio::test]
async fn a_token_of_the_same_name_lends_nobody_its_role() {
    let only = Requirements {
        roles: vec![PrincipalRole::Operator],
        ..Requirements::default()
    };
    let tool =
        MockNativeTool::named("demo.operate").declare(|declaration| declaration.requires = only);
    let call = Request::call("operate", &json!({}));
    let place = Place::without_native_tools()
        .with_token("agent", PrincipalRole::Operator, "an-operator-named-agent")
        .with_token("local", PrincipalRole::Agent, "an-agent-named-local");
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let operator = server
        .send(call.clone().bearer("an-operator-named-agent"))
        .await;
    assert_eq!(operator.status(), 200);
    let mut socket = Connection::unix(server.server.socket().unwrap()).await;
    socket.send(&call).await;
    assert_eq!(socket.receive().await.status(), 200);
    for request in [call.clone(), call.bearer("an-agent-named-local")] {
        assert_eq!(server.send(request).await.code(), "role");
    }
    let id = operator.json()["invocation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let look = server
        .send(Request::get(format!("/invocations/{id}")))
        .await;
    assert_eq!(look.status(), 404, "a namesake's calls are not one's own");
}

#[tokio::test]
async fn a_server_without_a_token_stays_on_this_machine() {
    let mut place = Place::new();
    place.config.http.listen = "0.0.0.0:0".parse().unwrap();
    let refused = place
        .builder()
        .access(CallerAuthentication::Open)
        .start()
        .await
        .err()
        .unwrap();
    assert!(
        matches!(refused, StartError::OpenToTheNetwork(_)),
        "{refused}"
    );
    assert!(
        !place.data_dir().exists(),
        "nothing is made for a server that must not start"
    );

    let server = Place::new()
        .start_with(|builder| builder.access(CallerAuthentication::Open))
        .await;
    assert_eq!(server.server.token(), None);
    let opened = server
        .send_bare(Request::post("/sessions", ""))
        .await
        .json();
    assert_eq!(
        (&opened["principal"], &opened["role"]),
        (&json!("anonymous"), &json!("agent"))
    );
}

#[tokio::test]
async fn a_given_token_takes_the_place_of_the_kept_one() {
    let access = CallerAuthentication::Token("a-token-of-the-operators-own".to_owned());
    let place = Place::new();
    let server = place.start_with(|builder| builder.access(access)).await;
    assert_eq!(server.token(), "a-token-of-the-operators-own");
    assert_eq!(server.send(Request::get("/tools")).await.status(), 200);
    assert!(!place.data_dir().join("token").exists());
}

/// Sends `change`d requests to every route and expects the same refusal, or none.
async fn check_everywhere(
    server: &Running,
    change: impl Fn(Request) -> Request,
    refused: Option<(u16, &str)>,
) {
    for request in routes() {
        let request = change(server.dressed(request));
        let answer = server.send_bare(request.clone()).await;
        let sent = String::from_utf8_lossy(&request.bytes()).into_owned();
        match refused {
            Some((status, code)) => {
                assert_eq!(
                    (answer.status(), answer.code().as_str()),
                    (status, code),
                    "{sent}"
                );
            }
            None => assert_ne!(answer.status(), 403, "{sent}: {answer:?}"),
        }
    }
}

#[tokio::test]
async fn every_route_checks_the_host() {
    let mut place = Place::new();
    place.config.http.allowed_hosts =
        vec!["tools.example".to_owned(), "exact.example:81".to_owned()];
    let server = place.start().await;
    let port = server.server.address().unwrap().port();
    check_everywhere(
        &server,
        |request| request.without("Host"),
        Some((400, "missing_host")),
    )
    .await;
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io:80",
        "exact.example:82",
        "",
    ] {
        check_everywhere(
            &server,
            |request| request.header("Host", host),
            Some((403, "host_not_allowed")),
        )
        .await;
    }
    let own = format!("127.0.0.1:{port}");
    for host in [
        "localhost",
        "LOCALHOST:1",
        &own,
        "[::1]:9",
        "10.1.2.3",
        "tools.example:5",
        "exact.example:81",
    ] {
        check_everywhere(&server, |request| request.header("Host", host), None).await;
    }
}

#[tokio::test]
async fn every_route_checks_the_origin() {
    let mut place = Place::new();
    place.config.http.allowed_origins = vec!["https://app.example".to_owned()];
    let server = place.start().await;
    let from = |origin: &'static str| move |request: Request| request.header("Origin", origin);
    let refused = Some((403, "origin_not_allowed"));
    for origin in [
        "https://evil.example",
        "null",
        "",
        "http://localhost:1",
        "http://app.example",
        "https://app.example.evil.example",
        "file://localhost",
    ] {
        check_everywhere(&server, from(origin), refused).await;
    }
    check_everywhere(
        &server,
        |request| request.header("Origin", b"http://localhost\xff"),
        refused,
    )
    .await;
    check_everywhere(&server, from("http://localhost"), None).await;
    check_everywhere(&server, from("https://localhost"), None).await;
    check_everywhere(&server, from("https://app.example"), None).await;
}

#[tokio::test]
async fn the_socket_lets_its_owner_in_as_operator() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let server = place.start().await;
    let socket = server.server.socket().unwrap().to_owned();
    assert_eq!(
        std::fs::metadata(place.data_dir())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    let mut connection = Connection::unix(&socket).await;
    connection.send(&Request::post("/sessions", "")).await;
    let opened = connection.receive().await.json();
    assert_eq!(
        (&opened["principal"], &opened["role"]),
        (&json!("local"), &json!("operator"))
    );
    // Neither a browser nor a stranger reaches a socket, so it asks for no `Host` and minds no `Origin`.
    let bare = Request::call("echo", &json!({ "message": "hi" }))
        .without("Host")
        .header("Origin", "https://x.example");
    connection.send(&bare).await;
    assert_eq!(
        connection.receive().await.json()["content"][0]["text"],
        "hi"
    );
}
