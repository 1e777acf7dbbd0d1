//! Protected names that a command makes where there were none.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolpost_model::{Outcome, PermissionMode, SandboxProfile, SandboxTier, ToolResult};
use toolpost_native::CommandDeclaration;
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

use crate::workshop::{Workshop, program, text};

fn created(result: &ToolResult) -> Vec<String> {
    result
        .sandbox
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", result.error))
        .protected_created
        .clone()
}

/// All names in the workspace, at the top.
fn names(shop: &Workshop) -> Vec<String> {
    let entries = std::fs::read_dir(shop.path("")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_protected_name_that_a_command_makes_is_told_on_every_tier() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let launcher = Launcher::with_tier_at_most(program(), tier);
        let shop = Workshop::planned(|plan| plan.launcher = Some(launcher)).await;
        let result = shop
            .shell("echo 'touch /tmp/x' > .envrc; mkdir -p .github/workflows; echo x > me.code-workspace")
            .await;
        assert_eq!(result.outcome, Outcome::Succeeded, "{:?}", result.error);
        let mut told = created(&result);
        told.sort();
        let expected = [".envrc", ".github/workflows", "me.code-workspace"]
            .map(|name| shop.path(name).display().to_string());
        assert_eq!(told, expected, "{tier:?}");
        let line = text(&result)
            .lines()
            .find(|line| line.contains(".envrc"))
            .unwrap()
            .to_owned();
        assert!(
            line.contains("was created while this ran")
                && line.contains("is protected: a shell runs it"),
            "{line}"
        );
        // The next command did not make it.
        assert_eq!(
            created(&shop.shell("echo x > plain").await),
            Vec::<String>::new()
        );
        // Nothing is left behind but what the command made.
        assert_eq!(
            names(&shop),
            [".envrc", ".github", "me.code-workspace", "plain"]
        );
    }
}

#[tokio::test]
async fn a_root_that_becomes_a_repository_is_told() {
    let shop = Workshop::new().await;
    let result = shop
        .shell("mkdir objects refs; echo 'ref: refs/heads/x' > HEAD")
        .await;
    assert!(
        created(&result).contains(&shop.path("HEAD").display().to_string()),
        "{result:#?}"
    );
    let next = shop.shell("echo x > HEAD").await;
    assert_ne!(next.exit_code, Some(0), "{next:#?}");
}

#[tokio::test]
async fn git_works_beneath_the_top_and_leaves_no_trace_there() {
    let shop = Workshop::new().await;
    let script = "export GIT_CONFIG_GLOBAL=/dev/null
        git init -q one && cd one && git -c user.name=n -c user.email=e commit -qm first --allow-empty && cd .. &&
        git clone -q one two && git -C two log --format=%s && git clone -q --bare one three.git";
    let result = shop.shell(script).await;
    assert_eq!(result.exit_code, Some(0), "{}", text(&result));
    assert!(text(&result).starts_with("first"), "{}", text(&result));
    assert_eq!(created(&result), Vec::<String>::new());
    assert_eq!(names(&shop), ["one", "three.git", "two"]);
    let top = shop.shell("git init -q .").await;
    assert_eq!(created(&top), [shop.path(".git").display().to_string()]);
}

#[tokio::test]
async fn declared_commands_and_commands_in_the_background_tell_it_too() {
    let argv = ["bash", "-c", "touch .npmrc; echo done"]
        .map(str::to_owned)
        .to_vec();
    let declared = CommandDeclaration::new("try", "Tries something", argv);
    let shop = Workshop::planned(|plan| plan.commands = vec![declared]).await;
    let result = shop.call("try", json!({})).await;
    assert_eq!(
        created(&result),
        [shop.path(".npmrc").display().to_string()],
        "{result:#?}"
    );
    assert!(
        text(&result).starts_with("done") && text(&result).contains("was created while this ran"),
        "{}",
        text(&result)
    );
    let session = shop.session().await;
    let background =
        json!({ "command": "touch .envrc; echo made; exec sleep 600", "background": true });
    let started = shop.call_in(&session, "shell", background).await;
    let id = started.structured_content.as_ref().unwrap()["process_id"].clone();
    let read = json!({ "process_id": id, "wait_seconds": 60 });
    shop.call_in(&session, "process_read", read).await;
    let status = shop
        .call_in(&session, "process_status", json!({ "process_id": id }))
        .await;
    let facts: &Value = &status.structured_content.as_ref().unwrap()["processes"][0];
    assert_eq!(
        facts["protected_created"],
        json!([shop.path(".envrc")]),
        "{status:#?}"
    );
    assert!(
        text(&status).contains("was created while this ran"),
        "{}",
        text(&status)
    );
}

#[tokio::test]
async fn files_that_steer_agents_are_closed_to_commands_unless_a_rule_opens_them() {
    let shop = |rules: &'static [&'static str], mode: PermissionMode| {
        Workshop::governed(
            |plan| std::fs::write(plan.workspace.join("AGENTS.md"), "old").unwrap(),
            move |builder| builder.policy(TestHost::policy(mode, rules)),
        )
    };
    let mut seen = BTreeMap::new();
    for (number, (rules, mode)) in [
        (&["allow shell"][..], PermissionMode::Default),
        (
            &["allow shell", "allow fs.write(ws:**)"][..],
            PermissionMode::Default,
        ),
        (
            &["allow shell", "allow fs.write(AGENTS.md)"][..],
            PermissionMode::Default,
        ),
        (&[][..], PermissionMode::Bypass),
    ]
    .into_iter()
    .enumerate()
    {
        let shop = shop(rules, mode).await;
        let result = shop.shell("echo new > AGENTS.md").await;
        assert_eq!(result.outcome, Outcome::Succeeded, "{:?}", result.error);
        seen.insert(
            number,
            std::fs::read_to_string(shop.path("AGENTS.md")).unwrap() == "new\n",
        );
    }
    assert_eq!(
        seen,
        BTreeMap::from([(0, false), (1, false), (2, true), (3, true)])
    );
}

#[tokio::test]
async fn a_command_that_only_reads_is_not_looked_after() {
    let shop = Workshop::planned(|plan| plan.children.profile = SandboxProfile::ReadOnly).await;
    let result = shop.shell("touch .envrc").await;
    assert_eq!((created(&result), names(&shop)), (Vec::new(), Vec::new()));
}
