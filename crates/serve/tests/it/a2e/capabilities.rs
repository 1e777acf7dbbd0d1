//! Several capabilities on one host: who is asked, in which order, and what becomes of their answers.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolpost_a2e::{
    Body, CallError, CapabilityName, ErrorMessage, HostNotice, ListOptions, Message, OtherBody,
    ToolApi, ToolCallResponse, ToolDefinition, ToolListResponse, ToolResult,
};
use toolpost_model::{BoxFuture, Declaration};
use toolpost_serve::a2e::{A2eCapability, A2ePeer, CapabilityResponse};
use toolpost_testkit::MockNativeTool;

use super::{super::client::within, embedded};
use crate::running::{Place, Running};

/// A capability that answers `demo/…` messages with its own name, and has a tool of its own.
struct Other {
    plugin: &'static str,
    priority: i32,
    exclusive: bool,
}

impl Other {
    fn named(plugin: &'static str, priority: i32) -> Self {
        Self {
            plugin,
            priority,
            exclusive: false,
        }
    }

    fn tool(&self) -> ToolDefinition {
        let id = format!("other.{}_tool", self.plugin).parse().unwrap();
        ToolDefinition::of(
            &format!("{}_tool", self.plugin),
            &Declaration::new(id, "Another's tool"),
            false,
        )
    }

    fn answer(&self, peer: &A2ePeer, message: &Message) -> CapabilityResponse {
        match &message.body {
            Body::ToolListRequest(_) => {
                let tools = vec![self.tool()];
                CapabilityResponse::with(Body::ToolListResponse(ToolListResponse {
                    req_id: String::new(),
                    tools,
                }))
            }
            Body::ToolCallRequest(call) if call.tool_name == self.tool().name => {
                let data = json!({ "success": true, "tool_name": call.tool_name, "duration_ms": 0, "data": "other" });
                let data: ToolResult = serde_json::from_value(data).unwrap();
                let response = ToolCallResponse {
                    req_id: String::new(),
                    data,
                    created_at: 0.0,
                };
                CapabilityResponse::with(Body::ToolCallResponse(response))
            }
            Body::Other(other) if other.kind == "demo/panic/req" => panic!("on purpose"),
            Body::Other(other) if other.kind == "demo/push/req" => {
                let pushed = OtherBody {
                    kind: "demo/pushed".to_owned(),
                    fields: Map::new(),
                };
                assert!(peer.push(Body::Other(pushed)));
                CapabilityResponse::with(demo(json!({ "by": [self.plugin] })))
            }
            Body::Other(_) => {
                CapabilityResponse::with(demo(json!({ "by": [self.plugin], "first": self.plugin })))
            }
            _ => CapabilityResponse::NotMine,
        }
    }
}

fn demo(fields: Value) -> Body {
    let Value::Object(fields) = fields else {
        panic!("an object")
    };
    Body::Other(OtherBody {
        kind: "demo/resp".to_owned(),
        fields,
    })
}

impl A2eCapability for Other {
    fn name(&self) -> CapabilityName {
        CapabilityName::Test
    }

    fn plugin(&self) -> &str {
        self.plugin
    }

    fn messages(&self) -> &'static [&'static str] {
        &[
            "demo/req",
            "demo/panic/req",
            "demo/push/req",
            "tool/list/req",
            "tool/call/req",
        ]
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn exclusive(&self) -> bool {
        self.exclusive
    }

    fn handle<'a>(
        &'a self,
        peer: &'a A2ePeer,
        message: Message,
    ) -> BoxFuture<'a, Result<CapabilityResponse, ErrorMessage>> {
        Box::pin(async move { Ok(self.answer(peer, &message)) })
    }
}

async fn serve(capabilities: Vec<Other>) -> Running {
    Place::without_native_tools()
        .start_with(|builder| {
            let builder = builder.tool(MockNativeTool::named("demo.own"));
            capabilities
                .into_iter()
                .fold(builder, toolpost_serve::ServerBuilder::capability)
        })
        .await
}

async fn ask(client: &toolpost_a2e::Client, kind: &str) -> Result<Map<String, Value>, CallError> {
    let body = Body::Other(OtherBody {
        kind: kind.to_owned(),
        fields: Map::new(),
    });
    match within(client.request(body, Duration::from_secs(10))).await? {
        Body::Other(answer) => Ok(answer.fields),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn all_who_take_a_message_answer_it_the_first_first() {
    let running = serve(vec![Other::named("low", -1), Other::named("high", 5)]).await;
    let client = embedded(&running.server).await;
    let answer = ask(&client, "demo/req").await.unwrap();
    assert_eq!(
        (&answer["by"], &answer["first"]),
        (&json!(["high"]), &json!("high"))
    );
}

#[tokio::test]
async fn an_exclusive_one_is_asked_alone() {
    let first = Other {
        plugin: "only",
        priority: 9,
        exclusive: true,
    };
    let running = serve(vec![Other::named("other", 0), first]).await;
    let client = embedded(&running.server).await;
    assert_eq!(
        ask(&client, "demo/req").await.unwrap()["by"],
        json!(["only"])
    );
}

#[tokio::test]
async fn lists_are_merged_and_a_call_goes_to_its_owner() {
    for priority in [-5, 5] {
        let running = serve(vec![Other::named("more", priority)]).await;
        let client = embedded(&running.server).await;
        let api = ToolApi::new(&client);
        let tools = within(api.list(&ListOptions::all())).await.unwrap();
        let mut names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["more_tool", "own"], "priority {priority}");
        let result = within(api.call("more_tool", json!({}))).await.unwrap();
        assert_eq!(result.data, Some(json!("other")), "priority {priority}");
        assert!(
            within(api.call("own", json!({}))).await.unwrap().success,
            "priority {priority}"
        );
    }
}

#[tokio::test]
async fn one_that_panics_is_an_error_and_harms_nobody() {
    let running = serve(vec![Other::named("shaky", 0)]).await;
    let client = embedded(&running.server).await;
    assert!(matches!(
        ask(&client, "demo/panic/req").await,
        Err(CallError::Protocol(_))
    ));
    assert_eq!(
        ask(&client, "demo/req").await.unwrap()["by"],
        json!(["shaky"])
    );
}

#[tokio::test]
async fn one_may_tell_an_agent_what_it_did_not_ask() {
    let running = serve(vec![Other::named("loud", 0)]).await;
    let client = embedded(&running.server).await;
    let mut notices = client.notices();
    ask(&client, "demo/push/req").await.unwrap();
    let pushed = within(async {
        loop {
            if let Some(HostNotice::Push(message)) = notices.next().await {
                return message;
            }
        }
    })
    .await;
    assert_eq!(pushed.body.kind(), "demo/pushed");
}
