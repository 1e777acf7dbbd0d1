//! Several servers with resources and prompts behind one host: who sees which of them, and which one answers.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolpost_model::{
    DynTool, EffectClass, FnTool, LoadingStrategy, Rule, RuleOrigin, SourceCompanions, ToolFailure,
    ToolSet,
};

use super::{Era, Place, Running, both, offering::Shelf, offering::whole};

/// A server that answers everything with its own name and what it was asked for.
fn server(name: &'static str, offered: SourceCompanions) -> Shelf {
    let tool = |what: &str, answer: fn(String) -> Value| -> Arc<dyn DynTool> {
        let id = format!("{name}.{what}");
        let tool = FnTool::named(&id).unwrap().class(EffectClass::Read);
        let tool = tool.declare(|declaration| declaration.loading = LoadingStrategy::Companion);
        Arc::new(tool.run(move |wanted: Map<String, Value>, _| async move {
            let asked = [
                wanted.get("uri"),
                wanted.get("name"),
                wanted.get("ref").map(|of| &of["name"]),
            ];
            let asked = asked.into_iter().flatten().find_map(Value::as_str);
            Ok::<_, ToolFailure>(whole(answer(format!(
                "{name} has {}",
                asked.unwrap_or_default()
            ))))
        }))
    };
    let tools = [
        tool(
            "read",
            |text| json!({ "contents": [{ "uri": "x://", "text": text }] }),
        ),
        tool(
            "prompt",
            |text| json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }),
        ),
        tool(
            "complete",
            |text| json!({ "completion": { "values": [text] } }),
        ),
        tool("subscribe", |_| json!({})),
    ];
    let id = |what: &str| Some(format!("{name}.{what}").parse().unwrap());
    let offered = SourceCompanions {
        read: id("read"),
        prompt: id("prompt"),
        complete: id("complete"),
        subscribe: id("subscribe"),
        ..offered
    };
    Shelf {
        tools: ToolSet::new(name, tools),
        offered: Arc::new(offered),
    }
}

fn offers(resources: &[&str], templates: &[&str], prompts: &[&str]) -> SourceCompanions {
    let all = |key: &str, texts: &[&str]| {
        texts
            .iter()
            .map(|text| json!({ key: text, "name": text }))
            .collect()
    };
    SourceCompanions {
        resources: all("uri", resources),
        templates: all("uriTemplate", templates),
        prompts: all("name", prompts),
        ..SourceCompanions::default()
    }
}

async fn ask(era: &Era, server: &Running, method: &str, params: Value) -> Value {
    era.ask(server, method, params).await.json()
}

async fn listed(era: &Era, server: &Running, method: &str, list: &str, key: &str) -> Vec<String> {
    let answer = ask(era, server, method, json!({})).await;
    let list = answer["result"][list]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    list.iter()
        .map(|entry| entry[key].as_str().unwrap().to_owned())
        .collect()
}

async fn resources(era: &Era, server: &Running) -> Vec<String> {
    listed(era, server, "resources/list", "resources", "uri").await
}

async fn templates(era: &Era, server: &Running) -> Vec<String> {
    listed(
        era,
        server,
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    )
    .await
}

async fn prompts(era: &Era, server: &Running) -> Vec<String> {
    listed(era, server, "prompts/list", "prompts", "name").await
}

async fn read(era: &Era, server: &Running, uri: &str) -> Value {
    let answer = ask(era, server, "resources/read", json!({ "uri": uri })).await;
    if answer["error"].is_object() {
        answer["error"]["code"].clone()
    } else {
        answer["result"]["contents"][0]["text"].clone()
    }
}

async fn prompt(era: &Era, server: &Running, name: &str) -> Value {
    let answer = ask(era, server, "prompts/get", json!({ "name": name })).await;
    if answer["error"].is_object() {
        answer["error"]["code"].clone()
    } else {
        answer["result"]["messages"][0]["content"]["text"].clone()
    }
}

fn completion(kind: &str, key: &str, of: &str) -> Value {
    json!({ "ref": { "type": kind, key: of }, "argument": { "name": "a", "value": "" } })
}

#[tokio::test]
async fn a_denied_server_shows_nothing_of_what_it_has() {
    let open = server("open", offers(&["open://a"], &["open://{x}"], &["hello"]));
    let shut = server(
        "shut",
        offers(&["shut://secret"], &["shut://{x}"], &["launch"]),
    );
    let half = server(
        "half",
        offers(&["half://secret"], &["half://{x}"], &["wave"]),
    );
    // With one reader alone, it would be asked for what nobody lists.
    let also = server("also", SourceCompanions::default());
    let mut place = Place::without_native_tools();
    let deny = |what: &str| Rule::parse(&format!("deny {what}"), RuleOrigin::Cli, "test").unwrap();
    place.config.rules = vec![deny("shut.*"), deny("half.read")];
    let server = place
        .start_with(|builder| builder.source(open).source(also).source(shut).source(half))
        .await;
    for era in both(&server).await {
        assert_eq!(resources(&era, &server).await, ["open://a"]);
        let shown = templates(&era, &server).await;
        assert!(
            !shown
                .iter()
                .any(|one| one.starts_with("shut:") || one.starts_with("half:")),
            "{shown:?}"
        );
        assert_eq!(prompts(&era, &server).await, ["hello", "wave"]);
        assert_eq!(prompt(&era, &server, "wave").await, "half has wave");
        let launch = ask(&era, &server, "prompts/get", json!({ "name": "launch" })).await;
        assert!(
            launch["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("no prompt is called"),
            "{launch}"
        );
        for of in [
            completion("ref/prompt", "name", "launch"),
            completion("ref/resource", "uri", "shut://{x}"),
        ] {
            let refused = ask(&era, &server, "completion/complete", of).await;
            assert_eq!(
                refused["error"]["message"],
                "`ref` names an unknown prompt or resource"
            );
        }
        let missing = if matches!(era, Era::Stateless) {
            -32602
        } else {
            -32002
        };
        for uri in ["shut://secret", "half://secret"] {
            assert_eq!(read(&era, &server, uri).await, missing);
            if matches!(era, Era::Session(_)) {
                let refused =
                    ask(&era, &server, "resources/subscribe", json!({ "uri": uri })).await;
                assert_eq!(refused["error"]["code"], missing, "{refused}");
            }
        }
    }
}

#[tokio::test]
async fn no_server_stands_in_for_another() {
    let one = server(
        "one",
        offers(
            &["both://a", "toolpost://x"],
            &["{+any}", "toolpost://{x}"],
            &["deploy", "plain"],
        ),
    );
    let two = server(
        "two",
        offers(
            &["both://a", "two://a"],
            &["two://x/{y}"],
            &["deploy", "one__deploy"],
        ),
    );
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| builder.source(one).source(two))
        .await;
    for era in both(&server).await {
        assert_eq!(resources(&era, &server).await, ["both://a", "two://a"]);
        assert_eq!(read(&era, &server, "both://a").await, "one has both://a");
        assert_eq!(read(&era, &server, "two://a").await, "two has two://a");
        assert_eq!(
            read(&era, &server, "two://x/1").await,
            "two has two://x/1",
            "the other takes anything"
        );
        let missing = if matches!(era, Era::Stateless) {
            -32602
        } else {
            -32002
        };
        for uri in ["toolpost://x", "toolpost://y", "other://z"] {
            assert_eq!(read(&era, &server, uri).await, missing, "{uri}");
        }
        let shown = templates(&era, &server).await;
        assert_eq!(
            shown,
            [
                "toolpost://artifacts/{id}{?offset,length}",
                "two://x/{y}",
                "{+any}"
            ]
        );
        assert_eq!(
            prompts(&era, &server).await,
            ["one__deploy", "plain", "two__deploy", "two__one__deploy"]
        );
        for (shown, answer) in [
            ("plain", "one has plain"),
            ("one__deploy", "one has deploy"),
            ("two__deploy", "two has deploy"),
            ("two__one__deploy", "two has one__deploy"),
        ] {
            assert_eq!(prompt(&era, &server, shown).await, answer);
            let completed = ask(
                &era,
                &server,
                "completion/complete",
                completion("ref/prompt", "name", shown),
            )
            .await;
            assert_eq!(
                completed["result"]["completion"]["values"][0], answer,
                "{completed}"
            );
        }
        assert_eq!(prompt(&era, &server, "deploy").await, -32602);
    }
}
