//! `toolpost new`: what it makes, and that what it makes works.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::home::Home;

/// Every file below a folder, sorted.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(
                    path.strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn python(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("python3")
        .args(arguments)
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap()
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_python_module_comes_with_tests_that_pass() {
    let home = Home::new();
    home.check(
        "new_python",
        &["new", "tool", "word-count", "--lang", "python"],
    );
    let module = home.workspace().join("tool-word-count");
    assert_eq!(
        files(&module).join(" "),
        ".gitignore README.md amplifier_module_tool_word_count/__init__.py plan.yaml pyproject.toml \
         tests/test_tool.py tests/toolpost_testkit.py"
    );
    let said = succeeds(&python(&module, &["-m", "unittest", "discover", "tests"]));
    assert!(said.contains("Ran 3 tests"), "{said}");
}

#[test]
fn the_name_of_a_native_tool_is_warned_about() {
    let home = Home::new();
    let made = home
        .run(&["new", "tool", "read-file", "--lang", "python"])
        .expect(0);
    for part in [
        "so this one is served as `tool-read-file__read_file`",
        "toolpost call tool-read-file__read_file ",
    ] {
        assert!(made.stderr.contains(part), "{}", made.stderr);
    }
}

#[test]
fn the_other_languages_come_with_what_builds_them() {
    let home = Home::new();
    for (language, expected) in [
        (
            "rust",
            ".gitignore Cargo.toml README.md amplifier.toml plan.yaml src/main.rs src/serving.rs src/tool.rs",
        ),
        (
            "wasm",
            ".gitignore Cargo.toml README.md amplifier.toml build.sh plan.yaml src/lib.rs src/tool.rs wit/tool.wit",
        ),
    ] {
        let made = home
            .run(&[
                "new", "tool", "tidy_up", "--lang", language, "--path", language,
            ])
            .expect(0);
        let feature = if language == "rust" { "grpc" } else { language };
        let needs = format!("needs `--features {feature}`, which this `toolpost` ");
        assert!(made.stderr.contains(&needs), "{}", made.stderr);
        let module = home.workspace().join(language);
        assert_eq!(files(&module).join(" "), expected);
        let manifest = home.read(&format!("{language}/amplifier.toml"));
        assert!(
            manifest.contains(&format!("transport = \"{language}\"")),
            "{manifest}"
        );
        assert!(
            home.read(&format!("{language}/Cargo.toml"))
                .contains("name = \"tool-tidy-up\"")
        );
        assert!(
            home.read(&format!("{language}/src/tool.rs"))
                .contains("NAME: &str = \"tidy_up\"")
        );
    }
}

#[test]
fn nothing_is_written_over() {
    let home = Home::new();
    let new = ["new", "tool", "greet", "--lang", "python"];
    home.run(&new).expect(0);
    home.write("tool-greet/plan.yaml", "mine");
    let again = home.run(&new).expect(2);
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    assert_eq!(home.read("tool-greet/plan.yaml"), "mine");
    home.run(&["new", "testkit"]).expect(0);
    home.run(&["new", "testkit"]).expect(2);
}

#[test]
fn a_name_must_fit_everywhere() {
    let home = Home::new();
    home.check("new_bad_name", &["new", "tool", "../up", "--lang", "rust"]);
    home.run(&["new", "tool", "greet", "--lang", "perl"])
        .expect(2);
    assert_eq!(files(&home.workspace()), Vec::<String>::new());
}

/// What the guide shows is what a test runs.
#[test]
fn the_test_kit_stands_in_for_a_host() {
    let home = Home::new();
    home.run(&["new", "testkit"]).expect(0);
    home.write("test_kit.py", include_str!("new/test_kit.py"));
    let said = succeeds(&python(&home.workspace(), &["-m", "unittest", "test_kit"]));
    assert!(said.contains("OK") && !said.contains("skipped"), "{said}");
}

/// The same with the real `amplifier-core`, which the test command installs.
#[test]
fn the_test_kit_works_beside_amplifier_core() {
    let peer = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/bin/python");
    assert!(peer.exists(), "the packages are missing: cargo xtask peers");
    let home = Home::new();
    home.run(&["new", "testkit"]).expect(0);
    home.run(&["new", "tool", "word-count", "--lang", "python"])
        .expect(0);
    home.write("test_kit.py", include_str!("new/test_kit.py"));
    for (folder, arguments) in [
        ("", vec!["-m", "unittest", "test_kit"]),
        (
            "tool-word-count",
            vec!["-m", "unittest", "discover", "tests"],
        ),
    ] {
        let output = Command::new(&peer)
            .args(arguments)
            .current_dir(home.workspace().join(folder))
            .output();
        succeeds(&output.unwrap());
    }
    let which = ["-c", "import toolpost_testkit as kit; print(kit.CORE)"];
    let output = Command::new(&peer)
        .args(which)
        .current_dir(home.workspace())
        .output()
        .unwrap();
    assert!(succeeds(&output).starts_with('2'));
}
