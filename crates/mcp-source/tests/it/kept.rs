//! Paths that rules keep from callers, and the program of a server that outlives their calls.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_core::{
    Approvals, CallRequest, PermissionFacts, Policy, PolicyEngine, PolicySpec, Session,
};
use toolpost_mcp_source::{McpServer, McpSharing, McpTransport};
use toolpost_model::{
    ApprovalScope, Decision, Declaration, EffectClass, ErrorClass, ModelInput, PermissionMode,
    Principal, ResourceAccess, Rule, RuleOrigin, SandboxProfile, SandboxTier, SurfaceRequest,
    ToolResult, Verdict,
};
use toolpost_testkit::TestHost;

use crate::stage::{Stage, Wanted, until};

const WORD: &str = "the-kept-word";
const KEEPS: [&str; 2] = ["allow fix.*", "deny fs.read(**/.env*)"];

/// A workspace with a file that is kept and one that is not.
fn wanted() -> Wanted {
    let wanted = Wanted::new("files");
    std::fs::write(wanted.folder.path().join(".env"), WORD).unwrap();
    std::fs::write(wanted.folder.path().join("notes.txt"), "plain").unwrap();
    wanted
}

fn policy(lines: &[&str]) -> Policy {
    TestHost::policy(PermissionMode::Default, lines)
}

fn asking() -> Approvals {
    Approvals::Ask {
        timeout: Duration::from_secs(60),
        grant_for: Duration::ZERO,
    }
}

async fn stage(lines: &[&str]) -> Stage {
    wanted()
        .start_in(|builder| builder.policy(policy(lines)).approvals(asking()))
        .await
}

impl Stage {
    fn path(&self, name: &str) -> String {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn request_of(&self, session: &Arc<Session>, tool: &str, name: &str) -> CallRequest {
        let arguments = json!({ "path": self.path(name) });
        CallRequest::new(Arc::clone(session), tool, ModelInput::value(arguments))
    }

    async fn used(&self, session: &Arc<Session>, tool: &str, name: &str) -> ToolResult {
        self.test
            .host
            .call(self.request_of(session, tool, name))
            .await
            .result()
            .clone()
    }

    async fn read(&self, name: &str) -> String {
        self.used(&self.test.session, "fix__read", name)
            .await
            .model_text()
    }

    async fn session(&self, principal: &str) -> Arc<Session> {
        let principal = Principal::agent(principal);
        self.test
            .host
            .open_session(principal, SurfaceRequest::default())
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_cannot_read_or_write_what_rules_keep() {
    let lines = [KEEPS[0], KEEPS[1], "deny fs.write(**/notes.txt)"];
    let stage = stage(&lines).await;
    assert_eq!(stage.read(".env").await, "refused: PermissionError");
    assert_eq!(stage.read("notes.txt").await, "plain");
    let written = stage
        .used(&stage.test.session, "fix__write", "notes.txt")
        .await;
    assert_eq!(written.model_text(), "refused: OSError");
    let written = stage
        .used(&stage.test.session, "fix__write", "other.txt")
        .await;
    assert_eq!(written.model_text(), "7");
    assert_eq!(stage.starts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_is_started_anew_when_other_files_are_kept() {
    let stage = stage(&KEEPS).await;
    assert_eq!(
        (stage.read("notes.txt").await, stage.starts()),
        ("plain".to_owned(), 1)
    );
    std::fs::write(stage.path(".env.local"), WORD).unwrap();
    assert_eq!(
        (stage.read(".env.local").await, stage.starts()),
        ("refused: PermissionError".to_owned(), 2)
    );
    // Another file under the same name has no cover yet, whether it was written anew or moved there.
    std::fs::write(stage.path("next"), WORD).unwrap();
    std::fs::rename(stage.path("next"), stage.path(".env")).unwrap();
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        ("refused: PermissionError".to_owned(), 3)
    );
    std::fs::remove_file(stage.path(".env")).unwrap();
    std::fs::write(stage.path(".env"), WORD).unwrap();
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        ("refused: PermissionError".to_owned(), 4)
    );
    std::fs::write(stage.path(".env"), format!("{WORD} and more")).unwrap();
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        ("refused: PermissionError".to_owned(), 4)
    );
    assert_eq!(
        (stage.read("notes.txt").await, stage.starts()),
        ("plain".to_owned(), 4)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_is_started_anew_when_the_rules_change() {
    let stage = stage(&KEEPS[..1]).await;
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        (WORD.to_owned(), 1)
    );
    stage.test.host.replace_policy(Arc::new(policy(&KEEPS)));
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        ("refused: PermissionError".to_owned(), 2)
    );
    stage
        .test
        .host
        .replace_policy(Arc::new(policy(&KEEPS[..1])));
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        (WORD.to_owned(), 3)
    );
    // Rules that keep nothing that is there change nothing.
    stage.test.host.replace_policy(Arc::new(policy(&[
        "allow fix.*",
        "deny fs.read(**/nothing)",
    ])));
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        (WORD.to_owned(), 3)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_busy_server_ask_and_no_running_call_is_cut() {
    let stage = stage(&KEEPS).await;
    let other = stage.session("other").await;
    let held =
        stage
            .test
            .host
            .call(stage.request_of(&stage.test.session, "fix__hold", "notes.txt"));
    let beside = async {
        until("the call", || {
            std::fs::exists(stage.path("starts.holding")).unwrap()
        })
        .await;
        assert_eq!(
            stage
                .used(&other, "fix__read", "notes.txt")
                .await
                .model_text(),
            "plain"
        );
        std::fs::write(stage.path(".env.local"), WORD).unwrap();
        let refused = {
            let answering = answer(&stage, Verdict::Deny { feedback: None });
            let (result, asked) =
                tokio::join!(stage.used(&other, "fix__read", "notes.txt"), answering);
            for part in ["`fix`", "after the start", "idle"] {
                assert!(asked.contains(part), "{asked}");
            }
            result
        };
        assert_eq!(
            refused.error_class(),
            Some(ErrorClass::ApprovalRejected),
            "{refused:?}"
        );
        let allowed = {
            let scope = ApprovalScope::default();
            let yes = Verdict::Allow {
                scope,
                rule: None,
                valid_for_seconds: None,
                arguments: None,
            };
            tokio::join!(
                stage.used(&other, "fix__read", "notes.txt"),
                answer(&stage, yes)
            )
            .0
        };
        assert_eq!(
            (allowed.model_text(), stage.starts()),
            ("plain".to_owned(), 1)
        );
        std::fs::write(stage.path("starts.go"), "").unwrap();
    };
    let (held, ()) = tokio::join!(held, beside);
    assert_eq!(held.result().model_text(), "plain");
    assert_eq!(
        stage
            .used(&other, "fix__read", ".env.local")
            .await
            .model_text(),
        "refused: PermissionError"
    );
    assert_eq!(stage.starts(), 2);
}

/// The usual rules, with a count of the paths that they were asked about.
struct CountingEngine {
    usual: Policy,
    asked: Arc<AtomicUsize>,
}

impl PolicyEngine for CountingEngine {
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision {
        self.usual.decide(facts)
    }

    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool {
        self.usual.denies_outright(declaration, class)
    }

    fn has_path_rules(&self, principal: &Principal) -> bool {
        self.usual.has_path_rules(principal)
    }

    fn may_use(
        &self,
        path: &Path,
        access: ResourceAccess,
        principal: &Principal,
        at: Timestamp,
    ) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.usual.may_use(path, access, principal, at)
    }

    fn path_rules_hold_until(&self, at: Timestamp) -> Option<Timestamp> {
        self.usual.path_rules_hold_until(at)
    }

    fn kept_places(&self, principal: &Principal) -> Vec<PathBuf> {
        self.usual.kept_places(principal)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_repeated_only_where_a_directory_changed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let engine = CountingEngine {
        usual: policy(&KEEPS),
        asked: Arc::clone(&asked),
    };
    let stage = wanted()
        .start_in(|builder| builder.policy(engine).approvals(asking()))
        .await;
    let names = |path: &str| {
        (0..200)
            .map(|number| stage.path(&format!("{path}/{number}")))
            .collect::<Vec<_>>()
    };
    std::fs::create_dir_all(stage.path("a/b/c")).unwrap();
    names("a/b")
        .iter()
        .chain(&names("a"))
        .for_each(|name| std::fs::write(name, "").unwrap());
    assert_eq!(stage.read("notes.txt").await, "plain");
    let settled = || {
        let age = |name: &str| {
            std::fs::metadata(stage.path(name))
                .unwrap()
                .modified()
                .unwrap()
                .elapsed()
        };
        ["", "a", "a/b", "a/b/c"]
            .iter()
            .all(|name| age(name).is_ok_and(|age| age.as_secs() > 3))
    };
    until("directories that changed long ago", settled).await;
    let count = async |name: &str| {
        let before = asked.load(Ordering::Relaxed);
        let text = stage.read(name).await;
        (text, asked.load(Ordering::Relaxed) - before)
    };
    let (text, first) = count("notes.txt").await;
    assert!(text == "plain" && first > 400, "{text}: {first}");
    let (text, second) = count("notes.txt").await;
    assert!(
        text == "plain" && second < 100,
        "{text}: the tree was searched again ({second} of {first})"
    );
    assert_eq!(stage.starts(), 1);
    std::fs::write(stage.path("a/b/c/.env"), WORD).unwrap();
    assert_eq!(
        (count("a/b/c/.env").await.0, stage.starts()),
        ("refused: PermissionError".to_owned(), 2)
    );
    std::fs::create_dir(stage.path("a/b/c/d")).unwrap();
    std::fs::write(stage.path("a/b/c/d/.env"), WORD).unwrap();
    assert_eq!(
        (count("a/b/c/d/.env").await.0, stage.starts()),
        ("refused: PermissionError".to_owned(), 3)
    );
}

/// Answers the next question; gives why it was asked.
async fn answer(stage: &Stage, verdict: Verdict) -> String {
    let host = &stage.test.host;
    until("a question", || !host.approvals().is_empty()).await;
    let question = host.approvals().remove(0);
    host.decide(question.ask_id, verdict, &Principal::operator("me"))
        .await
        .unwrap();
    serde_json::to_string(&question).unwrap()
}

/// `.env` is kept from one principal only.
fn for_guests() -> Policy {
    let rule = |line| Rule::parse(line, RuleOrigin::Cli, "test").unwrap();
    let keeps = Rule {
        principal: Some("guest*".to_owned()),
        ..rule(KEEPS[1])
    };
    let rules = vec![rule(KEEPS[0]), keeps];
    Policy::compile(PolicySpec {
        rules,
        ..PolicySpec::default()
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_one_session_is_bound_by_the_rules_for_its_principal() {
    let own = |server: &mut McpServer| server.sharing = McpSharing::Session;
    let stage = wanted()
        .set(own)
        .start_in(|builder| builder.policy(for_guests()))
        .await;
    let guest = stage.session("guest-1").await;
    for _ in 0..2 {
        assert_eq!(stage.read(".env").await, WORD);
        assert_eq!(
            stage.used(&guest, "fix__read", ".env").await.model_text(),
            "refused: PermissionError"
        );
    }
    assert_eq!(
        stage.starts(),
        3,
        "one for the list, and one for each session"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_server_is_bound_by_the_rules_for_all_its_callers() {
    let stage = wanted()
        .start_in(|builder| builder.policy(for_guests()))
        .await;
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        (WORD.to_owned(), 1)
    );
    let guest = stage.session("guest-1").await;
    assert_eq!(
        stage.used(&guest, "fix__read", ".env").await.model_text(),
        "refused: PermissionError"
    );
    for _ in 0..2 {
        assert_eq!(
            (stage.read(".env").await, stage.starts()),
            ("refused: PermissionError".to_owned(), 2)
        );
    }
    // Short sessions that come and go do not start it again and again.
    stage.test.host.close_session(&guest).await.unwrap();
    assert_eq!(
        (stage.read(".env").await, stage.starts()),
        ("refused: PermissionError".to_owned(), 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_keep_the_program_from_a_path_its_calls_ask() {
    let unconfined = |server: &mut McpServer| match &mut server.transport {
        McpTransport::Stdio(program) => program.profile = SandboxProfile::None,
        McpTransport::Http { .. } => unreachable!("it is a program"),
    };
    let without_namespaces = Wanted {
        tier: SandboxTier::B,
        ..wanted()
    };
    for wanted in [wanted().set(unconfined), without_namespaces] {
        let stage = wanted
            .start_in(|builder| builder.policy(policy(&KEEPS)))
            .await;
        let refused = stage
            .used(&stage.test.session, "fix__read", "notes.txt")
            .await;
        let told = serde_json::to_string(&refused).unwrap();
        assert_eq!(
            refused.error_class(),
            Some(ErrorClass::PermissionDenied),
            "{told}"
        );
        assert!(
            told.contains("`fix`") && told.contains("keep paths"),
            "{told}"
        );
        let health: Value = serde_json::to_value(stage.health()).unwrap();
        assert!(
            health["message"]
                .as_str()
                .unwrap()
                .contains("every call needs approval"),
            "{health}"
        );
        stage
            .test
            .host
            .replace_policy(Arc::new(policy(&KEEPS[..1])));
        assert_eq!(stage.read(".env").await, WORD);
        assert_eq!(stage.health().message, None);
    }
}

/// A server that sees only some paths of its workspace, which has `docs`, `src` and the files of [`wanted`].
fn reading(only: &[&str]) -> Wanted {
    let wanted = wanted();
    let folder = wanted.folder.path().canonicalize().unwrap();
    for name in ["docs/.env", "docs/guide.md", "src/main.rs"] {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.join(name), name).unwrap();
    }
    let only = only.iter().map(|name| folder.join(name)).collect();
    wanted.set(|server| match &mut server.transport {
        McpTransport::Stdio(program) => {
            program.reads = Some(only);
            // It counts its starts in the workspace, which it does not see now.
            program.args.pop();
        }
        McpTransport::Http { .. } => unreachable!("it is a program"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_sees_only_the_paths_that_it_reads() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let wanted = Wanted {
            tier,
            ..reading(&["docs", "notes.txt"])
        };
        let stage = wanted
            .start_in(|builder| builder.policy(policy(&KEEPS[..1])))
            .await;
        let outside = if tier == SandboxTier::A {
            "FileNotFoundError"
        } else {
            "PermissionError"
        };
        for (name, expected) in [
            ("docs/guide.md", "docs/guide.md".to_owned()),
            ("notes.txt", "plain".to_owned()),
            ("src/main.rs", format!("refused: {outside}")),
            (".env", format!("refused: {outside}")),
        ] {
            assert_eq!(stage.read(name).await, expected, "{name} in tier {tier:?}");
        }
        let written = stage
            .used(&stage.test.session, "fix__write", "docs/new.md")
            .await;
        assert_eq!(
            written.model_text(),
            "7",
            "what it sees it may write as before"
        );
        // What comes later is as little seen.
        std::fs::write(stage.path("later.txt"), "x").unwrap();
        assert_eq!(stage.read("later.txt").await, format!("refused: {outside}"));
    }
    let blind = reading(&[])
        .start_in(|builder| builder.policy(policy(&KEEPS[..1])))
        .await;
    assert_eq!(blind.read("notes.txt").await, "refused: FileNotFoundError");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_bind_what_a_server_reads_too() {
    let stage = reading(&["docs"])
        .start_in(|builder| builder.policy(policy(&KEEPS)))
        .await;
    assert_eq!(stage.read("docs/.env").await, "refused: PermissionError");
    assert_eq!(stage.read("docs/guide.md").await, "docs/guide.md");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_place_of_what_a_server_reads_is_not_followed() {
    let wanted = reading(&["docs"]);
    let folder = wanted.folder.path().to_owned();
    std::fs::rename(folder.join("docs"), folder.join("moved")).unwrap();
    std::os::unix::fs::symlink("src", folder.join("docs")).unwrap();
    let stage = wanted.start().await;
    let health = stage.health();
    assert!(
        health
            .message
            .as_ref()
            .is_some_and(|message| message.contains("docs")),
        "{health:?}"
    );
    let told = stage
        .used(&stage.test.session, "fix__read", "docs/main.rs")
        .await
        .model_text();
    assert!(!told.contains("src/main.rs"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_own_program_is_kept_from_callers_is_not_started() {
    let stage = wanted()
        .start_in(|builder| builder.policy(policy(&["deny fs.read(**/server.py)"])))
        .await;
    let health = stage.health();
    let message = health.message.unwrap_or_default();
    assert!(
        message.contains("server.py") && message.contains("command line"),
        "{message}"
    );
}
