//! Commands that only read: decided as reads, and kept to it.

use serde_json::{Value, json};
use toolpost_model::{
    ErrorClass, Outcome, PermissionMode, SandboxProfile, SandboxTier, ToolResult,
};
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

use crate::workshop::{Plan, Workshop, text};

/// A host that allows reads and asks about everything else; nobody is there to be asked.
async fn shop(change: impl FnOnce(&mut Plan)) -> Workshop {
    let shop = Workshop::governed(change, |builder| {
        builder.policy(TestHost::policy(PermissionMode::Default, &[]))
    })
    .await;
    shop.file("a.txt", "b\na\n");
    shop
}

fn ran_as(result: &ToolResult) -> Option<SandboxProfile> {
    result.sandbox.as_ref().map(|applied| applied.requested)
}

#[tokio::test]
async fn what_only_reads_runs_unasked_and_can_do_nothing_else() {
    let shop = shop(|_| {}).await;
    for command in [
        "ls -la",
        "cat a.txt | sort | head -1",
        "wc -l < a.txt && echo done",
        "stat a.txt 2>&1",
    ] {
        let result = shop.shell(command).await;
        assert_eq!(result.outcome, Outcome::Succeeded, "{command}: {result:#?}");
        assert_eq!(ran_as(&result), Some(SandboxProfile::ReadOnly), "{command}");
        let applied = result.sandbox.unwrap();
        assert_eq!(
            (applied.fs_write, applied.tier),
            (vec!["tmp".to_owned()], SandboxTier::A)
        );
        assert!(applied.net.starts_with("none"), "{}", applied.net);
    }
    assert_eq!(text(&shop.shell("cat a.txt").await), "b\na\n[exit code 0]");
    // Variables that only change what programs print leave it a read.
    let free = json!({ "command": "sort a.txt", "environment": { "LC_ALL": "C", "TZ": "UTC" } });
    let result = shop.call("shell", free).await;
    assert_eq!(
        (text(&result), ran_as(&result)),
        ("a\nb\n[exit code 0]", Some(SandboxProfile::ReadOnly))
    );
}

#[tokio::test]
async fn what_may_do_more_asks() {
    let shop = shop(|_| {}).await;
    let marker = "x.marker";
    for arguments in [
        json!({ "command": format!("touch {marker}") }),
        json!({ "command": format!("cat a.txt > {marker}") }),
        json!({ "command": format!("ls $(touch {marker})") }),
        json!({ "command": "git status" }),
        json!({ "command": "cat a.txt; $SHELL" }),
        json!({ "command": "cat a.txt", "environment": { "GREETING": "hi" } }),
        json!({ "command": "cat a.txt", "environment": { "LANG": "C", "PATH": "." } }),
        json!({ "command": "[[ -f a.txt ]]", "environment": { "HOME": "." } }),
        json!({ "command": format!("sort -o {marker} a.txt") }),
        json!({ "command": "cat a.txt", "background": true }),
    ] {
        let result = shop.call("shell", arguments.clone()).await;
        let error = result
            .error
            .as_ref()
            .unwrap_or_else(|| panic!("{arguments} ran: {result:#?}"));
        assert_eq!(error.code, "no_approver", "{arguments}: {error:?}");
        assert!(result.sandbox.is_none());
    }
    assert!(!shop.path(marker).exists());
}

/// The folder of a variable holds the program that would run in place of the allowed one.
#[tokio::test]
async fn a_rule_for_a_command_does_not_hold_with_a_variable_that_it_does_not_name() {
    let rules = ["allow shell(make x)", "allow shell(PATH=/bin:/usr/bin env)"];
    let policy = TestHost::policy(PermissionMode::Default, &rules);
    let shop = Workshop::governed(|_| {}, |builder| builder.policy(policy)).await;
    shop.file("bin/make", "#!/bin/sh\ntouch marker\n");
    let path = shop.path("bin").display().to_string();
    for arguments in [
        json!({ "command": "make x", "environment": { "PATH": path } }),
        json!({ "command": "make x", "environment": { "HOME": path } }),
        json!({ "command": "env", "environment": { "PATH": path } }),
    ] {
        let error = shop
            .call("shell", arguments.clone())
            .await
            .error
            .expect("nobody was there to be asked");
        assert_eq!(error.code, "no_approver", "{arguments}");
    }
    assert!(!shop.path("marker").exists());
    let named = json!({ "command": "env", "environment": { "PATH": "/bin:/usr/bin" } });
    assert_eq!(shop.call("shell", named).await.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn what_is_allowed_to_do_more_runs_under_the_usual_profile() {
    let shop = Workshop::new().await;
    let result = shop.shell("touch made && ls").await;
    assert_eq!(
        (text(&result), ran_as(&result)),
        ("made\n[exit code 0]", Some(SandboxProfile::WorkspaceWrite))
    );
    let reading = shop.shell("ls").await;
    assert_eq!(ran_as(&reading), Some(SandboxProfile::ReadOnly));
}

#[tokio::test]
async fn nothing_passes_for_a_read_where_nothing_keeps_it_to_that() {
    let free = shop(|plan| plan.children.profile = SandboxProfile::None).await;
    let unconfined = shop(|plan| plan.launcher = Some(Launcher::new("/bin/true".into()))).await;
    for shop in [&free, &unconfined] {
        let result = shop.shell("ls").await;
        let error = result.error.expect("nobody was there to be asked");
        assert_eq!(error.code, "no_approver");
    }
}

#[tokio::test]
async fn a_mode_that_only_looks_still_has_a_shell_to_look_with() {
    let shop = Workshop::governed(
        |_| {},
        |builder| builder.policy(TestHost::policy(PermissionMode::Plan, &[])),
    )
    .await;
    shop.file("a.txt", "seen\n");
    let looked: Value = serde_json::to_value(shop.shell("cat a.txt").await).unwrap();
    assert_eq!(looked["outcome"], "succeeded", "{looked:#}");
    let denied = shop.shell("rm a.txt").await;
    assert_eq!(denied.error.unwrap().class, ErrorClass::PermissionDenied);
    assert!(shop.path("a.txt").exists());
}
