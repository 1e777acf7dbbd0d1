//! Mount plans and bundles: files, what they build on, and who may include them.
#![expect(clippy::disallowed_methods, reason = "plans lie in real folders")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use toolpost_amplifier::{Include, ModuleSource};
use toolpost_config::{
    ConfigErrors, ConfigFile, ConfigLayer, ConfigNotice, FetchedBundle, HostConfig, LayerTrust,
    LoadedPlan, ModuleInstall, ModuleIsolation, PlanReader,
};
use toolpost_model::{HookStanding, RuleOrigin, SandboxProfile};

fn lookup(name: &str) -> Option<String> {
    (name == "ROOM").then(|| "attic".to_owned())
}

fn read(path: &Path) -> Result<LoadedPlan, ConfigErrors> {
    PlanReader {
        lookup: &lookup,
        find: &|_| None,
    }
    .read(path)
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn layer(text: &str, standing: LayerTrust, plans: &[&Path]) -> ConfigLayer {
    let parsed = ConfigFile::parse(text, "t.yaml").unwrap();
    let plans = plans.iter().map(|path| read(path).unwrap().plan).collect();
    ConfigLayer::new(parsed, standing, RuleOrigin::Cli)
        .relative_to("/etc/x")
        .with_plans(plans)
}

/// `id source config` of each module.
fn told(config: &HostConfig, folder: &Path) -> Vec<String> {
    let short = |source: &ModuleSource| source.to_string().replace(folder.to_str().unwrap(), ".");
    let line = |module: &toolpost_amplifier::PlannedModule| {
        let source = module.source.as_ref().map_or("-".to_owned(), short);
        format!(
            "{} {source} {}",
            module.id,
            Value::Object(module.config.clone())
        )
    };
    config.modules.iter().map(line).collect()
}

#[test]
fn a_plan_of_an_agent_is_read_as_python_would_read_it() {
    let text = "common: &common { quiet: yes, level: 0x10 }\n\
                session: { orchestrator: loop-basic, context: context-simple }\n\
                tools:\n  - module: tool-a\n    source: ./mods/a\n    config:\n      <<: *common\n      in: \"${ROOM}/${SHELF:top}\"\n      word: \"yes\"\n";
    let folder = folder(&[("plan.yaml", text)]);
    let plan = folder.path().join("plan.yaml");
    let (config, notices) =
        HostConfig::resolve(&[layer("include: [plan.yaml]", LayerTrust::Trusted, &[&plan])])
            .unwrap();
    assert_eq!(notices, Vec::<ConfigNotice>::new());
    let config_of = json!({ "quiet": true, "level": 16, "in": "attic/top", "word": "yes" });
    assert_eq!(Value::Object(config.modules[0].config.clone()), config_of);
    assert_eq!(
        config.modules[0].source,
        Some(ModuleSource::Path(folder.path().join("mods/a")))
    );
    let loaded = read(&plan).unwrap();
    assert_eq!(
        loaded
            .files
            .iter()
            .map(|(path, _)| path)
            .collect::<Vec<_>>(),
        [&plan]
    );
    let places: Vec<&str> = loaded
        .notes
        .iter()
        .map(|note| note.place.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(places, ["common", "session"]);
}

#[test]
fn bundles_build_on_bundles_in_markdown_and_in_folders() {
    let folder = folder(&[
        (
            "bundle.md",
            "---\nbundle: { name: top }\nincludes:\n  - ./base\n  - bundle: more.yaml\ntools:\n  - module: tool-a\n    config: { paths: [c] }\n---\n\n# Words for a model\n\ntools: none\n",
        ),
        (
            "base/bundle.yaml",
            "tools:\n  - { module: tool-a, source: ./a, config: { paths: [a] } }\n",
        ),
        (
            "more.yaml",
            "tools:\n  - { module: tool-a, config: { paths: [b] } }\n  - { module: tool-b }\n",
        ),
    ]);
    // Written as a file that could be the name of a package.
    let text = fs::read_to_string(folder.path().join("bundle.md")).unwrap();
    fs::write(
        folder.path().join("bundle.md"),
        text.replace("bundle: more.yaml", "bundle: ./more.yaml"),
    )
    .unwrap();
    let (config, _) =
        HostConfig::resolve(&[layer("", LayerTrust::Trusted, &[folder.path()])]).unwrap();
    assert_eq!(
        told(&config, folder.path()),
        [
            "tool-a ./base/a {\"paths\":[\"a\",\"b\",\"c\"]}",
            "tool-b - {}"
        ]
    );
    assert_eq!(read(folder.path()).unwrap().files.len(), 3);
}

#[test]
fn what_must_be_fetched_first_is_told_and_then_read() {
    let folder = folder(&[
        (
            "plan.yaml",
            "includes: ['git+https://h/o/r@main#subdirectory=x']\ntools: [{ module: tool-b }]\n",
        ),
        (
            "fetched/bundle.yaml",
            "tools: [{ module: tool-a, source: ./a }]\n",
        ),
    ]);
    let plan = folder.path().join("plan.yaml");
    let loaded = read(&plan).unwrap();
    assert_eq!(loaded.missing.len(), 1);
    assert_eq!(
        loaded.missing[0].source.to_string(),
        "git+https://h/o/r@main#subdirectory=x"
    );
    let find = |source: &ModuleSource| -> Option<FetchedBundle> {
        let path = folder.path().join("fetched");
        matches!(source, ModuleSource::Git { .. }).then(|| FetchedBundle {
            repository: path.clone(),
            path,
        })
    };
    let loaded = PlanReader {
        lookup: &lookup,
        find: &find,
    }
    .read(&plan)
    .unwrap();
    assert_eq!(loaded.missing, []);
    let modules: Vec<String> = loaded
        .plan
        .settle()
        .0
        .iter()
        .map(|module| module.id.to_string())
        .collect();
    assert_eq!(modules, ["tool-a", "tool-b"]);
}

#[test]
fn what_is_wrong_is_told_with_the_file() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let folder = folder(files);
        let error = read(&folder.path().join(files[0].0))
            .unwrap_err()
            .to_string();
        for part in expected {
            assert!(error.contains(part), "{error}");
        }
    };
    check(
        &[("p.yaml", "tools: [{}, { module: 5 }]")],
        &[
            "`tools[0]`",
            "tools[0]_module_required",
            "tools[1]_module_type",
            "p.yaml",
        ],
    );
    check(&[("p.yaml", "tools: [\n")], &["p.yaml"]);
    check(&[("p.yaml", "- x\n")], &["root_type"]);
    check(&[("p.md", "# only words\n")], &["contains no plan", "---"]);
    check(&[("p.yaml", "includes: [./p.yaml]")], &["includes itself"]);
    check(
        &[
            ("p.yaml", "includes: [./q.yaml]"),
            ("q.yaml", "includes: [./p.yaml]"),
        ],
        &["includes itself"],
    );
    check(
        &[("p.yaml", "includes: [./missing.yaml]")],
        &["missing.yaml", "cannot be read"],
    );
    check(
        &[("p.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nb: 1\n")],
        &["twice"],
    );
}

#[test]
fn layers_are_laid_over_one_another_and_untrusted_ones_bring_nothing() {
    let folder = folder(&[
        (
            "one.yaml",
            "tools: [{ module: tool-a, config: { x: 1, list: [1] } }]",
        ),
        (
            "two.yaml",
            "tools: [{ module: tool-a, config: { x: 2, list: { replace: [2] } } }]",
        ),
        ("evil.yaml", "tools: [{ module: tool-evil }]"),
    ]);
    let [one, two, evil] =
        ["one.yaml", "two.yaml", "evil.yaml"].map(|name| folder.path().join(name));
    let layers = [
        layer(
            "include: [one.yaml, two.yaml]",
            LayerTrust::Trusted,
            &[&one, &two],
        ),
        layer("include: [evil.yaml]", LayerTrust::Untrusted, &[&evil]),
    ];
    let (config, notices) = HostConfig::resolve(&layers).unwrap();
    assert_eq!(
        told(&config, folder.path()),
        ["tool-a - {\"x\":2,\"list\":[2]}"]
    );
    assert_eq!((notices.len(), notices[0].key.as_str()), (1, "include"));
    assert!(
        notices[0].message.contains("evil.yaml"),
        "{}",
        notices[0].message
    );
}

#[test]
fn the_section_says_how_modules_run() {
    let text = "amplifier:\n  isolation: process\n  core: stand_in\n  python: ./venv/bin/python\n  install: offline\n  \
                sandbox: network\n  pass: [SEARCH_API_KEY]\n  environment: { STAGE: test }\n  readable: [models]\n  \
                writable: [/scratch]\n  hooks: { hooks-audit: observer }\n  post_on_failure: true\n  \
                mount_timeout: 90s\n  max_result: 2MiB\n  \
                wasm:\n    tool-w: { directories: [{ path: in, access: write }], network: true, memory: 1MiB }\n";
    let (config, _) = HostConfig::resolve(&[layer(text, LayerTrust::Trusted, &[])]).unwrap();
    let found = config.amplifier;
    assert_eq!(
        (found.isolation, found.install),
        (ModuleIsolation::Process, ModuleInstall::Offline)
    );
    assert_eq!(
        found.python,
        Some(PathBuf::from("/etc/x/./venv/bin/python"))
    );
    assert_eq!(found.sandbox, Some(SandboxProfile::Network));
    assert_eq!(
        (found.readable, found.writable),
        (vec!["/etc/x/models".into()], vec!["/scratch".into()])
    );
    assert_eq!(found.hooks["hooks-audit"], HookStanding::Observer);
    assert!(found.post_on_failure);
    assert_eq!(
        (found.mount_timeout, found.max_result),
        (Some(Duration::from_secs(90)), Some(2 << 20))
    );
    let wasm = &found.wasm["tool-w"];
    assert_eq!(
        (wasm.directories[0].path.clone(), wasm.network, wasm.memory),
        ("/etc/x/in".into(), true, Some(1 << 20))
    );
}

#[test]
fn an_untrusted_file_may_only_hold_modules_shorter() {
    let trusted = layer("amplifier: { sandbox: network }", LayerTrust::Trusted, &[]);
    let text = "amplifier:\n  isolation: process\n  install: offline\n  sandbox: read-only\n  core: real\n  \
                python: /evil\n  pass: [TOKEN]\n  environment: { A: b }\n  readable: [/x]\n  writable: [/x]\n  \
                hooks: { h: observer }\n  post_on_failure: true\n  mount_timeout: 1h\n  max_result: 1GiB\n  wasm: { w: { network: true } }\n";
    let (config, notices) =
        HostConfig::resolve(&[trusted.clone(), layer(text, LayerTrust::Untrusted, &[])]).unwrap();
    let found = &config.amplifier;
    assert_eq!(
        (found.isolation, found.install),
        (ModuleIsolation::Process, ModuleInstall::Offline)
    );
    assert_eq!(found.sandbox, Some(SandboxProfile::ReadOnly));
    let mut ignored: Vec<&str> = notices.iter().map(|notice| notice.key.as_str()).collect();
    ignored.sort_unstable();
    let expected = [
        "core",
        "environment",
        "hooks",
        "max_result",
        "mount_timeout",
        "pass",
        "post_on_failure",
        "python",
        "readable",
        "wasm",
        "writable",
    ];
    assert_eq!(ignored, expected.map(|key| format!("amplifier.{key}")));
    assert!(found.pass.is_empty() && found.wasm.is_empty() && found.python.is_none());
    let loose = "amplifier: { isolation: shared, install: auto, sandbox: none }";
    let (config, notices) =
        HostConfig::resolve(&[trusted, layer(loose, LayerTrust::Untrusted, &[])]).unwrap();
    assert_eq!(config.amplifier.sandbox, Some(SandboxProfile::Network));
    assert_eq!(notices.len(), 1, "{notices:?}");
}

#[test]
fn a_profile_tightened_for_all_holds_for_modules_too() {
    let trusted = layer("amplifier: { sandbox: network }", LayerTrust::Trusted, &[]);
    let tight = layer(
        "sandbox: { profile: read-only }",
        LayerTrust::Untrusted,
        &[],
    );
    let (config, _) = HostConfig::resolve(&[trusted, tight]).unwrap();
    assert_eq!(config.amplifier.sandbox, Some(SandboxProfile::ReadOnly));
}

#[test]
fn variables_that_change_code_are_refused_and_secrets_are_not() {
    for (text, refused) in [
        (
            "amplifier: { pass: [SEARCH_API_KEY, SSH_AUTH_SOCK] }",
            false,
        ),
        ("amplifier: { pass: [LD_PRELOAD] }", true),
        ("amplifier: { pass: [PYTHONPATH] }", true),
        ("amplifier: { pass: ['A=b'] }", true),
        ("amplifier: { environment: { PYTHONSTARTUP: /x } }", true),
        (
            "amplifier: { wasm: { w: { environment: { 'a b': c } } } }",
            true,
        ),
        ("amplifier: { concurrency: 0 }", true),
        ("include: ['~/plan.yaml']", true),
    ] {
        assert_eq!(
            ConfigFile::parse(text, "t.yaml").is_err(),
            refused,
            "{text}"
        );
    }
}

/// The modules of a plan, and what is missing of it, with the folder left out.
fn loaded_of(folder: &Path, plan: &str, fetched: Option<&str>) -> (Vec<String>, Vec<String>) {
    let find = |_: &ModuleSource| -> Option<FetchedBundle> {
        let repository = folder.join("fetched");
        Some(FetchedBundle {
            path: repository.join(fetched?),
            repository,
        })
    };
    let loaded = PlanReader {
        lookup: &lookup,
        find: &find,
    }
    .read(&folder.join(plan))
    .unwrap();
    let modules = loaded
        .plan
        .settle()
        .0
        .iter()
        .map(|module| module.id.to_string())
        .collect();
    let missing = |include: &Include| match &include.source {
        ModuleSource::Unspoken { text, why } => format!("{text}: {why}"),
        source => source.to_string(),
    };
    (modules, loaded.missing.iter().map(missing).collect())
}

#[test]
fn files_of_a_bundle_are_found_by_the_bundles_name() {
    let folder = folder(&[
        (
            "bundle.md",
            "---\nbundle: { name: mine }\nincludes: ['mine:behaviors/one', 'git+https://h/o/r']\n---\n",
        ),
        (
            "behaviors/one.yaml",
            "includes: [{ bundle: 'mine:behaviors/two' }]\nhooks: [{ module: hooks-one }]\n",
        ),
        (
            "behaviors/two/bundle.yaml",
            "hooks: [{ module: hooks-two }]\n",
        ),
        ("fetched/bundle.md", "---\nbundle: { name: base }\n---\n"),
        (
            "fetched/behaviors/x.yaml",
            "bundle: { name: behavior-x }\nincludes: ['base:behaviors/y']\n",
        ),
        (
            "fetched/behaviors/y.yml",
            "includes: ['base:behaviors/x']\nhooks: [{ module: hooks-y }]\n",
        ),
    ]);
    let (modules, missing) = loaded_of(folder.path(), "bundle.md", Some("behaviors/x.yaml"));
    assert_eq!(missing, Vec::<String>::new());
    assert_eq!(modules, ["hooks-two", "hooks-one", "hooks-y"]);
}

#[test]
fn an_include_that_cannot_be_resolved_is_missing() {
    let check = |include: &str, reason: &str| {
        let plan = format!(
            "bundle: {{ name: mine }}\nincludes: ['{include}']\nhooks: [{{ module: hooks-own }}]\n"
        );
        let folder = folder(&[("plan.yaml", &plan), ("empty/x.txt", "")]);
        let (modules, missing) = loaded_of(folder.path(), "plan.yaml", None);
        assert_eq!(modules, ["hooks-own"]);
        assert_eq!(missing.len(), 1, "{include}");
        assert!(missing[0].contains(reason), "{include}: {missing:?}");
    };
    check("mine:behaviors/no", "has no file `behaviors/no`");
    check("mine:../other", "not a path inside a bundle");
    check("mine:", "not a path inside a bundle");
    check(
        "foundation:behaviors/x",
        "no bundle of this plan is named `foundation`",
    );
    check("foundation", "neither a file nor an address");
    check("C:\\bundles\\x", "another system");
    check(
        "git+https://h/o/r#subdirectory=x.yaml",
        "git+https://h/o/r#subdirectory=x.yaml",
    );
}

#[test]
fn included_files_stay_inside_of_their_repository() {
    let secret = folder(&[("outside.yaml", "hooks: [{ module: hooks-outside }]\n")]);
    let folder = folder(&[
        ("plan.yaml", "includes: ['git+https://h/o/r']\n"),
        ("local.yaml", "includes: [./clone/bundle.yaml]\n"),
        ("outside.yaml", "hooks: [{ module: hooks-outside }]\n"),
        (
            "fetched/bundle.yaml",
            "bundle: { name: base }\nincludes: [../outside.yaml, 'base:inner/link']\n",
        ),
        (
            "fetched/broken.yaml",
            "includes: [./behaviors/none.yaml, ./behaviors/torn.yaml]\n",
        ),
        ("fetched/behaviors/torn.yaml", "hooks: [\n"),
        ("fetched/inner/x", ""),
        ("clone/.git/HEAD", ""),
        (
            "clone/bundle.yaml",
            "includes: [./link.yaml, ../outside.yaml]\nhooks: [{ module: hooks-own }]\n",
        ),
    ]);
    let path = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(
        secret.path().join("outside.yaml"),
        path("fetched/inner/link.yaml"),
    )
    .unwrap();
    std::os::unix::fs::symlink(secret.path().join("outside.yaml"), path("clone/link.yaml"))
        .unwrap();
    for (plan, fetched, expected) in [
        ("plan.yaml", "bundle.yaml", Vec::new()),
        ("plan.yaml", "broken.yaml", Vec::new()),
        ("local.yaml", "", vec!["hooks-own"]),
    ] {
        let (modules, missing) = loaded_of(folder.path(), plan, Some(fetched));
        assert_eq!(
            (modules, missing.len()),
            (expected.into_iter().map(str::to_owned).collect(), 2),
            "{missing:?}"
        );
    }
    // The operator's own plan may include whatever the operator can read.
    fs::write(path("own.yaml"), "includes: [./clone/link.yaml]\n").unwrap();
    assert_eq!(
        loaded_of(folder.path(), "own.yaml", None).0,
        ["hooks-outside"]
    );
}
