//! `GET /tools` and `GET /tools/{name}`: five formats, the filters, and what showing a deferred tool does.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_model::{
    EffectClass, ExternalMapping, Lifecycle, LoadingStrategy, PrincipalRole, Requirements, Rule,
    RuleOrigin, ToolKind, ToolSettings, ToolSurfaceSettings,
};
use toolpost_testkit::MockNativeTool;

use super::{
    client::Request,
    running::{Place, Running},
};

const OLGA: &str = "olga-has-a-token";

fn paint() -> MockNativeTool {
    let schema = json!({
        "type": "object",
        "properties": { "colour": { "type": "string", "description": "Any name." } },
        "required": ["colour"],
        "additionalProperties": false,
    });
    MockNativeTool::named("demo.paint")
        .class(EffectClass::Write)
        .schema(schema)
        .declare(|declaration| {
            declaration.title = Some("Paint".to_owned());
            declaration.description = "Paints the shed".to_owned();
            declaration.kind = ToolKind::File;
            declaration.tags = vec!["shed".to_owned(), "write".to_owned()];
            declaration.output.schema = Some(Arc::new(json!({ "type": "object" })));
            declaration.interface.safety.destructive = true;
        })
}

fn look() -> MockNativeTool {
    MockNativeTool::named("demo.look").declare(|declaration| {
        declaration.description = "Looks at the shed".to_owned();
        declaration.tags = vec!["shed".to_owned()];
    })
}

fn measure() -> MockNativeTool {
    MockNativeTool::named("demo.measure").declare(|declaration| {
        declaration.description = "Measures the shed".to_owned();
        declaration.loading = LoadingStrategy::Deferred;
    })
}

fn hidden_tools() -> Vec<MockNativeTool> {
    let lifecycle =
        |id: &str, lifecycle| MockNativeTool::named(id).declare(|tool| tool.lifecycle = lifecycle);
    let requires =
        |id: &str, requires| MockNativeTool::named(id).declare(|tool| tool.requires = requires);
    vec![
        lifecycle(
            "hidden.unset",
            Lifecycle::RequiresSetup("a brush".to_owned()),
        ),
        MockNativeTool::named("hidden.off"),
        MockNativeTool::named("hidden.ruled_out"),
        requires(
            "hidden.bosses",
            Requirements {
                roles: vec![PrincipalRole::Operator],
                ..Requirements::default()
            },
        ),
        requires(
            "hidden.seeing",
            Requirements {
                model_capabilities: vec!["vision".to_owned()],
                ..Requirements::default()
            },
        ),
        requires(
            "hidden.elsewhere",
            Requirements {
                tasks: vec!["roof".to_owned()],
                ..Requirements::default()
            },
        ),
    ]
}

async fn shed() -> Running {
    let place = Place::without_native_tools();
    place
        .start_with(|builder| builder.tool(paint()).tool(look()).tool(measure()))
        .await
}

async fn shed_with_secrets() -> Running {
    let mut place = Place::without_native_tools().with_token("olga", PrincipalRole::Operator, OLGA);
    place.config.rules =
        vec![Rule::parse("deny hidden.ruled_out", RuleOrigin::Cli, "test").unwrap()];
    place.config.tools.insert(
        "hidden.off".to_owned(),
        ToolSettings {
            surface: ToolSurfaceSettings {
                enabled: Some(false),
                ..ToolSurfaceSettings::default()
            },
            ..ToolSettings::default()
        },
    );
    place
        .start_with(|builder| {
            let builder = builder.tool(look()).tool(measure());
            hidden_tools()
                .into_iter()
                .fold(builder, |builder, tool| builder.tool(tool))
        })
        .await
}

async fn listed(server: &Running, query: &str) -> Value {
    let answer = server.send(Request::get(format!("/tools?{query}"))).await;
    assert_eq!(answer.status(), 200, "{query}: {answer:?}");
    answer.json()
}

async fn names(server: &Running, query: &str) -> Vec<String> {
    let list = listed(server, query).await;
    list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_list_comes_in_five_formats() {
    let server = shed().await;
    assert_eq!(
        listed(&server, "").await,
        listed(&server, "format=toolpost").await
    );
    for format in ["toolpost", "openai", "anthropic", "gemini", "mcp"] {
        let list = listed(&server, &format!("format={format}&include_deferred=true")).await;
        insta::assert_json_snapshot!(format!("tools_for_{format}"), list);
    }
}

#[tokio::test]
async fn the_filters_choose() {
    let server = shed().await;
    for (query, expected) in [
        ("", vec!["paint", "look"]),
        ("include_deferred=true", vec!["paint", "look", "measure"]),
        ("include_deferred=false", vec!["paint", "look"]),
        ("kind=file", vec!["paint"]),
        (
            "kind=function&include_deferred=true",
            vec!["look", "measure"],
        ),
        ("kind=shell", vec![]),
        ("tags=shed", vec!["paint", "look"]),
        ("tags=shed,write", vec!["paint"]),
        ("tags=shed%2C+write", vec!["paint"]),
        ("tags=roof", vec![]),
        ("tags=", vec!["paint", "look"]),
        ("tags=,shed,", vec!["paint", "look"]),
        ("limit=1", vec!["paint"]),
        ("limit=0", vec![]),
        ("query=looks", vec!["look"]),
        ("query=PAINT", vec!["paint"]),
        ("query=measures", vec![]),
        ("query=measures&include_deferred=true", vec!["measure"]),
        // In the middle of a word, and with a blank in it.
        ("query=ook", vec!["look"]),
        ("query=at+the+shed", vec!["look", "paint"]),
        ("query=%20", vec!["paint", "look"]),
        ("query=zzz", vec![]),
        ("query=shed&kind=file", vec!["paint"]),
    ] {
        assert_eq!(names(&server, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_question_that_makes_no_sense_is_refused() {
    let server = shed().await;
    for (query, code) in [
        ("format=xml", "bad_format"),
        ("format=OpenAI", "bad_format"),
        ("colour=red", "bad_query"),
        ("limit=-1", "bad_query"),
        ("limit=many", "bad_query"),
        ("include_deferred=yes", "bad_query"),
        ("hidden", "bad_query"),
        ("limit=1&limit=2", "bad_query"),
    ] {
        let refused = server.send(Request::get(format!("/tools?{query}"))).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, code),
            "{query}"
        );
    }
}

#[tokio::test]
async fn what_is_hidden_is_named_with_its_reason_on_request() {
    let server = shed_with_secrets().await;
    assert_eq!(names(&server, "").await, ["look"]);
    let refused = server.send(Request::get("/tools?hidden=true")).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (403, "operators_only"),
        "an agent is not told"
    );
    // An operator looks at an agent's session as the agent sees it.
    let session = server.open_session(Request::post("/sessions", "")).await;
    let answer = server
        .send(
            Request::get("/tools?hidden=true")
                .session(&session)
                .bearer(OLGA),
        )
        .await;
    assert_eq!(answer.status(), 200, "{answer:?}");
    let list = answer.json();
    let reasons: Vec<(&str, &str)> = list["hidden"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            assert!(!tool["explanation"].as_str().unwrap().is_empty());
            (
                tool["name"].as_str().unwrap(),
                tool["reason"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        reasons,
        [
            ("measure", "deferred"),
            ("unset", "setup"),
            ("off", "disabled"),
            ("ruled_out", "policy"),
            ("bosses", "role"),
            ("seeing", "model_capability"),
            ("elsewhere", "task_scope"),
        ]
    );
    for (name, _) in &reasons[1..] {
        let looked = server.send(Request::get(format!("/tools/{name}"))).await;
        assert_eq!(
            (looked.status(), looked.code().as_str()),
            (404, "unknown_tool"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn settings_by_name_and_by_id_count_together() {
    let off = ToolSettings {
        surface: ToolSurfaceSettings {
            enabled: Some(false),
            ..ToolSurfaceSettings::default()
        },
        ..ToolSettings::default()
    };
    let deferred = ToolSettings {
        surface: ToolSurfaceSettings {
            deferred: Some(true),
            ..ToolSurfaceSettings::default()
        },
        ..ToolSettings::default()
    };
    for (by_id, by_name) in [(off.clone(), deferred.clone()), (deferred, off)] {
        let mut place = Place::without_native_tools();
        place.config.tools.insert("demo.look".to_owned(), by_id);
        place.config.tools.insert("look".to_owned(), by_name);
        let server = place.start_with(|builder| builder.tool(look())).await;
        assert_eq!(server.call("look", json!({})).await.code(), "disabled");
    }
}

#[tokio::test]
async fn a_session_sees_the_surface_it_asked_for() {
    let server = shed_with_secrets().await;
    let ask = json!({ "task": "roof", "model_capabilities": ["vision"] }).to_string();
    let session = server.open_session(Request::post("/sessions", ask)).await;
    let list = server
        .send(Request::get("/tools").session(&session))
        .await
        .json();
    let names: Vec<&str> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["look", "seeing", "elsewhere"]);
    let called = server
        .send(Request::call("elsewhere", &json!({})).session(&session))
        .await;
    assert_eq!(called.status(), 200);
    assert_eq!(
        server.call("elsewhere", json!({})).await.code(),
        "task_scope"
    );
}

#[tokio::test]
async fn a_tool_is_found_by_each_of_its_names() {
    let place = Place::without_native_tools();
    let tool = look().declare(|tool| tool.aliases = vec!["peek".to_owned()]);
    let server = place.start_with(|builder| builder.tool(tool)).await;
    for name in ["look", "demo.look", "peek", "%6cook"] {
        let shown = server.send(Request::get(format!("/tools/{name}"))).await;
        assert_eq!(shown.status(), 200, "{name}");
        assert_eq!(shown.json()["declaration"]["tool_id"], "demo.look");
        assert_eq!(shown.json()["visibility"], "loaded");
        let called = server.call(name, json!({})).await;
        assert_eq!(called.json()["tool_id"], "demo.look", "{name}");
    }
}

#[tokio::test]
async fn a_deferred_tool_can_be_called_once_it_was_shown_in_the_session() {
    let show = Request::get("/tools/measure");
    let list = Request::get("/tools?include_deferred=true");
    let search = Request::get("/tools?query=measure&include_deferred=true&format=openai");
    let without = Request::get("/tools?query=measure");
    for (look, counts) in [(show, true), (list, true), (search, true), (without, false)] {
        let server = shed().await;
        let call = Request::call("measure", &json!({}));
        let too_early = server.send(call.clone()).await;
        assert_eq!(
            (too_early.status(), too_early.code().as_str()),
            (409, "schema_not_loaded")
        );
        assert_eq!(too_early.json()["error"]["retry"]["discover_first"], true);
        let other = server.open_session(Request::post("/sessions", "")).await;
        assert_eq!(server.send(look).await.status(), 200);
        let after = server.send(call.clone()).await;
        assert_eq!(after.status(), if counts { 200 } else { 409 });
        let elsewhere = server.send(call.session(&other)).await;
        assert_eq!(
            elsewhere.status(),
            409,
            "shown in one session is not shown in another"
        );
    }
}

#[tokio::test]
async fn where_showing_is_not_required_a_deferred_tool_can_be_called_at_once() {
    let mut place = Place::without_native_tools();
    place.config.discovery.require_shown = false;
    let server = place.start_with(|builder| builder.tool(measure())).await;
    assert_eq!(names(&server, "").await, Vec::<String>::new());
    assert_eq!(server.call("measure", json!({})).await.status(), 200);
}

#[tokio::test]
async fn the_command_line_behind_a_tool_is_shown_to_operators_only() {
    let tool = MockNativeTool::named("demo.deploy").declare(|declaration| {
        let template = vec!["--host".to_owned(), "db-7.internal".to_owned()];
        declaration.external_mappings = vec![ExternalMapping {
            template,
            ..ExternalMapping::new("cli", "deploy")
        }];
    });
    let place = Place::new().with_token("olga", PrincipalRole::Operator, OLGA);
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let show = || Request::get("/tools/deploy");
    let mapping = |shown: Value| shown["declaration"]["external_mappings"][0].clone();
    let agents = mapping(server.send(show()).await.json());
    assert_eq!(agents, json!({ "system": "cli", "native_id": "deploy" }));
    let operators = mapping(server.send(show().bearer(OLGA)).await.json());
    assert_eq!(operators["template"], json!(["--host", "db-7.internal"]));
}
