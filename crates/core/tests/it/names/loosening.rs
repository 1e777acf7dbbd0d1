//! A rule or setting that loosens names a tool exactly; one that denies, asks or restricts is generous.

use std::collections::HashMap;

use serde_json::json;
use toolpost_core::CredentialGrant;
use toolpost_model::{
    EffectClass, ErrorClass, Outcome, PermissionMode, Provenance, Secret, ToolPermissionSettings,
    ToolSettings, ToolSurfaceSettings, WireNaming,
};
use toolpost_testkit::TestHost;

use super::{NamedSource, answers, crowd, notices};

#[tokio::test]
async fn an_allow_by_bare_name_means_compiled_in_tools_only() {
    let tools = ["shell.shell", "tool-a.shell", "evil.shell", "good.shell"];
    for (rule, allowed) in [
        ("allow shell", &["shell.shell"][..]),
        ("allow sh*", &["shell.shell"][..]),
        ("allow *", &["shell.shell"][..]),
        ("allow shell.shell", &["shell.shell"][..]),
        ("allow shell.*", &["shell.shell"][..]),
        ("allow evil.shell", &["evil.shell"][..]),
        ("allow evil__shell", &["evil.shell"][..]),
        ("allow evil.*", &["evil.shell"][..]),
        ("allow tool-a.*", &["tool-a.shell"][..]),
        ("allow *.shell", &tools[..]),
        ("allow *.*", &tools[..]),
    ] {
        for naming in [WireNaming::Bare, WireNaming::Namespaced] {
            let policy = TestHost::policy(PermissionMode::NeverAsk, &[rule]);
            let host = TestHost::build(|builder| crowd(builder, naming).policy(policy)).await;
            for tool in tools {
                let runs = answers(&host, tool).await == tool;
                assert_eq!(
                    runs,
                    allowed.contains(&tool),
                    "{rule} on {tool} with {naming:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn denies_and_asks_mean_every_tool_of_a_name() {
    for rule in [
        "deny shell",
        "ask shell",
        "deny sh*",
        "deny *__shell",
        "deny *.shell",
    ] {
        let policy = TestHost::policy(PermissionMode::Bypass, &[rule]);
        let host =
            TestHost::build(|builder| crowd(builder, WireNaming::Namespaced).policy(policy)).await;
        for tool in ["shell.shell", "tool-a.shell", "evil.shell", "good.shell"] {
            assert_ne!(answers(&host, tool).await, tool, "{rule} on {tool}");
        }
        assert_eq!(answers(&host, "evil.echo").await, "evil.echo", "{rule}");
    }
}

#[tokio::test]
async fn settings_under_a_bare_name_only_restrict_an_outside_tool() {
    let vouched = ToolSettings {
        permission: ToolPermissionSettings {
            class: Some(EffectClass::Read),
            approval_required: Some(false),
            ..ToolPermissionSettings::default()
        },
        ..ToolSettings::default()
    };
    let strict = ToolSettings {
        surface: ToolSurfaceSettings {
            enabled: Some(false),
            ..ToolSurfaceSettings::default()
        },
        ..ToolSettings::default()
    };
    let host = |key: &'static str, settings: &ToolSettings| {
        let settings = HashMap::from([(key.to_owned(), settings.clone())]);
        TestHost::build(move |builder| {
            let policy = TestHost::policy(PermissionMode::NeverAsk, &[]);
            crowd(builder, WireNaming::Namespaced)
                .policy(policy)
                .settings(settings)
        })
    };
    // Claimed to be a read, an outside tool is unknown, and mode `never-ask` denies it.
    assert_eq!(
        answers(&host("echo", &vouched).await, "evil.echo").await,
        "Denied"
    );
    assert_eq!(
        answers(&host("evil.echo", &vouched).await, "evil.echo").await,
        "evil.echo"
    );
    assert_eq!(
        answers(&host("evil.echo", &vouched).await, "good.echo").await,
        "Denied"
    );
    let told = notices(&host("echo", &vouched).await);
    let line = "`tools.echo` does not apply to `evil.echo`, `good.echo`: an outside tool must be named by its id\n\
                hint: write `tools.\"evil.echo\"`, `tools.\"good.echo\"`";
    assert!(told.iter().any(|notice| notice == line), "{told:?}");

    let off = host("shell", &strict).await;
    for tool in ["shell.shell", "evil.shell", "tool-a.shell"] {
        let result = off.call(tool, json!({})).await;
        assert_eq!(
            result.error_class(),
            Some(ErrorClass::PolicyBlocked),
            "{tool}"
        );
    }
}

#[tokio::test]
async fn a_credential_goes_to_no_outside_tool_by_its_bare_name() {
    for (pattern, granted) in [
        ("echo", false),
        ("evil__*", true),
        ("evil.echo", true),
        ("*", false),
        ("good.*", false),
    ] {
        let grant = CredentialGrant {
            name: "key".to_owned(),
            value: Secret::new("the-value-of-the-key"),
            tools: vec![pattern.parse().unwrap()],
        };
        for naming in [WireNaming::Bare, WireNaming::Namespaced] {
            let grants = vec![grant.clone()];
            let host = TestHost::build(|builder| crowd(builder, naming).credentials(grants)).await;
            let result = host
                .call("evil.echo", json!({ "key": { "$cred": "key" } }))
                .await;
            assert_eq!(
                result.outcome == Outcome::Succeeded,
                granted,
                "{pattern} with {naming:?}"
            );
        }
    }
}

#[tokio::test]
async fn rules_that_meant_an_outside_tool_by_its_bare_name_are_reported_with_the_line_to_write() {
    let rules = [
        "allow echo",
        "allow shell",
        "allow ec*",
        "deny echo",
        "allow evil.echo",
    ];
    let policy = TestHost::policy(PermissionMode::Default, &rules);
    let host = TestHost::build(|builder| {
        let one = NamedSource::new("one", Provenance::Outside, WireNaming::Bare, &["one.echo"]);
        crowd(builder, WireNaming::Namespaced)
            .source(one)
            .policy(policy)
    })
    .await;
    let told: Vec<String> = notices(&host)
        .into_iter()
        .filter(|line| line.starts_with("the rule"))
        .collect();
    assert_eq!(
        told,
        [
            "the rule `allow echo` (test) does not apply to `evil.echo`, `good.echo`, `one.echo`: an outside tool must be named \
             by its id\nhint: write `allow evil.echo`, `allow good.echo`, `allow one.echo`",
            "the rule `allow ec*` (test) does not apply to `evil.echo`, `good.echo`, `one.echo`: an outside tool must be named \
             by its id\nhint: write `allow evil.ec*`, `allow good.ec*`, `allow one.ec*`",
        ]
    );
}
