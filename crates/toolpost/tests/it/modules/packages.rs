//! Packages that Python modules need: installed for real, from a wheel that the test makes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use toolpost_amplifier::{ModuleId, ModuleKind};
use toolpost_modules::{
    CoreWish, FolderSharing, ModuleFetchPolicy, ModuleSupply, PackageEnvironments, PackagesError,
    PreparedEnvironment, PythonModule,
};
use toolpost_processes::{ChildEnvironment, HostEnvironment, NetworkSettings};
use toolpost_sandbox::Launcher;

use super::place::{Place, files, python, said};

/// A wheel with one module, which says a word.
fn wheel(place: &Place, folder: &str, name: &str, version: &str) -> PathBuf {
    fs::create_dir_all(place.path(folder)).unwrap();
    let path = place.path(&format!("{folder}/{name}-{version}-py3-none-any.whl"));
    let script = format!(
        "import sys, zipfile\ninfo = '{name}-{version}.dist-info/'\n\
         with zipfile.ZipFile(sys.argv[1], 'w') as z:\n    \
         z.writestr('{name}.py', 'WORD = \"{name} {version}\"\\n')\n    \
         z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')\n    \
         z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    \
         z.writestr(info + 'RECORD', '\\n'.join(n + ',,' for n in ['{name}.py', info + 'METADATA', info + 'WHEEL', info + 'RECORD']) + '\\n')\n"
    );
    said(Command::new(python()).args(["-c", &script]).arg(&path));
    path
}

fn packages(place: &Place, reach: ModuleFetchPolicy) -> PackageEnvironments {
    let variables = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
    PackageEnvironments::new(Arc::new(ModuleSupply {
        cache: place.cache(),
        launcher: Some(Launcher::new(crate::workshop::program())),
        environment: ChildEnvironment::new(
            &HostEnvironment {
                variables,
                home: None,
            },
            &[],
            &[],
        ),
        // No index: what the test did not make is not there.
        variables: [
            ("PIP_NO_INDEX".to_owned(), "1".to_owned()),
            ("UV_NO_INDEX".to_owned(), "1".to_owned()),
        ]
        .into(),
        fetch_variables: [].into(),
        readable: Vec::new(),
        network: NetworkSettings::default(),
        reach,
        python: Some(python().into()),
        required: false,
    }))
}

fn module(place: &Place, id: &str, dependencies: &str) -> PythonModule {
    place.module(id, id, dependencies);
    PythonModule {
        id: ModuleId::new(id),
        kind: ModuleKind::Tool,
        root: Some(place.path(id)),
        package: None,
        sharing: FolderSharing::OwnFolder,
    }
}

async fn prepare(
    packages: &PackageEnvironments,
    modules: &[PythonModule],
) -> Result<PreparedEnvironment, PackagesError> {
    packages.prepare(modules, CoreWish::Auto, &mut |_| ()).await
}

fn word(python: &Path, package: &str) -> String {
    said(Command::new(python).args([
        "-I",
        "-c",
        &format!("import {package}; print({package}.WORD)"),
    ]))
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_that_need_nothing_get_the_python_that_is_there() {
    let place = Place::new();
    let modules = [module(&place, "tool-a", ""), module(&place, "tool-b", "")];
    let prepared = prepare(&packages(&place, ModuleFetchPolicy::Offline), &modules)
        .await
        .unwrap();
    assert_eq!(prepared.environment.python, PathBuf::from(python()));
    assert_eq!(
        prepared.environment.paths,
        [place.path("tool-a"), place.path("tool-b")]
    );
    assert_eq!(
        (prepared.environment.key, prepared.failures),
        (None, Vec::new())
    );
    assert!(!place.cache().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_installed_once_into_an_environment_of_their_own() {
    let place = Place::new();
    let tiny = wheel(&place, "tool-a", "tinydep", "1.0");
    let modules = [module(
        &place,
        "tool-a",
        &format!("'tinydep @ file://{}'", tiny.display()),
    )];
    let offline = prepare(&packages(&place, ModuleFetchPolicy::Offline), &modules)
        .await
        .unwrap();
    assert_eq!(offline.failures.len(), 1);
    let told = &offline.failures[0].message;
    assert!(
        told.starts_with("its packages (`tinydep @ file://"),
        "the missing package is named: {told}"
    );
    assert!(
        told.contains("`) are not installed, and fetching is off\nhint: "),
        "{told}"
    );
    let made = prepare(&packages(&place, ModuleFetchPolicy::Online), &modules)
        .await
        .unwrap();
    assert_eq!(made.failures, []);
    let environment = made.environment;
    assert_eq!(environment.packages, ["tinydep==1.0"]);
    assert_eq!(word(&environment.python, "tinydep"), "tinydep 1.0");
    assert_eq!(environment.paths, [place.path("tool-a")]);
    let own = Command::new(python())
        .args(["-I", "-c", "import tinydep"])
        .output()
        .unwrap();
    assert!(
        !own.status.success(),
        "the host's own Python stays as it is"
    );
    // The same from the cache alone, without the wheel.
    fs::remove_file(&tiny).unwrap();
    let again = prepare(&packages(&place, ModuleFetchPolicy::Offline), &modules)
        .await
        .unwrap();
    assert_eq!(
        (again.environment, again.failures),
        (environment.clone(), Vec::new())
    );
    // Something in it that was not installed is refused.
    let module = files(&place.cache())
        .into_iter()
        .find(|file| file.ends_with("tinydep.py"))
        .unwrap();
    fs::write(module, "WORD = 'somebody else was here'\n").unwrap();
    // That is the trouble of whoever needs it.
    let modules = [modules[0].clone(), self::module(&place, "tool-b", "")];
    let refused = prepare(&packages(&place, ModuleFetchPolicy::Online), &modules)
        .await
        .unwrap();
    let failed: Vec<&str> = refused
        .failures
        .iter()
        .map(|failure| failure.module.as_str())
        .collect();
    assert_eq!((failed, refused.environment.key), (vec!["tool-a"], None));
    assert!(
        refused.failures[0]
            .message
            .contains("changed since it was installed"),
        "{:?}",
        refused.failures
    );
    assert_eq!(refused.environment.paths, [place.path("tool-b")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_opens_nothing_of_this_machine_to_installers() {
    let place = Place::new();
    let beside = wheel(&place, "elsewhere", "tinydep", "1.0");
    let secret = place.path("secret");
    fs::create_dir(&secret).unwrap();
    for (address, part) in [
        (
            format!("file://{}", beside.display()),
            "is outside of the module's own folder",
        ),
        (
            format!(
                "file://{}/../elsewhere/x.whl",
                place.path("tool-a").display()
            ),
            "is outside",
        ),
        (
            format!("file://{}", secret.display()),
            "is not a wheel or a source archive",
        ),
        (
            format!("git+file://{}", secret.display()),
            "an address that modules may not use",
        ),
        ("./x".to_owned(), "an address that modules may not use"),
        (
            format!("{}", secret.display()),
            "an address that modules may not use",
        ),
    ] {
        let modules = [
            module(&place, "tool-a", &format!("'tinydep @ {address}'")),
            module(&place, "tool-b", ""),
        ];
        let prepared = prepare(&packages(&place, ModuleFetchPolicy::Online), &modules)
            .await
            .unwrap();
        assert_eq!(prepared.failures.len(), 1, "{address}");
        assert!(
            prepared.failures[0].message.contains(part),
            "{address}: {:?}",
            prepared.failures
        );
        assert_eq!(prepared.environment.paths, [place.path("tool-b")]);
    }
    assert!(!place.cache().exists(), "nothing was installed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_had_is_tried_again() {
    let place = Place::new();
    let tiny = wheel(&place, "tool-a", "tinydep", "1.0");
    let late = place.path("tool-b/latedep-1.0-py3-none-any.whl");
    let modules = [
        module(
            &place,
            "tool-a",
            &format!("'tinydep @ file://{}'", tiny.display()),
        ),
        module(
            &place,
            "tool-b",
            &format!("'latedep @ file://{}'", late.display()),
        ),
    ];
    let packages = packages(&place, ModuleFetchPolicy::Online);
    assert_eq!(
        prepare(&packages, &modules).await.unwrap().failures.len(),
        1
    );
    wheel(&place, "tool-b", "latedep", "1.0");
    let soon = prepare(&packages, &modules).await.unwrap();
    assert_eq!(
        soon.failures.len(),
        1,
        "a start shortly after does not wait for it again"
    );
    let record = files(&place.cache())
        .into_iter()
        .find(|file| file.ends_with("environment.json"))
        .unwrap();
    let kept = fs::File::options().write(true).open(&record).unwrap();
    let long_ago =
        kept.metadata().unwrap().modified().unwrap() - std::time::Duration::from_secs(3600);
    kept.set_modified(long_ago).unwrap();
    let later = prepare(&packages, &modules).await.unwrap();
    assert_eq!(later.failures, []);
    assert_eq!(later.environment.packages, ["latedep==1.0", "tinydep==1.0"]);
    assert_eq!(word(&later.environment.python, "latedep"), "latedep 1.0");
    let again = prepare(&packages, &modules).await.unwrap();
    assert_eq!(
        (again.environment, again.failures),
        (later.environment, Vec::new())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn to_fetch_is_to_try_again_at_once() {
    let place = Place::new();
    let tiny = wheel(&place, "tool-a", "tinydep", "1.0");
    let late = place.path("tool-b/latedep-1.0-py3-none-any.whl");
    let modules = [
        module(
            &place,
            "tool-a",
            &format!("'tinydep @ file://{}'", tiny.display()),
        ),
        module(
            &place,
            "tool-b",
            &format!("'latedep @ file://{}'", late.display()),
        ),
    ];
    let packages = packages(&place, ModuleFetchPolicy::Online);
    assert_eq!(
        prepare(&packages, &modules).await.unwrap().failures.len(),
        1
    );
    // What fails again takes nothing from what is there.
    let fetched = packages
        .fetch(&modules, CoreWish::Auto, &mut |_| ())
        .await
        .unwrap();
    assert_eq!(
        (fetched.failures.len(), fetched.environment.packages),
        (1, vec!["tinydep==1.0".to_owned()])
    );
    wheel(&place, "tool-b", "latedep", "1.0");
    let fetched = packages
        .fetch(&modules, CoreWish::Auto, &mut |_| ())
        .await
        .unwrap();
    assert_eq!(fetched.failures, []);
    assert_eq!(word(&fetched.environment.python, "latedep"), "latedep 1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_whose_packages_cannot_be_had_takes_nothing_from_the_others() {
    let place = Place::new();
    let tiny = wheel(&place, "tool-a", "tinydep", "1.0");
    let modules = [
        module(
            &place,
            "tool-a",
            &format!("'tinydep @ file://{}'", tiny.display()),
        ),
        module(&place, "tool-b", "'no-such-package-anywhere'"),
        module(&place, "tool-c", ""),
    ];
    let packages = packages(&place, ModuleFetchPolicy::Online);
    let prepared = prepare(&packages, &modules).await.unwrap();
    let failed: Vec<&str> = prepared
        .failures
        .iter()
        .map(|failure| failure.module.as_str())
        .collect();
    assert_eq!(failed, ["tool-b"], "{:?}", prepared.failures);
    assert!(
        prepared.failures[0]
            .message
            .contains("no-such-package-anywhere"),
        "{:?}",
        prepared.failures
    );
    assert_eq!(word(&prepared.environment.python, "tinydep"), "tinydep 1.0");
    assert_eq!(
        prepared.environment.paths,
        [place.path("tool-a"), place.path("tool-c")]
    );
    let again = prepare(&packages, &modules).await.unwrap();
    assert_eq!(
        (again.environment, again.failures.len()),
        (prepared.environment, 1)
    );
    let alone = prepare(&packages, &modules[1..]).await.unwrap();
    assert_eq!((alone.failures.len(), alone.environment.key), (1, None));
    assert_eq!(alone.environment.paths, [place.path("tool-c")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_without_a_source_must_be_installed_already() {
    let place = Place::new();
    let missing = PythonModule {
        id: ModuleId::new("tool-x"),
        kind: ModuleKind::Tool,
        root: None,
        package: None,
        sharing: FolderSharing::OwnFolder,
    };
    let prepared = prepare(&packages(&place, ModuleFetchPolicy::Online), &[missing])
        .await
        .unwrap();
    assert!(
        prepared.failures[0].message.contains("has no `source`"),
        "{:?}",
        prepared.failures
    );
}

#[test]
fn fetch_installs_and_an_environment_half_made_is_made_anew() {
    let place = Place::new();
    let tiny = wheel(&place, "tool-a", "tinydep", "1.0");
    place.module(
        "tool-a",
        "tool-a",
        &format!("'tinydep @ file://{}'", tiny.display()),
    );
    place.plan("tools:\n  - { module: tool-a, source: ./tool-a }\n");
    let fetched = place.modules(&["fetch", "--json"]).expect(0).json();
    assert_eq!(
        fetched["packages"],
        serde_json::json!(["tinydep==1.0"]),
        "{fetched}"
    );
    let record = files(&place.cache())
        .into_iter()
        .find(|file| file.ends_with("environment.json"))
        .unwrap();
    fs::remove_file(&record).unwrap();
    fs::write(record.with_file_name("left"), "behind").unwrap();
    place.modules(&["fetch"]).expect(0);
    assert!(record.exists() && !record.with_file_name("left").exists());
    let kept = place
        .modules(&["remove", "--unused", "--json"])
        .expect(0)
        .json();
    assert_eq!(kept["environments"], 0, "it is in use");
    place.plan("tools: []\n");
    let unused = place
        .modules(&["remove", "--unused", "--json"])
        .expect(0)
        .json();
    assert_eq!(unused["environments"], 1);
    place.plan("tools:\n  - { module: tool-a, source: ./tool-a }\n");
    place.modules(&["fetch"]).expect(0);
    let removed = place
        .modules(&["remove", "--all", "--json"])
        .expect(0)
        .json();
    assert_eq!(removed["environments"], 1);
}

/// A module in a folder of a bundle. It imports the bundle's own package, which imports a wheel, and it tries to read a
/// file that lies beside the package.
fn module_of_a_bundle(place: &Place, package_folder: &str) {
    let tiny = wheel(place, "bundle/wheels", "tinydep", "1.0");
    place.write("bundle/bundle.yaml", "bundle: { name: words }\n");
    let dependency = format!("tinydep @ file://{}", tiny.display());
    let project =
        format!("[project]\nname = 'words'\nversion = '1'\ndependencies = ['{dependency}']\n");
    place.write("bundle/pyproject.toml", &project);
    let package = format!("bundle/{package_folder}bundle_words/__init__.py");
    place.write(
        &package,
        "import tinydep\nWORD = 'words of ' + tinydep.WORD\n",
    );
    place.write("bundle/.env", "SECRET=1\n");
    let folder = "bundle/modules/tool-words";
    place.write(
        &format!("{folder}/pyproject.toml"),
        "[project]\nname = 'tool-words'\nversion = '1'\n",
    );
    let secret = place.path("bundle/.env").display().to_string();
    let code = format!(
        "import bundle_words\n\n\nclass Words:\n    name = 'words'\n    description = 'Words.'\n    \
         input_schema = {{'type': 'object'}}\n\n    async def execute(self, input):\n        try:\n            \
         secret = open('{secret}').read()\n        except OSError:\n            secret = 'hidden'\n        \
         return {{'success': True, 'output': bundle_words.WORD + ', ' + secret}}\n\n\n\
         async def mount(coordinator, config=None):\n    await coordinator.mount('tools', Words(), name='words')\n"
    );
    place.write(
        &format!("{folder}/amplifier_module_tool_words/__init__.py"),
        &code,
    );
    place.plan(&format!(
        "tools:\n  - {{ module: tool-words, source: ./{folder} }}\n"
    ));
}

#[test]
fn a_module_of_a_bundle_imports_the_package_of_the_bundle() {
    for package_folder in ["src/", "lib/", ""] {
        let place = Place::new();
        module_of_a_bundle(&place, package_folder);
        let called = place.run("call", &["words", "--mode", "bypass"]).expect(0);
        assert_eq!(
            called.stdout.trim(),
            "words of tinydep 1.0, hidden",
            "in `{package_folder}`"
        );
    }
}

#[test]
fn a_link_in_a_bundle_is_not_its_package() {
    for link in ["src", "bundle_words"] {
        let place = Place::new();
        module_of_a_bundle(&place, "elsewhere/");
        let target = if link == "src" {
            "elsewhere"
        } else {
            "elsewhere/bundle_words"
        };
        std::os::unix::fs::symlink(target, place.path(&format!("bundle/{link}"))).unwrap();
        let tools = place.run("tools", &["--json"]).expect(6).json();
        let told = tools["unavailable"][0]["message"].as_str().unwrap();
        assert!(told.contains("bundle_words"), "`{link}`: {told}");
    }
}

#[test]
fn a_folder_above_a_module_that_is_no_bundle_gives_it_nothing() {
    let place = Place::new();
    module_of_a_bundle(&place, "src/");
    fs::remove_file(place.path("bundle/bundle.yaml")).unwrap();
    let tools = place.run("tools", &["--json"]).expect(6).json();
    let told = tools["unavailable"][0]["message"].as_str().unwrap();
    assert!(told.contains("bundle_words"), "{told}");
}

#[test]
fn a_bundle_whose_package_cannot_be_read_fails_its_modules_alone() {
    let place = Place::new();
    module_of_a_bundle(&place, "src/");
    place.write("bundle/pyproject.toml", "not = [toml");
    place.module("tool-b", "tool-b", "");
    let plan = fs::read_to_string(place.path("plan.yaml")).unwrap();
    place.plan(&format!(
        "{plan}  - {{ module: tool-b, source: ./tool-b }}\n"
    ));
    let tools = place.run("tools", &["--json"]).expect(6).json();
    let unavailable = tools["unavailable"].as_array().unwrap();
    assert_eq!(unavailable.len(), 1, "{tools}");
    assert_eq!(unavailable[0]["part"], "tool-words");
    let told = unavailable[0]["message"].as_str().unwrap();
    assert!(
        told.contains("bundle/pyproject.toml") && told.contains("is not TOML"),
        "{told}"
    );
}
