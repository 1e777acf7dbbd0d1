//! A process on the other end that sends arbitrary frames.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use tokio::{io::AsyncWriteExt as _, net::UnixStream, runtime::Builder, time::timeout};
use toolpost_model::{
    BoxFuture, CallContext, CallPort, CallSurroundings, CallableTool, EventBody, InvocationId,
    Principal, Provenance, SessionId, SiblingCalls, ToolId,
};

use super::{CodeConversationError, CodeRunConversation, CodeWorkerConnection};
use crate::code::{
    frame::{CodeRunEnd, RunLimits, RunOrder},
    inner_calls::{InnerCallScope, InnerCalls},
};

struct Port(SessionId, Principal);

impl CallPort for Port {
    fn invocation_id(&self) -> InvocationId {
        InvocationId::new()
    }

    fn session_id(&self) -> &SessionId {
        &self.0
    }

    fn principal(&self) -> &Principal {
        &self.1
    }

    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn emit(&self, _: EventBody) {}

    fn is_canceled(&self) -> bool {
        false
    }

    fn canceled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn around(&self) -> CallSurroundings<'_> {
        CallSurroundings {
            calls: self,
            ..CallSurroundings::default()
        }
    }
}

impl SiblingCalls for Port {
    fn callable(&self) -> Vec<CallableTool> {
        let id: ToolId = "files.read_file".parse().unwrap();
        vec![CallableTool {
            name: "read_file".to_owned(),
            id,
            provenance: Provenance::CompiledIn,
            schema: Arc::new(json!({})),
        }]
    }
}

fn frame(report: &Value) -> Vec<u8> {
    let body = report.to_string().into_bytes();
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
}

/// The host's result for a process that sends these bytes and closes the socket.
fn hear(
    sent: &[Vec<u8>],
) -> (
    Result<CodeRunEnd, CodeConversationError>,
    CodeRunConversation,
) {
    let sent = sent.concat();
    Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async move {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            tokio::spawn(async move {
                // The host may close the socket in the middle. The other end reads nothing, as a hostile one might.
                let _ = theirs.write_all(&sent).await;
            });
            let context =
                CallContext::new(Arc::new(Port(SessionId::new("s"), Principal::agent("a"))));
            let asked = InnerCallScope {
                granted: vec!["*".parse().unwrap()],
                wanted: None,
                most: 2,
            };
            let mut talk = CodeRunConversation::new(InnerCalls::new(context, asked), 100);
            let limits = RunLimits {
                time_ms: 1000,
                memory_bytes: 1 << 20,
                printed_bytes: 100,
            };
            let order = RunOrder {
                code: "1".to_owned(),
                inputs: Map::new(),
                functions: Vec::new(),
                limits,
            };
            let mut wire = CodeWorkerConnection::new(ours);
            let ended = timeout(Duration::from_secs(20), talk.run(&mut wire, order))
                .await
                .unwrap();
            (ended, talk)
        })
}

fn ready() -> Vec<u8> {
    frame(&json!("ready"))
}

fn ended() -> Vec<u8> {
    let ending = json!({ "value": { "json": 1, "repr": "1" } });
    frame(&json!({ "ended": { "ending": ending, "unprinted": 0, "worn": false } }))
}

fn call(id: u32, function: &Value) -> Vec<u8> {
    frame(&json!({ "call": { "id": id, "function": function, "positional": [], "keywords": {} } }))
}

#[test]
fn a_process_that_keeps_to_the_rules_is_heard_to_its_end() {
    let printed = frame(&json!({ "printed": { "text": "hi" } }));
    let (heard, talk) = hear(&[ready(), printed, ended()]);
    assert!(matches!(heard, Ok(CodeRunEnd::Value { .. })), "{heard:?}");
    assert_eq!(talk.printed, "hi");
}

#[test]
fn a_process_that_breaks_them_is_not_listened_to() {
    let check = |sent: &[Vec<u8>], part: &str| {
        let (heard, talk) = hear(sent);
        let error = heard.unwrap_err();
        let told = std::error::Error::source(&error)
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(
            format!("{error} {told}").contains(part),
            "{part}: {error:?}"
        );
        assert!(talk.printed.len() <= 100);
    };
    check(&[], "ended");
    check(&[ended()], "another message before its greeting");
    check(&[ready(), ready()], "its greeting twice");
    check(
        &[frame(&json!({ "unfit": { "reason": "no seccomp" } }))],
        "cannot be confined: no seccomp",
    );
    check(&[ready(), vec![0xff; 4]], "the limit is");
    check(&[ready(), b"\0\0\0\x02{}".to_vec()], "an invalid frame");
    check(
        &[ready(), frame(&json!({ "no_such": {} }))],
        "an invalid frame",
    );
    check(&[ready(), b"\0\0\0\x09{\"prin".to_vec()], "ended");
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(
        "{{\"ended\":{{\"unprinted\":0,\"worn\":false,\"ending\":{{\"value\":{{\"repr\":\"\",\"json\":{deep}}}}}}}}}"
    );
    let deep = [
        &u32::try_from(deep.len()).unwrap().to_be_bytes()[..],
        deep.as_bytes(),
    ]
    .concat();
    check(&[ready(), deep], "an invalid frame");
    let printed = frame(&json!({ "printed": { "text": "x".repeat(60) } }));
    check(
        &[ready(), printed.clone(), printed],
        "more printed text than allowed",
    );
}

#[test]
fn what_a_process_calls_is_looked_up_and_counted_here() {
    let named = |name: &str| json!({ "named": name });
    let calls = [
        call(1, &named("eval")),
        call(2, &named("write_file")),
        call(3, &json!({ "file": "write" })),
        call(4, &named("read_file")),
        call(5, &json!({ "file": "read" })),
        call(6, &named("read_file")),
    ];
    let (heard, talk) = hear(&[ready(), calls.concat(), ended()]);
    assert!(matches!(heard, Ok(CodeRunEnd::Value { .. })), "{heard:?}");
    let records = serde_json::to_value(talk.calls.records()).unwrap();
    let tools: Vec<&Value> = records
        .as_array()
        .unwrap()
        .iter()
        .map(|record| &record["tool"])
        .collect();
    assert_eq!(
        tools,
        ["read_file", "read_file"],
        "two of three are within the limit, and no other tool was called"
    );
}
