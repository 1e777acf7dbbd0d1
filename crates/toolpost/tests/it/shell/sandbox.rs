//! What the sandbox refuses, and what happens where there is none.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolpost_model::{
    ErrorClass, Outcome, PermissionMode, SandboxProfile, SandboxTier, ToolExecutionSettings,
    ToolSettings,
};
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

use crate::workshop::{Plan, Workshop, facts, program, text};

#[tokio::test]
async fn a_refusal_of_the_sandbox_is_guessed_with_its_path() {
    let shop = Workshop::planned(|plan| {
        std::fs::create_dir(plan.workspace.join(".git")).unwrap();
    })
    .await;
    let check = async |command: &str, kind: &str, path: Value, setting: &str| {
        let result = shop.shell(command).await;
        assert_eq!(result.outcome, Outcome::Succeeded);
        let refusal = &facts(&result)["sandbox_refusal"];
        assert_eq!(
            (&refusal["kind"], &refusal["path"]),
            (&json!(kind), &path),
            "{command}: {result:#?}"
        );
        assert_eq!(refusal["setting"], setting, "{command}");
        let last = text(&result).lines().last().unwrap();
        assert!(
            last.contains("looks like") && last.contains(setting),
            "{command}: {last}"
        );
    };
    check("touch /etc/x", "outside_path", json!("/etc/x"), "roots").await;
    check("echo x > /usr/x", "outside_path", json!("/usr/x"), "roots").await;
    check(
        "touch .git/x",
        "protected_path",
        json!(shop.path(".git/x")),
        "protect: {git: false}",
    )
    .await;
    check(
        "exec 3<>/dev/tcp/192.0.2.1/9",
        "network",
        Value::Null,
        "sandbox.profile: network",
    )
    .await;
    check(
        "exec 3<>/dev/tcp/127.0.0.1/9",
        "network",
        Value::Null,
        "sandbox.profile: network",
    )
    .await;
    let ordinary = shop.shell("touch x; chmod 0 x; ./x").await;
    assert!(
        facts(&ordinary).get("sandbox_refusal").is_none(),
        "{ordinary:#?}"
    );
}

#[tokio::test]
async fn the_profile_is_the_operator_s() {
    let shop = Workshop::planned(|plan| plan.children.profile = SandboxProfile::ReadOnly).await;
    let result = shop.shell("touch x").await;
    assert_eq!(
        facts(&result)["sandbox_refusal"]["kind"],
        "read_only_path",
        "{result:#?}"
    );
    assert_eq!(result.sandbox.unwrap().requested, SandboxProfile::ReadOnly);
    assert!(!shop.path("x").exists());
    assert_eq!(
        text(&shop.shell("echo x > /tmp/x && cat /tmp/x").await),
        "x\n[exit code 0]"
    );
}

#[tokio::test]
async fn a_tool_can_be_given_a_stricter_profile_and_no_wider_one() {
    let set = |profile| {
        let settings = ToolSettings {
            execution: ToolExecutionSettings {
                sandbox: Some(profile),
                ..ToolExecutionSettings::default()
            },
            ..ToolSettings::default()
        };
        HashMap::from([("shell".to_owned(), settings)])
    };
    for (usual, given, expected) in [
        (
            SandboxProfile::WorkspaceWrite,
            SandboxProfile::ReadOnly,
            SandboxProfile::ReadOnly,
        ),
        (
            SandboxProfile::WorkspaceWrite,
            SandboxProfile::Network,
            SandboxProfile::WorkspaceWrite,
        ),
        (
            SandboxProfile::ReadOnly,
            SandboxProfile::None,
            SandboxProfile::ReadOnly,
        ),
        (
            SandboxProfile::None,
            SandboxProfile::ReadOnly,
            SandboxProfile::ReadOnly,
        ),
    ] {
        let change = |plan: &mut Plan| plan.children.profile = usual;
        let shop = Workshop::governed(change, |builder| builder.settings(set(given))).await;
        let result = shop.shell("touch x").await;
        let applied = result
            .sandbox
            .unwrap_or_else(|| panic!("{:?}", result.error));
        assert_eq!(applied.requested, expected, "{usual} {given}");
        assert_eq!(
            shop.path("x").exists(),
            expected != SandboxProfile::ReadOnly
        );
        let background = json!({ "command": "touch y", "background": true });
        let result = shop.call("shell", background).await;
        assert_eq!(
            result.sandbox.unwrap().requested,
            expected,
            "{usual} {given} in the background"
        );
    }
}

fn unconfined() -> Option<Launcher> {
    Some(Launcher::with_tier_at_most(program(), SandboxTier::N))
}

#[tokio::test]
async fn without_a_sandbox_a_person_is_asked_whatever_is_allowed() {
    let allow = |builder: toolpost_core::HostBuilder| {
        builder.policy(TestHost::policy(
            PermissionMode::Default,
            &["allow class:execute"],
        ))
    };
    let confined = Workshop::governed(|_| {}, allow).await;
    assert_eq!(confined.shell("true").await.outcome, Outcome::Succeeded);
    let open = Workshop::governed(|plan| plan.launcher = unconfined(), allow).await;
    let result = open.shell("touch x").await;
    let error = result.error.unwrap();
    assert_eq!(
        (result.outcome, error.code.as_ref()),
        (Outcome::Denied, "no_approver")
    );
    assert!(error.message.contains("unconfined"), "{}", error.message);
    assert!(!open.path("x").exists());
}

#[tokio::test]
async fn a_question_tells_the_confinement_that_is_really_in_force() {
    for tier in [
        SandboxTier::A,
        SandboxTier::B,
        SandboxTier::C,
        SandboxTier::N,
    ] {
        let launcher = Launcher::with_tier_at_most(program(), tier);
        let given = launcher.tier();
        let asks = |builder: toolpost_core::HostBuilder| {
            builder
                .policy(TestHost::policy(PermissionMode::Default, &[]))
                .approvals(toolpost_core::Approvals::ASK)
        };
        let shop = Workshop::governed(|plan| plan.launcher = Some(launcher), asks).await;
        let call = shop
            .host
            .host
            .start(shop.host.request("shell", json!({ "command": "touch x" })))
            .await;
        let mut changes = shop.host.host.approval_changes();
        while shop.host.host.approvals().is_empty() {
            changes.changed().await.unwrap();
        }
        let question = shop.host.host.approvals().remove(0);
        let plan = question.sandbox.unwrap();
        assert_eq!((plan.tier, plan.network), (given, given == SandboxTier::N));
        let by = toolpost_model::Principal::operator("ann");
        let yes = serde_json::from_value(json!({ "decision": "allow" })).unwrap();
        shop.host
            .host
            .decide(question.ask_id, yes, &by)
            .await
            .unwrap();
        let result = call.answer().await.result().clone();
        let applied = result
            .sandbox
            .unwrap_or_else(|| panic!("{:?}", result.error));
        if given == SandboxTier::N {
            assert_eq!(plan.missing, ["nothing confines the command"]);
            continue;
        }
        for missing in &applied.missing {
            assert!(
                plan.missing.contains(missing),
                "{tier:?}: `{missing}` is not among {:?}",
                plan.missing
            );
        }
    }
}

#[tokio::test]
async fn a_required_sandbox_that_is_not_there_refuses() {
    let shop = Workshop::planned(|plan| {
        plan.launcher = unconfined();
        plan.children.required = true;
    })
    .await;
    let error = shop.shell("touch x").await.error.unwrap();
    assert_eq!(error.class, ErrorClass::SetupRequired);
    assert!(
        error.message.contains("`sandbox.require`"),
        "{}",
        error.message
    );
    let shop = Workshop::planned(|plan| plan.launcher = None).await;
    let error = shop.shell("touch x").await.error.unwrap();
    assert_eq!(error.class, ErrorClass::SetupRequired);
    assert!(error.message.contains("launcher"), "{}", error.message);
}
