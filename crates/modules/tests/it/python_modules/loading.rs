//! Modules that cannot be had: named, with the reason, and the others serve.

use std::time::Duration;

use serde_json::{Map, json};
use toolpost_amplifier::{LoadReason, ModuleId, ModuleKind, PlannedModule};
use toolpost_core::CallRequest;
use toolpost_model::{
    ErrorClass, HookStanding, ModelInput, Outcome, SandboxTier, Source, SourceFeed, SourceNotice,
};
use toolpost_modules::{BridgedModule, CoreWish, ProcessIsolation, PythonModules, PythonPackage};

use super::stage::{BOTH, Core, Stage, Wanted, folder_of, logged, module, module_at};

const SYNC: &str = "`amplifier_module_tool_sync.mount` is not `async def`";

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_returns_nothing_and_brings_nothing_has_declined() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-nothing", "tool-desk"]).await;
        assert_eq!(stage.modules.failures(), []);
        let problems = stage.modules.source().problems();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}")
        };
        assert!(
            problem.is_declined() && problem.part == "tool-nothing",
            "{problem}"
        );
        let unknown = stage
            .call("nothing_of_the_kind", json!({}))
            .await
            .error
            .unwrap();
        let hint = unknown.hint.unwrap_or_default();
        assert!(
            hint.contains("`tool-nothing` declined to bring tools"),
            "{hint}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_a_module_writes_while_it_is_imported_are_logged() {
    for core in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let modules = PythonModules::start(Wanted::new(core, &["tool-loud"]).parts(&folder)).await;
        assert_eq!(modules.failures(), []);
        let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
        // The host connects only when everything is loaded.
        modules.source().connect(SourceFeed::new(move |notice| {
            let _ = sender.send(notice);
        }));
        let mut missing = vec![
            "printed at import",
            "complained at import",
            "logged at import",
        ];
        while !missing.is_empty() {
            let next = tokio::time::timeout(Duration::from_secs(20), lines.recv()).await;
            let Ok(Some(notice)) = next else {
                panic!("{core:?}: nothing was told of {missing:?}")
            };
            if let SourceNotice::Log(line) = notice {
                missing.retain(|words| !line.contains(words));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_module_that_needs_amplifiers_application_is_declined_with_the_reason() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-delegating", "tool-desk"]).await;
        assert_eq!(stage.modules.failures(), []);
        let problems = stage.modules.source().problems();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}")
        };
        assert!(
            problem.is_declined() && problem.part == "tool-delegating",
            "{problem}"
        );
        assert!(
            problem
                .message
                .starts_with("it needs `amplifier_foundation`"),
            "{problem}"
        );
        assert!(
            problem.message.contains("lists it under `dependencies`"),
            "{problem}"
        );
        assert_eq!(
            stage.call("count_mounts", json!({})).await.outcome,
            Outcome::Succeeded
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_needs_amplifiers_application_is_a_guard_that_is_not_there() {
    let stage = Stage::new(Core::StandIn, &["hooks-delegating", "tool-desk"]).await;
    let error = stage.call("count_mounts", json!({})).await.error.unwrap();
    assert_eq!(error.class, ErrorClass::HookBlocked);
    assert!(
        error.message.contains("it needs `amplifier_foundation`"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_declines_stops_calls_only_where_the_operator_names_it_as_a_guard() {
    for (standing, succeeds) in [(None, true), (Some(HookStanding::Guard), false)] {
        let wanted = Wanted::new(Core::StandIn, &["tool-desk"]).set(|wanted| {
            let nothing = module_at("hooks-nothing", folder_of("tool-nothing"));
            wanted.modules.push(nothing);
            let named = standing.map(|standing| (ModuleId::new("hooks-nothing"), standing));
            wanted.settings.standings.extend(named);
        });
        let stage = wanted.start().await;
        let result = stage.call("count_mounts", json!({})).await;
        assert_eq!(result.outcome.is_success(), succeeds, "{:?}", result.error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_answers_to_its_own_name_too_and_takes_no_name_of_another() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-aliased", "tool-desk"]).await;
        for name in ["mounted_as", "called_itself"] {
            assert_eq!(stage.call(name, json!({})).await.model_text(), "aliased");
        }
        // Another tool is mounted under the second tool's own name, and one of the host has the third's.
        let note = stage
            .call("read_note", json!({ "file_path": "none" }))
            .await;
        assert_eq!(note.error.unwrap().message, "Path not found: none");
        let catalog = stage.test.host.catalog();
        let entries = catalog.entries();
        let aliases = |name: &str| {
            let entry = entries
                .iter()
                .find(|entry| entry.id().name() == name)
                .unwrap();
            entry.declaration().aliases.clone()
        };
        assert_eq!(aliases("mounted_as"), ["called_itself"]);
        assert_eq!(aliases("second"), Vec::<String>::new());
        assert_eq!(aliases("third"), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_the_others_serve() {
    for core in BOTH {
        let names = [
            "tool-desk",
            "tool-sync",
            "tool-raises",
            "tool-unimportable",
            "tool-twice",
            "tool-returned",
        ];
        let wanted = Wanted::new(core, &names).set(|wanted| {
            wanted
                .modules
                .push(module_at("tool-absent", folder_of("no-such-folder")));
        });
        let stage = wanted.start().await;
        let failures = stage.modules.failures();
        let of = |id: &str| {
            let found = failures
                .iter()
                .find(|failure| failure.module.as_str() == id);
            let found = found.unwrap_or_else(|| panic!("{id}: {failures:?}"));
            (found.reason, found.message.clone())
        };
        assert_eq!(
            of("tool-sync"),
            (LoadReason::InvalidEntryPoint, SYNC.to_owned())
        );
        assert_eq!(
            of("tool-raises").1,
            "ValueError: no key configured (at `__init__.py:2`)"
        );
        assert!(
            of("tool-unimportable")
                .1
                .contains("a_package_that_is_not_there'; list its package under `dependencies`")
        );
        assert_eq!(of("tool-absent").0, LoadReason::MissingSource);
        assert_eq!(failures.len(), 4, "{failures:?}");
        let problems: Vec<String> = stage
            .modules
            .source()
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        let words = "any object is accepted";
        assert!(
            problems.iter().any(|line| line.contains(words)),
            "{problems:?}"
        );
        // A tool that was returned and not mounted is there; so is one with a schema that means nothing.
        let got = stage
            .call("plain", json!({ "a": 1 }))
            .await
            .structured_content
            .unwrap();
        assert_eq!(got, json!({ "got": { "a": 1 } }));
        assert_eq!(
            stage
                .call("odd_schema", json!({ "x": 1 }))
                .await
                .model_text(),
            "second odd schema"
        );
        // The first keeps its name.
        let note = stage
            .call("read_note", json!({ "file_path": "none" }))
            .await;
        assert_eq!(note.error.unwrap().message, "Path not found: none");
        let told: Vec<String> = stage
            .test
            .host
            .notices()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            told.iter().any(|notice| notice.contains("tool-raises")),
            "{told:?}"
        );
        let longer = "the name `read_note` belongs to `tool-desk.read_note`";
        assert!(
            told.iter().any(|notice| notice.ends_with(longer)),
            "{told:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_hangs_is_passed_over() {
    let wanted = Wanted::new(Core::StandIn, &["tool-hangs", "tool-desk"])
        .set(|wanted| wanted.settings.mount_limit = Duration::from_millis(500));
    let stage = wanted.start().await;
    let failures = stage.modules.failures();
    assert!(
        failures[0].message.contains("took longer than"),
        "{failures:?}"
    );
    assert_eq!(
        stage.call("count_mounts", json!({})).await.outcome,
        Outcome::Succeeded
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_module_does_not_hold_up_the_next_and_the_plan_decides_all_the_same() {
    let names = ["tool-waits", "tool-follows"];
    for core in BOTH {
        let wanted = Wanted::new(core, &names)
            .set(|wanted| wanted.settings.mount_limit = Duration::from_secs(10));
        let stage = wanted.start().await;
        assert_eq!(stage.modules.failures(), []);
        let listed = stage.modules.source().list().await.unwrap();
        let listed: Vec<String> = listed.iter().map(|tool| tool.tool_id.to_string()).collect();
        let mut found = listed[..4].to_vec();
        found.sort();
        let expected = [
            "tool-follows.follows",
            "tool-follows.wanted_by_both",
            "tool-waits.waits",
            "tool-waits.wanted_by_both",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            stage.call("wanted_by_both", json!({})).await.model_text(),
            "of tool-waits"
        );
        let second = stage.call("tool-follows__wanted_by_both", json!({})).await;
        assert_eq!(second.model_text(), "of tool-follows");
        let problems: Vec<String> = stage
            .modules
            .source()
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_at_work_the_one_that_ends_the_process_is_found() {
    let wanted = Wanted::new(
        Core::StandIn,
        &["tool-waits", "tool-crashes", "tool-follows"],
    )
    .set(|wanted| wanted.settings.mount_limit = Duration::from_secs(3));
    let stage = wanted.start().await;
    let failures = stage.modules.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].module.as_str(), "tool-crashes");
    assert!(failures[0].message.contains("exit code 7"), "{failures:?}");
    for tool in ["waits", "follows"] {
        assert_eq!(
            stage.call(tool, json!({})).await.outcome,
            Outcome::Succeeded
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_hung_once_is_not_tried_again() {
    let wanted = Wanted::new(Core::StandIn, &["tool-hangs", "tool-desk"])
        .set(|wanted| wanted.settings.mount_limit = Duration::from_secs(3));
    let stage = wanted.start().await;
    for who in ["a", "b", "c", "d"] {
        let session = stage.session(who).await;
        let mut request = CallRequest::new(session, "count_mounts", ModelInput::value(json!({})));
        // Less than the module would take.
        request.times.timeout = Some(Duration::from_millis(2500));
        let counted = stage.test.host.call(request).await.result().clone();
        assert_eq!(counted.outcome, Outcome::Succeeded, "{who}: {counted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_ends_the_process_is_named_and_the_others_serve() {
    for isolation in [ProcessIsolation::Shared, ProcessIsolation::Process] {
        let wanted = Wanted::new(Core::StandIn, &["tool-desk", "tool-crashes", "tool-slow"])
            .set(|wanted| wanted.settings.isolation = isolation);
        let stage = wanted.start().await;
        let failures = stage.modules.failures();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].module.as_str(), "tool-crashes");
        assert!(failures[0].message.contains("exit code 7"), "{failures:?}");
        for who in ["a", "b"] {
            let session = stage.session(who).await;
            for tool in ["count_mounts", "slow"] {
                assert_eq!(
                    stage.call_in(&session, tool, json!({})).await.outcome,
                    Outcome::Succeeded
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_is_not_whole_is_not_called_missing() {
    let stage = Stage::new(Core::StandIn, &["tool-large"]).await;
    let problems: Vec<String> = stage
        .modules
        .source()
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("`tool-large` is incomplete: "),
        "{problems:?}"
    );
    assert!(
        problems[0].ends_with("(and 2 more like it)"),
        "{problems:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_core_is_not_replaced_where_it_was_asked_for() {
    let wanted = Wanted::new(Core::StandIn, &["tool-desk"])
        .set(|wanted| wanted.settings.core = CoreWish::Real);
    let stage = wanted.start().await;
    let failures = stage.modules.failures();
    assert!(
        failures[0]
            .message
            .contains("`amplifier_core` cannot be imported"),
        "{failures:?}"
    );
    assert!(stage.tools().is_empty());
    let wanted = Wanted::new(Core::StandIn, &["tool-desk"])
        .set(|wanted| wanted.settings.core = CoreWish::Auto);
    let stage = wanted.start().await;
    assert!(!stage.modules.core().unwrap().real);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_directory_is_as_good_as_its_root() {
    let package = folder_of("tool-desk").join("amplifier_module_tool_desk");
    let single = package.join("__init__.py");
    for root in [package, single] {
        let wanted = Wanted::new(Core::StandIn, &[])
            .set(|wanted| wanted.modules.push(module_at("tool-desk", root)));
        let stage = wanted.start().await;
        let counted = stage.call("count_mounts", json!({})).await;
        assert_eq!(
            counted.outcome,
            Outcome::Succeeded,
            "{:?}",
            stage.modules.failures()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_is_installed_beside_the_environment_is_found() {
    let installed = BridgedModule {
        package: PythonPackage::Installed { name: None },
        planned: PlannedModule {
            source: None,
            ..module("tool-desk").planned
        },
    };
    let wanted = Wanted::new(Core::StandIn, &["tool-slow"]).set(|wanted| {
        wanted.modules.push(installed);
        wanted.settings.later_paths = vec![folder_of("tool-desk")];
        wanted.settings.readable = vec![folder_of("tool-desk")];
    });
    let stage = wanted.start().await;
    let counted = stage.call("count_mounts", json!({})).await;
    assert_eq!(
        counted.outcome,
        Outcome::Succeeded,
        "{:?}",
        stage.modules.failures()
    );
}

/// A plugin that lies beside a host's file.
fn notes_plugin() -> BridgedModule {
    let mut config = Map::new();
    config.insert("prefix".to_owned(), json!("> "));
    let planned = PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new("notes"),
        source: None,
        config,
        place: "a2e.yaml: plugins[0]".to_owned(),
    };
    let class = "notes_plugin.NotesPlugin".to_owned();
    let package = PythonPackage::Plugin {
        class,
        capability: "tools".to_owned(),
        priority: 0,
        exclusive: false,
        import_paths: Vec::new(),
        root: Some(folder_of("a2e-plugin")),
        host_file: None,
    };
    BridgedModule { planned, package }
}

/// Without mounts the folder's names are opened to be looked through, since Python finds code that way.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_plugin_is_found_where_nothing_can_be_mounted() {
    let wanted = Wanted::new(Core::StandIn, &[]).set(|wanted| {
        wanted.modules = vec![notes_plugin()];
        wanted.tier = SandboxTier::B;
    });
    let stage = wanted.start().await;
    let said = stage.call("say", json!({ "text": "hello" })).await;
    assert_eq!(
        said.structured_content,
        Some(json!({ "said": "> hello" })),
        "{:?}",
        stage.modules.failures()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_plugin_of_an_a2e_host_serves_its_tools() {
    let wanted = Wanted::new(Core::StandIn, &[])
        .set(|wanted| wanted.modules = vec![notes_plugin(), module("tool-desk")]);
    let stage = wanted.start().await;
    let (said, events) = stage.watched("say", json!({ "text": "hello" })).await;
    assert_eq!(
        said.structured_content.unwrap(),
        json!({ "said": "> hello" })
    );
    assert!(
        logged(&events).contains(&"speaking".to_owned()),
        "{events:?}"
    );
    assert_eq!(
        stage
            .call("say", json!({}))
            .await
            .error
            .unwrap()
            .class
            .as_str(),
        "invalid_arguments"
    );
    let failed = stage.call("fail", json!({})).await.error.unwrap();
    assert_eq!(failed.message, "it cannot be done");
    let late = stage
        .call_within("dawdle", json!({}), Duration::from_millis(300))
        .await;
    assert_eq!(late.outcome, Outcome::TimedOut);
    assert_eq!(
        stage.call("say", json!({ "text": "again" })).await.outcome,
        Outcome::Succeeded
    );
}
