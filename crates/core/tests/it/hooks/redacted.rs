//! Hooks and what they may not see.

use serde_json::{Value, json};
use toolpost_core::{
    Hook, HookCall, HookError, HookOutput, HookScope, KnownSecrets, PathBaseFolders,
};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, BoxFuture, EffectClass, ErrorClass, HookEvent, HookStanding,
    Outcome,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, TestHost};

use super::Probe;

const PIN: &str = "sentinel-argument-98765";
const TOKEN: &str = "tp_sentinel_host_0123456789";

fn login() -> MockNativeTool {
    MockNativeTool::named("demo.login")
        .schema(json!({ "type": "object", "properties": {
            "pin": { "type": "string", "x-sensitive": true }, "note": { "type": "string" } } }))
        .output("welcome")
}

async fn call(tool: &MockNativeTool, probe: Probe) -> (toolpost_model::ToolResult, String) {
    let secrets = KnownSecrets::new([("token", TOKEN)]);
    let host = TestHost::build(|b| b.tool(tool.clone()).hook(probe).redactor(secrets)).await;
    let (events, recorder) = CallEventRecorder::new(64);
    let arguments = json!({ "pin": PIN, "note": format!("use {TOKEN}"), "n": 1 });
    let mut request = host.request("login", arguments);
    request.delivery.listener = Some(std::sync::Arc::new(events));
    let answer = host.host.call(request).await;
    let mut everything = answer.json().to_owned();
    for event in recorder.all().await {
        everything.push_str(&serde_json::to_string(&event).unwrap());
    }
    for row in host.records().await {
        everything.push_str(&row.record.body);
    }
    (answer.result().clone(), everything)
}

#[tokio::test]
async fn hooks_see_marks_and_values_they_leave_alone_reach_the_tool() {
    let tool = login();
    let probe = Probe::asking(HookEvent::Before, |call, _| {
        let mut arguments: Value = call.input.arguments().value().clone();
        assert_eq!(
            arguments,
            json!({ "pin": "[redacted:argument]", "note": "use [redacted:token]", "n": 1 })
        );
        arguments["n"] = json!(2);
        Box::pin(std::future::ready(Ok(HookOutput::rewrite(
            arguments, "two",
        ))))
    });
    let (result, everything) = call(&tool, probe).await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    assert_eq!(
        tool.inputs(),
        [json!({ "pin": PIN, "note": format!("use {TOKEN}"), "n": 2 })]
    );
    assert!(
        everything.contains(r#""changed_fields":["n"]"#),
        "{everything}"
    );
    assert!(!everything.contains(PIN) && !everything.contains(TOKEN));
}

#[tokio::test]
async fn a_mark_never_becomes_an_argument() {
    for (field, text) in [
        ("note", "also use [redacted:token]"),
        ("note", "[redacted:argument]"),
        ("m", "[redacted:token]"),
    ] {
        let tool = login();
        let probe = Probe::asking(HookEvent::Before, move |call, _| {
            let mut arguments = call.input.arguments().value().clone();
            arguments[field] = json!(text);
            Box::pin(std::future::ready(Ok(HookOutput::rewrite(arguments, ""))))
        });
        let (result, _) = call(&tool, probe.standing(HookStanding::Guard)).await;
        let error = result.error.unwrap();
        assert_eq!(
            (error.class, tool.call_count()),
            (ErrorClass::HookFailed, 0),
            "{field}: {text}"
        );
        assert!(
            error
                .message
                .contains("which replaces a value that is hidden from hooks"),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn what_a_hook_says_is_redacted_like_everything_else() {
    let told = || {
        let text = format!("{PIN} and {TOKEN}");
        HookOutput {
            reason: Some(text.clone()),
            ..HookOutput::proceed()
                .with_context(&text)
                .with_message(&text)
        }
    };
    for event in [HookEvent::Before, HookEvent::After] {
        for stop in [false, true] {
            let output = HookOutput {
                stop: stop.then(|| format!("{PIN} {TOKEN}")),
                ..told()
            };
            let (_, everything) =
                call(&login(), Probe::at(event, move || Ok(output.clone()))).await;
            assert!(
                !everything.contains(PIN) && !everything.contains(TOKEN),
                "{event:?} {everything}"
            );
        }
    }
    let change = || {
        Ok(HookOutput::replace(format!("{PIN} {TOKEN}"), PIN)
            .with_structured(json!({ TOKEN: PIN })))
    };
    let (_, everything) = call(&login(), Probe::at(HookEvent::After, change)).await;
    assert!(
        !everything.contains(PIN) && !everything.contains(TOKEN),
        "{everything}"
    );
}

struct OnPin(HookScope);

impl Hook for OnPin {
    fn name(&self) -> &str {
        "on-pin"
    }
    fn concerns(&self, call: &HookCall<'_>) -> bool {
        self.0.fits(call)
    }
    fn before<'a>(&'a self, _: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(std::future::ready(Ok(HookOutput::stop("that one"))))
    }
}

#[tokio::test]
async fn a_hook_is_chosen_by_tool_and_by_what_the_tool_would_really_get() {
    for (tools, when, concerned) in [
        (vec![], None, true),
        (vec!["login"], None, true),
        (vec!["files.*", "demo.*"], None, true),
        (vec!["logout"], None, false),
        (vec![], Some("login[/n = 1]"), true),
        (vec![], Some("login[/n = 1, /n > 1]"), false),
        (vec!["logout"], Some("login"), false),
        (vec!["login"], Some("*[/pin = \"sentinel-*\"]"), true),
        (vec![], Some("login[/pin = \"[redacted:argument]\"]"), false),
    ] {
        let patterns = tools.iter().map(|tool| tool.parse().unwrap()).collect();
        let mut concern = HookScope::with_tools(patterns);
        if let Some(when) = when {
            concern = concern
                .when(when.parse().unwrap(), PathBaseFolders::default())
                .unwrap();
        }
        let host = TestHost::build(|b| b.tool(login()).hook(OnPin(concern))).await;
        let result = host.call("login", json!({ "pin": PIN, "n": 1 })).await;
        assert_eq!(
            result.error_class().is_some(),
            concerned,
            "{tools:?} {when:?}"
        );
    }
    let error = HookScope::default()
        .when("net(ftp://)".parse().unwrap(), PathBaseFolders::default())
        .unwrap_err();
    assert!(error.to_string().contains("net(ftp://)"), "{error}");
}

#[tokio::test]
async fn a_selector_is_read_as_in_a_rule_that_denies() {
    let shell = MockNativeTool::named("demo.shell")
        .class(EffectClass::Execute)
        .declare(|d| {
            d.interface.permission.arguments =
                vec![ArgumentMeaning::of("command", ArgumentKind::Command)];
            d.interface.permission.approval_required = true;
        });
    let places = PathBaseFolders {
        workspace: Some("/w".into()),
        ..PathBaseFolders::default()
    };
    for (when, command, concerned) in [
        ("shell(git push *)", "git push origin main", true),
        ("shell(git push *)", "cd x && git -C y push --force", true),
        ("shell(git push *)", "git pull", false),
        ("shell(git push *)", "echo git push", false),
        ("shell(git push *)", "$(printf 'git push')", true),
        ("fs.write(src/**)", "echo x > src/a.rs", true),
        ("fs.write(src/**)", "echo x > docs/a.md", false),
        ("class:execute", "true", true),
        ("class:network", "true", false),
    ] {
        let concern = HookScope::default()
            .when(when.parse().unwrap(), places.clone())
            .unwrap();
        let hook = OnPin(concern);
        let host = TestHost::build(|b| b.tool(shell.clone()).hook(hook)).await;
        let result = host.call("shell", json!({ "command": command })).await;
        let asked = result.error_class() == Some(ErrorClass::HookBlocked);
        assert_eq!(asked, concerned, "{when} on {command}: {:?}", result.error);
    }
}
