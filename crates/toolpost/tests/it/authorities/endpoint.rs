//! A policy endpoint: every answer, and everything that is none.

use serde_json::{Value, json};

use super::{
    Office,
    stub::{Manner, StubEndpoint},
};
use crate::served::Served;

/// Calls `echo` through an endpoint and compares the exit code, the vote on record and the fault.
fn check(manner: Manner, more: &str, code: i32, behavior: &str, fault: Option<&str>) {
    let endpoint = StubEndpoint::new(manner);
    let office = Office::asking(&endpoint.url, more);
    let (ran, decision) = office.echo();
    let ran = ran.expect(code);
    let vote = &decision["delegated"][0];
    assert_eq!(
        (&vote["authority"], &vote["kind"]),
        (&json!("opa"), &json!("endpoint")),
        "{decision:#}"
    );
    assert_eq!(
        (&vote["behavior"], &decision["behavior"]),
        (&json!(behavior), &json!(behavior)),
        "{decision:#}"
    );
    match fault {
        None => assert!(vote["fault"].is_null(), "{vote}"),
        Some(fault) => {
            assert!(
                vote["fault"].as_str().unwrap().contains(fault),
                "{fault}: {vote}"
            );
            assert!(
                ran.stderr.contains("the authority `opa` gave no decision"),
                "{}",
                ran.stderr
            );
            assert!(ran.stderr.contains(fault), "{}", ran.stderr);
        }
    }
    assert_eq!(decision["reason"]["rule"]["rule"], "delegate opa echo");
    assert_eq!(endpoint.requests().len(), 1, "asked once and never again");
}

#[test]
fn an_endpoint_in_opas_form_allows_asks_and_denies() {
    check(Manner::Answers(r#"{"result": true}"#), "", 0, "allow", None);
    check(
        Manner::Answers(r#"{"result": {"allow": true, "reason": "r"}, "decision_id": "1"}"#),
        "",
        0,
        "allow",
        None,
    );
    check(
        Manner::Answers(r#"{"result": {"decision": "ask", "reason": "new"}}"#),
        "",
        3,
        "ask",
        None,
    );
    check(Manner::Answers(r#"{"result": false}"#), "", 3, "deny", None);
    check(
        Manner::Answers(r#"{"result": {"decision": "deny", "allow": false}}"#),
        "",
        3,
        "deny",
        None,
    );
}

#[test]
fn an_endpoint_that_lies_gives_no_decision() {
    for (body, fault) in [
        ("{}", "its answer has no result"),
        ("", "cannot be read"),
        ("allow", "cannot be read"),
        (
            r#"{"result": {"decision": "deny", "allow": true}}"#,
            "contradicts itself",
        ),
        (
            r#"{"result": true, "result": false}"#,
            "duplicate field `result`",
        ),
        (
            r#"{"result": "allow"}"#,
            "expected true, false or an object",
        ),
    ] {
        check(Manner::Answers(body), "", 3, "deny", Some(fault));
    }
    let says = |status, headers: &str, body: &str| Manner::Says {
        status,
        headers: headers.to_owned(),
        body: body.as_bytes().to_vec(),
    };
    let yes = r#"{"result": true}"#;
    check(
        says("200 OK", "Content-Type: text/html\r\n", yes),
        "",
        3,
        "deny",
        Some("not `application/json`"),
    );
    check(
        says("200 OK", "", yes),
        "",
        3,
        "deny",
        Some("not `application/json`"),
    );
    check(
        says("201 Created", "Content-Type: application/json\r\n", yes),
        "",
        3,
        "deny",
        Some("status 201"),
    );
    check(
        says(
            "500 Internal Server Error",
            "Content-Type: application/json\r\n",
            yes,
        ),
        "",
        3,
        "deny",
        Some("status 500"),
    );
    check(
        says("403 Forbidden", "", ""),
        "",
        3,
        "deny",
        Some("status 403"),
    );
    let packed = says(
        "200 OK",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
        yes,
    );
    // The bytes are taken as they are: nothing is unpacked.
    check(packed, "", 0, "allow", None);
}

#[test]
fn an_endpoint_that_is_slow_dead_or_breaks_off_gives_no_decision() {
    check(
        Manner::Sleeps,
        "timeout: 300ms",
        3,
        "deny",
        Some("it did not answer within 300 ms"),
    );
    check(Manner::HangsUp, "", 3, "deny", Some("it cannot be reached"));
    check(
        Manner::BreaksOff,
        "",
        3,
        "deny",
        Some("its answer was cut off"),
    );
    // Nothing listens: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let office = Office::asking(&format!("http://127.0.0.1:{port}/v1/data/x"), "");
    let (ran, decision) = office.echo();
    ran.expect(3);
    assert!(
        decision["delegated"][0]["fault"]
            .as_str()
            .unwrap()
            .contains("it cannot be reached"),
        "{decision:#}"
    );
}

#[test]
fn an_answer_that_is_too_long_is_not_read() {
    let long = format!(r#"{{"result": true, "x": "{}"}}"#, "x".repeat(70_000));
    let says = Manner::Says {
        status: "200 OK",
        headers: "Content-Type: application/json\r\n".to_owned(),
        body: long.into_bytes(),
    };
    check(
        says.clone(),
        "",
        3,
        "deny",
        Some("its answer is longer than 65536 bytes"),
    );
    check(says, "max_answer: 128KiB", 0, "allow", None);
    check(
        Manner::Floods,
        "timeout: 30s",
        3,
        "deny",
        Some("its answer is longer than 65536 bytes"),
    );
    check(
        Manner::Answers(r#"{"result": true}"#),
        "max_answer: 10",
        3,
        "deny",
        Some("longer than 10 bytes"),
    );
}

#[test]
fn a_redirect_is_not_followed() {
    let target = StubEndpoint::new(Manner::Answers(r#"{"result": true}"#));
    for status in [
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let headers = format!("Location: {}\r\n", target.url);
        let says = Manner::Says {
            status,
            headers,
            body: Vec::new(),
        };
        check(
            says,
            "",
            3,
            "deny",
            Some(&format!("it redirects to `{}`", target.url)),
        );
    }
    assert!(target.requests().is_empty());
}

#[test]
fn explain_asks_with_dry_run_and_agrees_with_call() {
    for (body, behavior, code) in [
        (r#"{"result": true}"#, "allow", 0),
        (r#"{"result": {"decision": "ask"}}"#, "ask", 3),
        (
            r#"{"result": {"allow": false, "reason": "frozen"}}"#,
            "deny",
            3,
        ),
    ] {
        let endpoint = StubEndpoint::new(Manner::Answers(body));
        let office = Office::asking(&endpoint.url, "cache: 1m");
        let explained = office
            .run(&["explain", "echo", "message=hello", "--json"])
            .expect(code)
            .json();
        let (ran, decision) = office.echo();
        ran.expect(code);
        assert_eq!(explained["decision"]["behavior"], behavior);
        assert_eq!(explained["decision"]["reason"], decision["reason"]);
        let dry: Vec<Value> = endpoint
            .inputs()
            .iter()
            .map(|input| input["dry_run"].clone())
            .collect();
        assert_eq!(dry, [json!(true), json!(false)]);
        let told = office.run(&["explain", "echo", "message=hello"]).stdout;
        assert!(told.contains("delegate   `opa` "), "{told}");
        assert!(told.contains("decided    `delegate opa echo`"), "{told}");
    }
}

#[test]
fn the_endpoint_gets_the_question_with_the_credential_and_without_secrets() {
    let endpoint = StubEndpoint::new(Manner::Answers(r#"{"result": true}"#));
    let origin = endpoint.url.split("/v1/").next().unwrap().to_owned();
    let office = Office::new(&format!(
        "rules: [delegate opa write_file]\n\
         network: {{ credentials: {{ opa: {{ env: OPA_TOKEN, urls: ['{origin}/'] }} }} }}\n\
         authorities: {{ opa: {{ url: '{}', credential: opa }} }}\n",
        endpoint.url
    ));
    let words = [
        "call",
        "write_file",
        "path=a.txt",
        "content=the token is s3cret-s3cret-s3cret",
    ];
    let mut command = office.command(&words);
    let ran = crate::home::Ran::from(
        command
            .env("OPA_TOKEN", "s3cret-s3cret-s3cret")
            .output()
            .unwrap(),
    );
    ran.expect(0);
    let request = endpoint.requests().remove(0);
    assert_eq!(request.line, "POST /v1/data/toolpost/decision HTTP/1.1");
    let header = |name: &str| {
        let found = request
            .headers
            .iter()
            .filter_map(|line| line.split_once(": "));
        found
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .next_back()
    };
    assert_eq!(
        header("authorization").as_deref(),
        Some("Bearer s3cret-s3cret-s3cret")
    );
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    let input = &request.body["input"];
    assert!(!input.to_string().contains("s3cret"), "{input}");
    assert_eq!(input["tool"]["id"], "files.write_file");
    assert_eq!(input["arguments"]["path"], "a.txt");
    assert_eq!(
        (&input["effects"]["class"], &input["mode"]),
        (&json!("write"), &json!("default"))
    );
    assert_eq!(input["principal"]["role"], "operator");
    assert!(
        !office
            .run(&["journal", "export"])
            .expect(0)
            .stdout
            .contains("s3cret")
    );
    // An endpoint beside the credential's addresses never gets it.
    let elsewhere = std::fs::read_to_string(&office.config)
        .unwrap()
        .replace(&format!("['{origin}/']"), "['http://127.0.0.2/']");
    std::fs::write(&office.config, elsewhere).unwrap();
    let refused = crate::home::Ran::from(
        office
            .command(&words)
            .env("OPA_TOKEN", "s3cret-s3cret-s3cret")
            .output()
            .unwrap(),
    );
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("the credential `opa` is not for"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_vote_is_told_by_journal_show_and_exported_as_passthrough() {
    let endpoint = StubEndpoint::deciding(|input| match input["arguments"]["path"] == "open.txt" {
        true => Manner::Answers(r#"{"result": {"decision": "allow", "reason": "open to all"}}"#),
        false => Manner::Answers(r#"{"result": {"decision": "deny", "reason": "closed"}}"#),
    });
    let office = Office::asking(&endpoint.url, "");
    office
        .run(&["call", "write_file", "path=open.txt", "content=x"])
        .expect(0);
    let denied = office
        .run(&[
            "call",
            "write_file",
            "path=closed.txt",
            "content=x",
            "--json",
        ])
        .expect(3)
        .json();
    assert_eq!(
        denied["error"]["message"],
        "`write_file` was denied: the authority `opa` denies it: closed"
    );
    let id = denied["invocation_id"].as_str().unwrap();
    let shown = office.run(&["journal", "show", id]).expect(0).stdout;
    assert!(
        shown.contains("deny: the authority `opa` denies it: closed"),
        "{shown}"
    );
    assert!(
        shown.contains("delegate   `opa` deny: closed (endpoint, "),
        "{shown}"
    );
    let exported = office
        .run(&["journal", "export", "--format", "agent-tool"])
        .expect(0)
        .stdout;
    let lines: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let decisions: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["record"] == "permission_decision")
        .map(|line| (&line["behavior"], &line["reason"]["type"]))
        .collect();
    let expected = [
        ("passthrough", "rule"),
        ("allow", "policy"),
        ("passthrough", "rule"),
        ("deny", "policy"),
    ];
    let expected = expected.map(|(behavior, reason)| (json!(behavior), json!(reason)));
    assert_eq!(
        decisions,
        expected
            .iter()
            .map(|(behavior, reason)| (behavior, reason))
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_served_host_asks_the_endpoint_about_calls_of_agents_and_a_cancel_drops_the_question() {
    let endpoint = StubEndpoint::deciding(|input| match input["arguments"]["message"] == "wait" {
        true => Manner::Sleeps,
        false => Manner::Answers(r#"{"result": true}"#),
    });
    let office = Office::asking(&endpoint.url, "timeout: 1m");
    let host = Served::spawn(&mut office.command(&["serve", "--http", "127.0.0.1:0"]));
    let mut agent = host.connect(&office.home);
    let answer = agent
        .post("/tools/echo/call", r#"{"message": "hello"}"#)
        .unwrap()
        .json();
    assert_eq!(answer["outcome"], "succeeded", "{answer}");
    let begun = agent
        .post("/tools/echo/call?background=true", r#"{"message": "wait"}"#)
        .unwrap()
        .json();
    let id = begun["invocation_id"].as_str().unwrap();
    while endpoint.requests().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let canceled = agent
        .post(&format!("/invocations/{id}/cancel"), "")
        .unwrap()
        .json();
    assert_eq!(canceled["cancel"], "requested", "{canceled}");
    let ended = loop {
        let view = agent.get(&format!("/invocations/{id}")).unwrap().json();
        if view["status"] == "ended" {
            break view;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_eq!(ended["result"]["outcome"], "canceled", "{ended}");
    host.stop();
}
