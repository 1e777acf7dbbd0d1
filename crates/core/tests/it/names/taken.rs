//! Which tool has a name that several want.

use std::{collections::HashMap, sync::Arc};

use toolpost_core::OperatorSettings;
use toolpost_model::{
    Declaration, DynTool, Provenance, ToolSet, ToolSettings, ToolSurfaceSettings, WireNaming,
};
use toolpost_testkit::TestHost;

use super::{NamedSource, answering, answers, crowd, notices};

#[tokio::test]
async fn compiled_in_tools_keep_their_names_whatever_was_added_first() {
    for naming in [WireNaming::Bare, WireNaming::Namespaced] {
        let host = TestHost::build(|builder| crowd(builder, naming)).await;
        for (name, tool) in [
            ("shell", "shell.shell"),
            ("read_file", "files.read_file"),
            ("shell.shell", "shell.shell"),
            ("tool-a__shell", "tool-a.shell"),
            ("tool-a__read_file", "tool-a.read_file"),
            ("tool-b__read_file", "tool-b.read_file"),
            ("evil__shell", "evil.shell"),
            ("good.read_file", "good.read_file"),
        ] {
            assert_eq!(answers(&host, name).await, tool, "{name} with {naming:?}");
        }
        let told = notices(&host);
        let shell = "`tool-a.shell` is served as `tool-a__shell`: the name `shell` belongs to `shell.shell`";
        assert!(told.iter().any(|notice| notice == shell), "{told:?}");
        let evil = told
            .iter()
            .any(|notice| notice.contains("`evil.shell` is served as `evil__shell`"));
        assert_eq!(
            evil,
            naming == WireNaming::Bare,
            "only a tool that wanted the bare name lost it: {told:?}"
        );
    }
}

#[tokio::test]
async fn of_two_outside_tools_the_first_has_the_bare_name_and_a_plan_comes_before_a_server() {
    let host = TestHost::build(|builder| {
        builder
            .source(NamedSource::new(
                "up",
                Provenance::Outside,
                WireNaming::Bare,
                &["up.echo", "up.only"],
            ))
            .source(NamedSource::new(
                "plan",
                Provenance::MountPlan,
                WireNaming::Bare,
                &["tool-x.echo"],
            ))
    })
    .await;
    for (name, tool) in [
        ("echo", "tool-x.echo"),
        ("up__echo", "up.echo"),
        ("only", "up.only"),
    ] {
        assert_eq!(answers(&host, name).await, tool, "{name}");
    }
}

#[tokio::test]
async fn an_alias_gives_way_to_every_tool_that_has_the_name_for_its_own() {
    let renamed = HashMap::from([(
        "far.thing".to_owned(),
        ToolSettings {
            surface: ToolSurfaceSettings {
                name: Some("fetch".to_owned()),
                ..ToolSurfaceSettings::default()
            },
            ..ToolSettings::default()
        },
    )]);
    let mut plan = NamedSource::new("plan", Provenance::MountPlan, WireNaming::Bare, &[]);
    let aliased = answering("tool-x.look").declare(|declaration| {
        declaration.aliases = ["search", "fetch", "shell", "peek"]
            .map(str::to_owned)
            .to_vec();
    });
    plan.tools = ToolSet::new("plan", [Arc::new(aliased) as Arc<dyn DynTool>]);
    let host = TestHost::build(|builder| {
        builder
            .source(plan)
            .source(NamedSource::new(
                "up",
                Provenance::Outside,
                WireNaming::Bare,
                &["up.search"],
            ))
            .source(NamedSource::new(
                "far",
                Provenance::Outside,
                WireNaming::Namespaced,
                &["far.thing"],
            ))
            .tool(answering("shell.shell"))
            .settings(renamed)
    })
    .await;
    for (name, tool) in [
        ("search", "up.search"),
        ("fetch", "far.thing"),
        ("shell", "shell.shell"),
        ("peek", "tool-x.look"),
        ("look", "tool-x.look"),
    ] {
        assert_eq!(answers(&host, name).await, tool, "{name}");
    }
    let lost = notices(&host)
        .into_iter()
        .filter(|notice| notice.starts_with("the alias `"))
        .count();
    assert_eq!(lost, 3);
}

#[tokio::test]
async fn namespaces_of_the_host_and_of_other_sources_are_refused() {
    let host = TestHost::build(|builder| {
        builder
            .source(NamedSource::new(
                "files",
                Provenance::Outside,
                WireNaming::Namespaced,
                &["files.evil"],
            ))
            .source(NamedSource::new(
                "plan",
                Provenance::MountPlan,
                WireNaming::Bare,
                &["shell.more", "hub.a"],
            ))
            .source(NamedSource::new(
                "late",
                Provenance::Outside,
                WireNaming::Bare,
                &["hub.b", "mine.c"],
            ))
            .source(NamedSource::new(
                "own",
                Provenance::Outside,
                WireNaming::Bare,
                &["mine.d"],
            ))
            .tool(answering("mine.e"))
    })
    .await;
    for (name, expected) in [
        ("files.evil", "Failed"),
        ("shell.more", "Failed"),
        ("hub.a", "hub.a"),
        ("hub.b", "Failed"),
        ("mine.c", "Failed"),
        ("mine.d", "Failed"),
        ("mine.e", "mine.e"),
    ] {
        let found = answers(&host, name).await;
        assert_eq!(found == name, expected == name, "{name}: {found}");
    }
    let told = notices(&host);
    for line in [
        "tool `files.evil` was left out: the namespace `files` belongs to the host",
        "tool `shell.more` was left out: the namespace `shell` belongs to the host",
        "tool `hub.b` was left out: the namespace `hub` belongs to another source",
    ] {
        assert!(told.iter().any(|notice| notice == line), "{line}: {told:?}");
    }
}

/// Settings that give plans names of native tools.
struct Replacing(&'static [&'static str]);

impl OperatorSettings for Replacing {
    fn of(&self, _: &Declaration, _: &str) -> Option<ToolSettings> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
    fn replaces_native(&self, name: &str) -> bool {
        self.0.contains(&name) || self.0 == ["all"]
    }
    fn replaced_names(&self) -> Vec<String> {
        self.0
            .iter()
            .filter(|name| **name != "all")
            .map(|name| (*name).to_owned())
            .collect()
    }
}

#[tokio::test]
async fn a_plan_gets_a_native_name_only_where_the_operator_gives_it() {
    for (replaced, read_file, shell, native) in [
        (
            &["read_file", "grep"][..],
            "tool-a.read_file",
            "shell.shell",
            "NotFound",
        ),
        (&["all"][..], "tool-a.read_file", "tool-a.shell", "NotFound"),
        (&[][..], "files.read_file", "shell.shell", "files.read_file"),
    ] {
        let host = TestHost::build(|builder| {
            crowd(builder, WireNaming::Bare).settings(Replacing(replaced))
        })
        .await;
        assert_eq!(answers(&host, "read_file").await, read_file, "{replaced:?}");
        assert_eq!(answers(&host, "shell").await, shell, "{replaced:?}");
        let by_id = answers(&host, "files.read_file").await;
        assert_eq!(
            by_id == "files.read_file",
            native == "files.read_file",
            "{replaced:?}: {by_id}"
        );
        assert_eq!(
            answers(&host, "tool-b__read_file").await,
            "tool-b.read_file",
            "the second of a plan"
        );
        let told = notices(&host);
        let line = "`files.read_file` is not served: `tool-b.read_file` replaces it (`amplifier.replace_native`)";
        let other = line.replace("tool-b", "tool-a");
        let is_told = told.iter().any(|notice| notice == line || *notice == other);
        assert_eq!(is_told, !replaced.is_empty(), "{told:?}");
        let unused = told
            .iter()
            .any(|notice| notice.contains("`amplifier.replace_native` names `grep`"));
        assert_eq!(unused, replaced.contains(&"grep"), "{told:?}");
    }
}

#[tokio::test]
async fn an_alias_takes_no_native_name_even_where_the_operator_gives_names_to_plans() {
    for replaced in [&["all"][..], &["read_file"], &[]] {
        let fancy = answering("tool-a.fancy").declare(|declaration| {
            declaration.aliases = vec!["read_file".to_owned(), "plain".to_owned()];
        });
        let tools = ToolSet::new("amplifier", [Arc::new(fancy) as Arc<dyn DynTool>]);
        let plan = NamedSource {
            name: "amplifier",
            naming: WireNaming::Bare,
            provenance: Provenance::MountPlan,
            tools,
        };
        let host = TestHost::build(|builder| {
            builder
                .source(plan)
                .tool(answering("files.read_file"))
                .settings(Replacing(replaced))
        })
        .await;
        assert_eq!(
            answers(&host, "read_file").await,
            "files.read_file",
            "{replaced:?}"
        );
        for name in ["fancy", "plain"] {
            assert_eq!(
                answers(&host, name).await,
                "tool-a.fancy",
                "{replaced:?} {name}"
            );
        }
    }
}

#[tokio::test]
async fn declared_commands_and_an_embedders_tools_are_never_replaced() {
    let host = TestHost::build(|builder| {
        builder
            .source(NamedSource::new(
                "plan",
                Provenance::MountPlan,
                WireNaming::Bare,
                &["tool-x.lint", "tool-x.mine"],
            ))
            .tool(answering("commands.lint"))
            .tool(answering("app.mine"))
            .settings(Replacing(&["all"]))
    })
    .await;
    assert_eq!(answers(&host, "lint").await, "commands.lint");
    assert_eq!(answers(&host, "mine").await, "app.mine");
}
