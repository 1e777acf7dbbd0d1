//! Services that behave, and odd answers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::{sync::Barrier, time::timeout};
use toolpost_model::{ErrorClass, Outcome, ResultContent};
use toolpost_testkit::TestHost;

use super::{
    Heard, PATIENCE, Reply, Service, Spec, answering, call_within, host_of, message, module,
    request_as,
    server::{Block, ExecuteRequest, ExecuteResponse, Image, Text},
};

fn done(output: &str) -> ExecuteResponse {
    ExecuteResponse {
        success: true,
        output: output.as_bytes().to_vec(),
        ..ExecuteResponse::default()
    }
}

fn echo(heard: &Heard) -> Reply {
    message(&done(
        std::str::from_utf8(&heard.read::<ExecuteRequest>().input).unwrap(),
    ))
}

#[tokio::test]
async fn a_tool_is_listed_and_called_by_either_spelling_of_its_endpoint() {
    let service = answering(echo).await;
    for spelling in [
        service.address.to_string(),
        format!("http://{}", service.address),
    ] {
        let source = module(&spelling);
        let host = TestHost::build(|builder| builder.source(source)).await;
        let listing = host
            .host
            .show(&host.session, "echo")
            .await
            .expect("the tool is listed");
        let declaration = listing.entry.declaration();
        assert_eq!(declaration.tool_id.as_str(), "tool-x.echo");
        assert_eq!(
            (
                declaration.description.as_str(),
                declaration.toolkit.as_str()
            ),
            ("Says it again.", "tool-x")
        );
        assert_eq!(
            declaration.input.schema["properties"]["text"]["type"],
            "string"
        );
        let result = host.call("echo", json!({ "text": "hé" })).await;
        assert_eq!(result.outcome, Outcome::Succeeded, "{result:?}");
        assert_eq!(result.structured_content, Some(json!({ "text": "hé" })));
        assert_eq!(
            result.content,
            [ResultContent::text(r#"{"text": "h\u00e9"}"#)]
        );
        let wrong = host.call("echo", json!({ "text": 5 })).await;
        assert_eq!(wrong.error_class(), Some(ErrorClass::InvalidArguments));
    }
    let heard = service.heard("Execute");
    assert_eq!(heard.len(), 2, "what does not fit the schema is never sent");
    let request: ExecuteRequest = heard[0].read();
    assert_eq!(request.content_type, "application/json");
    assert_eq!(
        serde_json::from_slice::<Value>(&request.input).unwrap(),
        json!({ "text": "hé" })
    );
    assert_eq!(heard[0].path, "/amplifier.module.ToolService/Execute");
    assert_eq!(heard[0].header("te"), "trailers");
    assert!(heard[0].header("user-agent").starts_with("toolpost/"));
    assert_eq!(heard[0].header("x-toolpost-call").len(), 36);
    assert!(!heard[0].header("grpc-timeout").is_empty());
}

#[tokio::test]
async fn a_failure_keeps_its_message_and_its_output() {
    let service = answering(|_| {
        let error = "no such place".to_owned();
        message(&ExecuteResponse {
            success: false,
            error,
            output: br#"{"seen": 3}"#.to_vec(),
            ..done("")
        })
    })
    .await;
    let host = host_of(&service).await;
    let result = host.call("echo", json!({})).await;
    let error = result.error.clone().unwrap();
    assert_eq!(
        (error.class, error.message.as_str()),
        (ErrorClass::ExecutionFailed, "no such place")
    );
    assert!(
        result.model_text().contains(r#"{"seen": 3}"#),
        "{}",
        result.model_text()
    );
    assert_eq!(error.details.unwrap()["output"], json!({ "seen": 3 }));
}

#[tokio::test]
async fn pieces_of_a_result_arrive_and_those_that_results_cannot_have_do_not() {
    let text = |text: &str| {
        Some(Text {
            text: text.to_owned(),
        })
    };
    let image = |source: &str| {
        let source_json = source.to_owned();
        Some(Image {
            media_type: "image/png".to_owned(),
            data: vec![1, 2, 3],
            source_json,
        })
    };
    let blocks = vec![
        Block {
            text: text("see:"),
            ..Block::default()
        },
        Block {
            image: image(""),
            ..Block::default()
        },
        Block {
            thinking: text("hm"),
            ..Block::default()
        },
        Block {
            text: text("for some"),
            visibility: 2,
            ..Block::default()
        },
        Block {
            image: image("{}"),
            ..Block::default()
        },
        Block::default(),
    ];
    let service = answering(move |_| {
        message(&ExecuteResponse {
            content_blocks: blocks.clone(),
            ..done("\"two pieces\"")
        })
    })
    .await;
    let result = host_of(&service).await.call("echo", json!({})).await;
    let png = ResultContent::Image {
        data: "AQID".to_owned(),
        media_type: "image/png".to_owned(),
    };
    assert_eq!(
        result.content,
        [
            ResultContent::text("two pieces"),
            ResultContent::text("see:"),
            png
        ]
    );
}

#[tokio::test]
async fn an_odd_output_is_not_lost() {
    let typed = |kind: &str, output: &[u8]| ExecuteResponse {
        content_type: kind.to_owned(),
        output: output.to_vec(),
        ..done("")
    };
    for (answer, expected) in [
        (done(""), Some("Success")),
        (done("null"), Some("Success")),
        (done("{broken"), Some("{broken")),
        (
            typed("application/json; charset=utf-8", b"[1]"),
            Some("[1]"),
        ),
        (typed("application/problem+json", b"true"), Some("True")),
        (typed("text/plain", b"{\"a\":1}"), Some("{\"a\":1}")),
        (typed("application/msgpack", b"\x81\xa1a\xff"), None),
        (
            ExecuteResponse {
                error: "and an error".to_owned(),
                ..done("1")
            },
            Some("1"),
        ),
    ] {
        let service = answering(move |_| message(&answer)).await;
        let result = host_of(&service).await.call("echo", json!({})).await;
        match expected {
            Some(text) => assert_eq!(result.content, [ResultContent::text(text)], "{result:?}"),
            None => assert_eq!(result.error.unwrap().code, "unreadable_output"),
        }
    }
}

#[tokio::test]
async fn calls_overlap() {
    let both = Arc::new(Barrier::new(2));
    let service = Service::start(Arc::new(move |heard: Heard| {
        let both = Arc::clone(&both);
        Box::pin(async move {
            match heard.method() {
                "GetSpec" => message(&Spec::echo()),
                "Execute" => {
                    both.wait().await;
                    echo(&heard)
                }
                _ => Reply::Status(12, String::new()),
            }
        })
    }))
    .await;
    let host = host_of(&service).await;
    let one = host
        .host
        .call(request_as(&host, "one", json!({ "text": "1" })));
    let two = host
        .host
        .call(request_as(&host, "two", json!({ "text": "2" })));
    let (one, two) = timeout(PATIENCE, async { tokio::join!(one, two) })
        .await
        .expect("neither waits for the other");
    assert!(!one.result().is_error && !two.result().is_error);
    assert_eq!(service.heard("Mount").len(), 1);
}

#[tokio::test]
async fn what_a_service_says_of_its_tool_is_mended() {
    for (name, schema, id, problem) in [
        ("my tool!", "", "tool-x.my_tool_", None),
        ("echo", "{}", "tool-x.echo", None),
        ("echo", "not json", "tool-x.echo", Some("not JSON")),
        ("echo", "[]", "tool-x.echo", Some("not an object")),
        (
            "echo",
            r#"{"type": "objekt"}"#,
            "tool-x.echo",
            Some("not valid"),
        ),
        (
            "echo",
            r#"{"$ref": "https://elsewhere.example/s"}"#,
            "tool-x.echo",
            Some("elsewhere.example"),
        ),
    ] {
        let spec = Spec {
            name: name.to_owned(),
            parameters_json: schema.to_owned(),
            ..Spec::echo()
        };
        let service = Service::start(Arc::new(move |heard: Heard| {
            let spec = spec.clone();
            Box::pin(async move {
                match heard.method() {
                    "GetSpec" => message(&spec),
                    "Execute" => echo(&heard),
                    _ => Reply::Status(12, String::new()),
                }
            })
        }))
        .await;
        let host = host_of(&service).await;
        let result = host.call(id, json!({ "any": ["thing"] })).await;
        assert!(!result.is_error, "{schema}: {result:?}");
        let said: Vec<String> = host
            .host
            .catalog()
            .unavailable()
            .iter()
            .map(ToString::to_string)
            .collect();
        match problem {
            Some(words) => assert!(said.len() == 1 && said[0].contains(words), "{said:?}"),
            None => assert_eq!(said, Vec::<String>::new()),
        }
    }
}

#[tokio::test]
async fn a_tool_without_a_name_is_a_problem() {
    let service = Service::start(Arc::new(|heard: Heard| {
        Box::pin(async move {
            match heard.method() {
                "GetSpec" => message(&Spec {
                    name: "  ".to_owned(),
                    ..Spec::echo()
                }),
                _ => Reply::Status(12, String::new()),
            }
        })
    }))
    .await;
    let host = host_of(&service).await;
    assert_eq!(
        host.host.catalog().unavailable()[0].code,
        "invalid_tool_name"
    );
}

#[tokio::test]
async fn a_thousand_calls_go_over_one_connection_mounted_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let service = answering(move |heard| {
        counted.fetch_add(1, Ordering::Relaxed);
        echo(heard)
    })
    .await;
    let host = host_of(&service).await;
    for _ in 0..1000 {
        assert!(!call_within(&host, PATIENCE, json!({})).await.is_error);
    }
    assert_eq!(count.load(Ordering::Relaxed), 1000);
    assert_eq!(
        (service.heard("Mount").len(), service.heard("GetSpec").len()),
        (1, 1)
    );
}
