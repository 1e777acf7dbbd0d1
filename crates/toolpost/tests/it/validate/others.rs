//! Components, services and programs under `toolpost validate`.

use std::{path::Path, process::Command};

use super::marks;
use crate::home::Home;

fn validated(home: &Home, path: &str) -> Vec<String> {
    marks(&home.run(&["validate", path, "--json"]).json())
}

fn made(home: &Home, name: &str, manifest: &str) {
    std::fs::create_dir_all(home.workspace().join(name)).unwrap();
    home.write(&format!("{name}/amplifier.toml"), manifest);
}

#[cfg(feature = "wasm")]
#[test]
fn a_component_is_loaded_and_called() {
    let home = Home::new();
    let text = include_str!("../../../../wasm/tests/fixtures/echo.wat");
    let write = |text: &str| {
        std::fs::write(
            home.workspace().join("echo/module.wasm"),
            wat::parse_str(text).unwrap(),
        )
        .unwrap();
    };
    let manifest = "[module]\ntransport = \"wasm\"\ntype = \"tool\"\n";
    made(&home, "echo", manifest);
    write(text);
    // It gives back whatever it is given, a number for a text too.
    assert_eq!(validated(&home, "echo"), ["schema_honesty?"]);
    assert_eq!(validated(&home, "echo/module.wasm"), ["schema_honesty?"]);
    write(&text.replace("amplifier:modules/tool@", "amplifier:modules/provider@"));
    assert_eq!(validated(&home, "echo"), ["module_importable"]);
    write(text);
    made(
        &home,
        "echo",
        &format!("{manifest}sha256 = \"{}\"\n", "0".repeat(64)),
    );
    assert_eq!(validated(&home, "echo"), ["module_importable"]);
    made(&home, "echo", &manifest.replace("\"tool\"", "\"provider\""));
    assert_eq!(
        validated(&home, "echo"),
        ["module_importable", "module_type"]
    );
}

#[cfg(feature = "grpc")]
#[test]
fn a_service_is_reached_and_called() {
    use crate::grpc::peer::{Peer, generated};

    let home = Home::new();
    let folder = generated();
    let peer = Peer::start(folder.path(), 0);
    let endpoint = peer.endpoint();
    made(
        &home,
        "worker",
        &format!(
            "[module]\ntransport = \"grpc\"\ntype = \"tool\"\n[grpc]\nendpoint = \"{endpoint}\"\n"
        ),
    );
    // It does what `do` says, and raises where that is nothing it knows.
    let expected = [
        "empty_input",
        "wrong_types?",
        "error_handling?",
        "schema_honesty?",
    ];
    assert_eq!(validated(&home, "worker"), expected);
    drop(peer);
    assert_eq!(validated(&home, "worker"), ["module_importable"]);
}

/// The one test that fetches: a new crate has dependencies of its own. The versions are those of this workspace, so
/// that nearly all of them are here already.
#[cfg(feature = "grpc")]
#[test]
fn a_new_rust_module_builds_and_passes() {
    let home = Home::new();
    home.run(&["new", "tool", "word-count", "--lang", "rust"])
        .expect(0);
    let module = home.workspace().join("tool-word-count");
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    std::fs::copy(lock, module.join("Cargo.lock")).unwrap();
    for step in ["test", "build"] {
        let mut cargo = Command::new("cargo");
        // The commands of the guide, without the minutes that optimising its dependencies takes.
        cargo
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false");
        let cargo = cargo
            .args([step, "--release"])
            .current_dir(&module)
            .output()
            .unwrap();
        assert!(
            cargo.status.success(),
            "{}",
            String::from_utf8_lossy(&cargo.stderr)
        );
    }
    assert_eq!(validated(&home, "tool-word-count"), Vec::<String>::new());
    let plan = [
        "--mount-plan",
        "tool-word-count/plan.yaml",
        "--mode",
        "bypass",
    ];
    let call = ["call", "word_count", "text=one two two"];
    let called = home.run(&[&call[..], &plan[..]].concat()).expect(0);
    assert!(called.stdout.contains("\"words\": 3"), "{}", called.stdout);
}
