//! Messages on the wire: what goes in comes out, whatever it is, and in a form that every reader survives.

use std::{collections::BTreeMap, time::Duration};

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Value, json};
use toolpost_a2e::{
    Body, CapabilityEntry, CapabilityName, ErrorCode, ErrorMessage, HandshakeRequest,
    HandshakeResponse, InvokeEvent, Message, OtherBody, Pong, Shutdown, ToolCallRequest,
    ToolCallResponse, ToolCancelRequest, ToolCancelResponse, ToolDefinition, ToolListRequest,
    ToolListResponse, ToolParameter, ToolResult,
    codec::{self, MessageFraming},
};
use toolpost_model::{
    BatchOrdering, BatchPlace, Disposition, ErrorClass, InvocationId, ModelInput, OnFailure,
    Outcome, Redactions, RetryGuidance, SurfaceRequest,
};

/// Text with everything that readers have stumbled over.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z/_]{0,12}",
        "[ -~é\u{85}\u{2028}\u{2029}\u{1f600}\u{0}-\u{1f}\"\\\\]{0,20}",
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((text(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), value()), 0..4).prop_map(|members| members.into_iter().collect())
}

fn event() -> impl Strategy<Value = InvokeEvent> {
    (text(), text(), object(), 0..1_u64 << 50).prop_map(|(kind, req_id, data, seq)| InvokeEvent {
        kind,
        req_id,
        data,
        seq,
        at: None,
    })
}

fn seconds() -> impl Strategy<Value = Duration> {
    (1..86_400_u64).prop_map(Duration::from_secs)
}

fn parameter() -> impl Strategy<Value = ToolParameter> {
    let leaf = (
        text(),
        "[a-z]{1,8}",
        text(),
        any::<bool>(),
        option::of(vec(text(), 0..3)),
    )
        .prop_map(
            |(name, kind, description, required, choices)| ToolParameter {
                name,
                kind,
                description,
                required,
                choices: choices
                    .unwrap_or_default()
                    .into_iter()
                    .map(Into::into)
                    .collect(),
                properties: Vec::new(),
            },
        );
    leaf.prop_recursive(3, 8, 3, |inner| {
        (vec(inner.clone(), 0..3), inner).prop_map(|(members, outer)| {
            let properties: BTreeMap<_, _> = members
                .into_iter()
                .map(|one| (one.name.clone(), one))
                .collect();
            ToolParameter {
                properties: properties.into_values().collect(),
                ..outer
            }
        })
    })
}

fn definition() -> impl Strategy<Value = ToolDefinition> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let words = (
        text(),
        text(),
        vec(text(), 0..3),
        text(),
        option::of(text()),
        option::of(text()),
    );
    let schemas = (option::of(object()), option::of(object()));
    (
        words,
        vec(parameter(), 0..3),
        vec(parameter(), 0..2),
        flags,
        schemas,
    )
        .prop_map(
            |(
                (name, description, tags, version, toolkit, kind),
                input,
                output,
                (streaming, idempotent, defer),
                schemas,
            )| {
                ToolDefinition {
                    name,
                    description,
                    input_parameters: input,
                    output_parameters: output,
                    streaming,
                    idempotent,
                    tags,
                    version,
                    toolkit,
                    defer_loading: defer,
                    kind,
                    input_schema: schemas.0.map(Value::Object),
                    output_schema: schemas.1.map(Value::Object),
                }
            },
        )
}

fn result() -> impl Strategy<Value = ToolResult> {
    let plain = (
        any::<bool>(),
        text(),
        0..1_u64 << 50,
        any::<bool>(),
        option::of(any::<i32>()),
    );
    // A null is the same as nothing there, and comes back as nothing.
    let something = || option::of(value().prop_filter("null", |value| !value.is_null()));
    let words = (
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(any::<bool>()),
    );
    let ids = (
        option::of(Just(InvocationId::new())),
        option::of(0..ErrorClass::ALL.len()),
        any::<bool>(),
    );
    (
        plain,
        something(),
        something(),
        words,
        vec(event(), 0..3),
        ids,
    )
        .prop_map(
            |(
                (success, tool_name, duration_ms, truncated, exit_code),
                data,
                summary,
                words,
                events,
                ids,
            )| {
                ToolResult {
                    success,
                    tool_name,
                    duration_ms,
                    data,
                    summary,
                    truncated,
                    exit_code,
                    error: words.0,
                    error_code: words.1,
                    events,
                    invocation_id: ids.0,
                    outcome: ids.2.then_some(Outcome::Failed),
                    disposition: ids.2.then_some(Disposition::Synthetic),
                    artifacts: Vec::new(),
                    persistence: None,
                    redactions: Redactions::default(),
                    error_class: ids.1.map(|place| ErrorClass::ALL[place]),
                    hint: words.2,
                    retry_safe: words.3,
                    retry: words.3.map(|safe| RetryGuidance {
                        safe,
                        ..RetryGuidance::SAFE
                    }),
                    sandbox: None,
                }
            },
        )
}

fn core_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (
            text(),
            vec(text(), 0..3),
            text(),
            any::<bool>(),
            vec(text(), 0..2)
        )
            .prop_map(|(agent_id, agent_caps, auth_token, surface, extensions)| {
                let surface = surface.then(SurfaceRequest::default);
                Body::HandshakeRequest(HandshakeRequest {
                    agent_id,
                    agent_caps,
                    auth_token,
                    surface,
                    extensions,
                })
            }),
        (
            text(),
            text(),
            vec(
                (0..CapabilityName::ALL.len(), any::<bool>(), object()),
                0..3
            ),
            0..99_i64,
            any::<bool>()
        )
            .prop_map(|(req_id, session_id, caps, max_parallel, ok)| {
                let entry = |(place, enabled, metadata): (usize, bool, Map<String, Value>)| {
                    CapabilityEntry {
                        capability: CapabilityName::ALL[place].clone(),
                        enabled,
                        metadata,
                    }
                };
                Body::HandshakeResponse(HandshakeResponse {
                    req_id,
                    session_id: session_id.clone(),
                    accepted_caps: caps.into_iter().map(entry).collect(),
                    max_parallel,
                    ok,
                    reason: session_id.clone(),
                    host_session_id: ok.then(|| session_id.clone()),
                    host_id: (!ok).then_some(session_id),
                })
            }),
        Just(Body::ping()),
        Just(Body::tool_list_changed()),
        (text(), 0.0..1e9_f64).prop_map(|(req_id, uptime_seconds)| Body::Pong(Pong {
            req_id,
            uptime_seconds
        })),
        seconds().prop_map(|timeout| Body::Shutdown(Shutdown { timeout })),
        (text(), "[a-z_]{1,20}", text(), object(), any::<bool>()).prop_map(
            |(req_id, code, message, detail, retryable)| {
                let code: ErrorCode = serde_json::from_value(json!(code)).unwrap();
                let mut error = ErrorMessage::new(code, message.clone()).to(req_id);
                (error.detail, error.retryable, error.capability_name) =
                    (Box::new(detail), retryable, message);
                Body::Error(error)
            }
        ),
        event().prop_map(Body::InvokeEvent),
    ]
}

fn tool_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (
            text(),
            vec(text(), 0..3),
            text(),
            any::<bool>(),
            0..1_000_u64
        )
            .prop_map(
                |(filter_kind, filter_tags, query, include_deferred, limit)| {
                    Body::ToolListRequest(ToolListRequest {
                        filter_kind,
                        filter_tags,
                        query,
                        include_deferred,
                        limit,
                    })
                }
            ),
        (text(), vec(definition(), 0..3))
            .prop_map(|(req_id, tools)| Body::ToolListResponse(ToolListResponse { req_id, tools })),
        (text(), object(), 0..3_u8, text(), any::<bool>(), seconds()).prop_map(
            |(tool_name, arguments, as_text, correlation_id, streaming, timeout)| {
                let arguments = Value::Object(arguments);
                let input = match as_text {
                    0 => ModelInput::value(arguments),
                    1 => ModelInput::text(arguments.to_string()),
                    _ => ModelInput::text(
                        serde_json::to_string_pretty(&arguments)
                            .unwrap()
                            .replace('\n', "\r\n"),
                    ),
                };
                Body::ToolCallRequest(ToolCallRequest {
                    session_id: correlation_id.clone(),
                    correlation_id,
                    streaming,
                    timeout,
                    collect_events: !streaming,
                    batch: (as_text == 1).then(|| BatchPlace {
                        id: "turn".to_owned(),
                        index: u32::from(as_text),
                        depends_on: if streaming { vec![0] } else { Vec::new() },
                        on_failure: OnFailure::CancelSiblings,
                        ordering: BatchOrdering::default(),
                    }),
                    background: as_text == 2,
                    ..ToolCallRequest::new(tool_name, input)
                })
            }
        ),
        (text(), result(), 0.0..1e10_f64).prop_map(|(req_id, data, created_at)| {
            Body::ToolCallResponse(ToolCallResponse {
                req_id,
                data,
                created_at,
            })
        }),
        event().prop_map(Body::ToolEvent),
        text().prop_map(|call_id| Body::ToolCancelRequest(ToolCancelRequest { call_id })),
        (text(), text(), any::<bool>()).prop_map(|(req_id, call_id, ok)| {
            Body::ToolCancelResponse(ToolCancelResponse {
                req_id,
                call_id,
                ok,
            })
        }),
        ("x/[a-z]{1,9}", object()).prop_map(|(kind, mut fields)| {
            for envelope in ["type", "id", "version", "ts"] {
                fields.remove(envelope);
            }
            Body::Other(OtherBody { kind, fields })
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let id = prop_oneof![
        Just(String::new()),
        "[0-9a-f]{32}",
        text().prop_filter("long", |id| id.len() <= 256)
    ];
    let ts = option::of((0_u32..4_000_000_000).prop_map(|ms| f64::from(ms) / 1_000.0));
    (id, ts, prop_oneof![core_body(), tool_body()]).prop_map(|(id, ts, body)| Message {
        id,
        version: None,
        ts,
        body,
    })
}

fn json_of(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(message in message()) {
        let line = codec::encode(&message, MessageFraming::Line);
        let read = codec::decode(&line, codec::ReaderSide::Agent).unwrap();
        prop_assert_eq!(&read.id, &message.id);
        prop_assert_eq!(read.ts, message.ts);
        prop_assert_eq!(read.body.kind(), message.body.kind());
        prop_assert_eq!(read.body.req_id(), message.body.req_id());
        let again = codec::encode(&Message { version: None, ..read }, MessageFraming::Line);
        prop_assert_eq!(json_of(&line), json_of(&again));
    }

    #[test]
    fn lines_are_plain(message in message()) {
        let line = codec::encode(&message, MessageFraming::Line);
        let (end, text) = line.split_last().unwrap();
        prop_assert_eq!(*end, b'\n');
        prop_assert!(text.iter().all(|byte| byte.is_ascii() && *byte >= b' '), "{:?}", String::from_utf8_lossy(text));
    }

    #[test]
    fn an_event_is_the_same_message(message in message()) {
        check_event(&message);
    }

    #[test]
    fn nothing_makes_the_reader_panic(bytes in vec(any::<u8>(), 0..200), text in text()) {
        let _ = codec::decode(&bytes, codec::ReaderSide::Agent);
        let _ = codec::decode(text.as_bytes(), codec::ReaderSide::Agent);
        let _ = codec::decode(format!("{{\"type\":{text}}}").as_bytes(), codec::ReaderSide::Agent);
    }
}

/// Joins the data lines of an event and compares with the plain line.
fn check_event(message: &Message) -> Vec<usize> {
    let event = String::from_utf8(codec::encode(message, MessageFraming::Event)).unwrap();
    let lines = event.strip_suffix("\n\n").unwrap().split('\n');
    let data: Vec<_> = lines
        .map(|line| line.strip_prefix("data: ").unwrap())
        .collect();
    assert_eq!(
        json_of(data.join("\n").as_bytes()),
        json_of(&codec::encode(message, MessageFraming::Line))
    );
    data.iter().map(|line| line.len()).collect()
}

#[test]
fn long_events_are_broken_up() {
    let tools = |count: usize, description: &str| {
        let tool = json!({ "name": "read_file", "description": description, "tags": ["a", "b"],
            "input_parameters": [{ "name": "path", "type": "string", "description": "where it is" }] });
        let tools = vec![serde_json::from_value::<ToolDefinition>(tool).unwrap(); count];
        Message::new(Body::ToolListResponse(ToolListResponse {
            req_id: "r".to_owned(),
            tools,
        }))
    };
    let longest = |message: &Message| check_event(message).into_iter().max().unwrap();
    assert_eq!(check_event(&tools(1, "small")).len(), 1);
    // About 8 KB; a token more may fit.
    assert!(longest(&tools(2_000, "reads a file")) <= 9 << 10);
    assert!(
        longest(&tools(
            2_000,
            "liest eine Datei, ganz gleich wie groß \u{1f600}"
        )) <= 9 << 10
    );
    assert!(check_event(&tools(2_000, "reads a file")).len() > 20);
    // One string cannot be broken, and takes little else with it.
    assert!(longest(&tools(3, &"x".repeat(20_000))) <= (20_000 + (9 << 10)));
    let numbers = Value::from((0..20_000).collect::<Vec<u32>>());
    let body = OtherBody {
        kind: "x/numbers".to_owned(),
        fields: Map::from_iter([("n".to_owned(), numbers)]),
    };
    assert!(longest(&Message::new(Body::Other(body))) <= 9 << 10);
}
