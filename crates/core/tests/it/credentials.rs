//! References to credentials: everybody sees the reference, and the tool alone what it stands for.

use serde_json::{Value, json};
use toolpost_core::{CredentialGrant, HostBuilder, KnownSecrets};
use toolpost_model::{
    AccessKind, ArgumentKind, ArgumentMeaning, EffectClass, ErrorClass, Outcome, PermissionMode,
    Secret,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, TestHost};

const VALUE: &str = "the-value-of-the-credential";

fn deploy() -> MockNativeTool {
    MockNativeTool::named("demo.deploy")
        .class(EffectClass::Write)
        .output(format!("deployed with {VALUE}").as_str())
        .schema(json!({
            "type": "object",
            "properties": {
                "key": { "type": "string", "x-sensitive": true },
                "path": { "type": "string" },
                "more": { "type": "array", "items": { "type": "object" } }
            },
            "required": ["key"]
        }))
        .declare(|declaration| {
            declaration
                .interface
                .permission
                .arguments
                .push(ArgumentMeaning::of("path", ArgumentKind::Url));
        })
}

fn granted(builder: HostBuilder, tools: &[&str]) -> HostBuilder {
    let tools = tools.iter().map(|tool| tool.parse().unwrap()).collect();
    let grant = CredentialGrant {
        name: "prod".to_owned(),
        value: Secret::new(VALUE),
        tools,
    };
    builder
        .credentials(vec![grant])
        .redactor(KnownSecrets::new([("credential_prod", VALUE)]))
}

fn with_reference() -> Value {
    json!({ "key": { "$cred": "prod" }, "more": [{ "deep": { "$cred": "prod" } }] })
}

#[tokio::test]
async fn the_tool_gets_the_value_and_everybody_else_the_reference() {
    let tool = deploy();
    let host = TestHost::build(|b| granted(b, &["demo.deploy"]).tool(tool.clone())).await;
    let (events, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("deploy", with_reference());
    request.delivery.listener = Some(std::sync::Arc::new(events));
    let answer = host.host.call(request).await;
    assert_eq!(
        tool.inputs(),
        [json!({ "key": VALUE, "more": [{ "deep": VALUE }] })]
    );
    assert_eq!(
        answer.result().model_text(),
        "deployed with [redacted:credential_prod]"
    );
    assert_eq!(answer.result().redactions.0["credential_prod"], 1);
    let mut everything = answer.json().to_owned();
    for row in host.records().await {
        everything.push_str(&row.record.body);
    }
    for event in recorder.all().await {
        everything.push_str(&serde_json::to_string(&event).unwrap());
    }
    assert!(!everything.contains(VALUE), "{everything}");
    assert!(
        everything.contains(r#""key":{"$cred":"prod"}"#),
        "{everything}"
    );
}

#[tokio::test]
async fn rules_see_the_reference() {
    let tool = deploy();
    let rules = ["allow deploy", "deny deploy[/key/$cred = \"prod\"]"];
    let host = TestHost::build(|b| {
        granted(b, &["deploy"])
            .policy(TestHost::policy(PermissionMode::Default, &rules))
            .tool(tool.clone())
    })
    .await;
    assert_eq!(
        host.call("deploy", with_reference()).await.outcome,
        Outcome::Denied
    );
    assert_eq!(
        host.call("deploy", json!({ "key": "my own key" }))
            .await
            .outcome,
        Outcome::Succeeded
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_credential_is_only_for_the_tools_that_are_listed() {
    async fn check(tools: &[&str], arguments: Value, class: ErrorClass, code: &str, setting: &str) {
        let tool = deploy();
        let host = TestHost::build(|b| granted(b, tools).tool(tool.clone())).await;
        let result = host.call("deploy", arguments).await;
        let error = result.error.expect("a refusal");
        assert_eq!((error.class, error.code.as_ref()), (class, code));
        assert!(error.hint.unwrap_or_default().contains(setting));
        assert_eq!(tool.call_count(), 0);
    }
    let denied = ErrorClass::PermissionDenied;
    check(
        &[],
        with_reference(),
        denied,
        "credential_not_granted",
        "network.credentials.prod.tools",
    )
    .await;
    check(
        &["other.*"],
        with_reference(),
        denied,
        "credential_not_granted",
        "network.credentials.prod.tools",
    )
    .await;
    let unknown = json!({ "key": { "$cred": "staging" } });
    let setup = ErrorClass::SetupRequired;
    check(
        &["*"],
        unknown,
        setup,
        "credential_missing",
        "network.credentials.staging",
    )
    .await;
    let as_path = json!({ "key": "mine", "path": { "$cred": "prod" } });
    check(
        &["*"],
        as_path,
        ErrorClass::InvalidArguments,
        "credential_out_of_place",
        "",
    )
    .await;
}

#[tokio::test]
async fn what_only_resembles_a_reference_is_an_argument() {
    let tool = deploy();
    let host = TestHost::build(|b| granted(b, &["*"]).tool(tool.clone())).await;
    let arguments = json!({ "key": "mine", "more": [{ "$cred": "prod", "x": 1 }, { "$cred": 7 }] });
    assert!(!host.call("deploy", arguments.clone()).await.is_error);
    assert_eq!(tool.inputs(), [arguments]);
    let wrong = json!({ "key": { "name": "prod" } });
    assert_eq!(
        host.call("deploy", wrong).await.error_class(),
        Some(ErrorClass::InvalidArguments)
    );
}

#[tokio::test]
async fn a_tool_with_its_own_way_to_credentials_takes_no_references() {
    let tool = deploy().declare(|declaration| {
        declaration
            .interface
            .permission
            .access
            .push(AccessKind::Credential);
    });
    let host = TestHost::build(|b| granted(b, &["*"]).tool(tool.clone())).await;
    let error = host
        .call("deploy", with_reference())
        .await
        .error
        .expect("a refusal");
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::InvalidArguments, "credential_by_name")
    );
    assert_eq!(tool.call_count(), 0);
}
