use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use serde_json::Map;
use tempfile::TempDir;
use toolpost_amplifier::{
    LoadFailure, LoadReason, ModuleId, ModuleKind, ModuleTransport, PlannedModule,
};

use super::resolve;

/// A folder `module` with these files, in a folder of its own.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let home = TempDir::new().unwrap();
    for (name, text) in files {
        let path = home.path().join("module").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home
}

fn planned(kind: ModuleKind) -> PlannedModule {
    let place = "plan.yaml: tools[0]".to_owned();
    PlannedModule {
        kind,
        id: ModuleId::new("tool-x"),
        source: None,
        config: Map::new(),
        place,
    }
}

fn transport(path: &Path) -> ModuleTransport {
    resolve(&planned(ModuleKind::Tool), path).unwrap().transport
}

fn failure(path: &Path) -> LoadFailure {
    resolve(&planned(ModuleKind::Tool), path).unwrap_err()
}

const WASM: &str = "[module]\ntype = 'tool'\ntransport = 'wasm'\n";
const RUST: &str = "[module]\ntype = 'tool'\ntransport = 'rust'\ncrate = 'my-tool'\n";

#[test]
fn a_folder_is_resolved_by_manifest_then_component_then_package() {
    let grpc = "[module]\ntype='tool'\ntransport='grpc'\n[grpc]\nendpoint='localhost:1'";
    let home = folder(&[
        ("amplifier.toml", grpc),
        ("a.wasm", ""),
        ("pkg/__init__.py", ""),
    ]);
    let module = home.path().join("module");
    assert_eq!(
        transport(&module),
        ModuleTransport::Grpc {
            endpoint: "localhost:1".to_owned()
        }
    );
    assert_eq!(
        transport(&module.join("amplifier.toml")),
        transport(&module)
    );
    fs::remove_file(module.join("amplifier.toml")).unwrap();
    let artifact = module.join("a.wasm").canonicalize().unwrap();
    assert_eq!(
        transport(&module),
        ModuleTransport::Wasm {
            artifact,
            sha256: None
        }
    );
    assert!(matches!(
        transport(&module.join("a.wasm")),
        ModuleTransport::Wasm { .. }
    ));
    fs::remove_file(module.join("a.wasm")).unwrap();
    assert_eq!(transport(&module), ModuleTransport::Python);
    assert_eq!(
        transport(&module.join("pkg/__init__.py")),
        ModuleTransport::Python
    );
    fs::remove_dir_all(module.join("pkg")).unwrap();
    assert_eq!(failure(&module).reason, LoadReason::InvalidPackageLayout);
    fs::create_dir_all(module.join("src/pkg")).unwrap();
    fs::write(module.join("src/pkg/__init__.py"), "").unwrap();
    assert_eq!(transport(&module), ModuleTransport::Python);
}

#[test]
fn what_is_not_there_is_told() {
    let home = folder(&[("amplifier.toml", "[module]\ntype='tool'")]);
    let module = home.path().join("module");
    for (path, reason, said) in [
        (
            home.path().join("nothing"),
            LoadReason::MissingSource,
            "does not exist",
        ),
        (
            module.join("amplifier.toml/x"),
            LoadReason::MissingSource,
            "does not exist",
        ),
        (
            module.clone(),
            LoadReason::InvalidPackageLayout,
            "no Python package",
        ),
    ] {
        let failure = failure(&path);
        assert_eq!(failure.reason, reason, "{failure}");
        assert!(failure.message.contains(said), "{failure}");
        assert_eq!(failure.origin, Some(path.display().to_string()));
    }
}

#[test]
fn a_component_that_lies_one_folder_up_is_pointed_out() {
    let home = folder(&[("amplifier.toml", WASM)]);
    let module = home.path().join("module");
    assert!(failure(&module).message.contains("build it first"));
    fs::write(home.path().join("calculator.wasm"), "").unwrap();
    let said = failure(&module).message;
    assert!(
        said.contains("`module.wasm`") && said.contains("the folder above has `calculator.wasm`"),
        "{said}"
    );
    fs::write(module.join("other.wasm"), "").unwrap();
    let said = failure(&module).message;
    assert!(said.contains("the folder has `other.wasm`"), "{said}");
}

#[test]
fn a_link_out_of_the_folder_is_not_followed() {
    let home = folder(&[("amplifier.toml", WASM)]);
    let module = home.path().join("module");
    fs::write(home.path().join("secret.wasm"), "").unwrap();
    symlink(home.path().join("secret.wasm"), module.join("module.wasm")).unwrap();
    assert!(
        failure(&module).message.contains("links to a file outside"),
        "{}",
        failure(&module)
    );
    fs::remove_file(module.join("module.wasm")).unwrap();
    fs::write(module.join("real.wasm"), "").unwrap();
    symlink("real.wasm", module.join("module.wasm")).unwrap();
    assert!(matches!(transport(&module), ModuleTransport::Wasm { .. }));
}

#[test]
fn a_sidecar_needs_a_program_that_can_be_started() {
    let home = folder(&[("amplifier.toml", RUST)]);
    let module = home.path().join("module");
    assert!(failure(&module).message.contains("cargo build --release"));
    let program = module.join("target/release/my-tool");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(failure(&module).message.contains("is not executable"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        transport(&module),
        ModuleTransport::Rust {
            name: "my-tool".to_owned()
        }
    );
}

#[test]
fn the_plan_decides_what_a_python_module_is_and_nothing_else() {
    let manifest = "[module]\ntype = 'provider'\n";
    let home = folder(&[("amplifier.toml", manifest), ("pkg/__init__.py", "")]);
    let module = home.path().join("module");
    let resolved = resolve(&planned(ModuleKind::Hook), &module).unwrap();
    assert!(
        resolved.notes[0].contains("provider"),
        "{:?}",
        resolved.notes
    );
    fs::write(module.join("amplifier.toml"), WASM).unwrap();
    fs::write(module.join("module.wasm"), "").unwrap();
    assert!(matches!(transport(&module), ModuleTransport::Wasm { .. }));
    let failure = resolve(&planned(ModuleKind::Hook), &module).unwrap_err();
    assert_eq!(failure.reason, LoadReason::InvalidModuleMetadata);
}

#[test]
fn a_broken_or_endless_manifest_is_refused() {
    let home = folder(&[("amplifier.toml", "[module")]);
    let module = home.path().join("module");
    assert_eq!(failure(&module).reason, LoadReason::InvalidModuleMetadata);
    fs::write(module.join("amplifier.toml"), "#".repeat(70_000)).unwrap();
    assert!(
        failure(&module).message.contains("longer than"),
        "{}",
        failure(&module)
    );
    fs::write(
        module.join("amplifier.toml"),
        "[module]\ntype='tool'\ntransport='wsam'",
    )
    .unwrap();
    assert!(
        failure(&module).message.contains("wsam"),
        "{}",
        failure(&module)
    );
}

#[test]
fn several_components_are_told() {
    let home = folder(&[("b.wasm", ""), ("a.wasm", "")]);
    let resolved = resolve(&planned(ModuleKind::Tool), &home.path().join("module")).unwrap();
    assert!(
        resolved.notes[0].contains("`b.wasm`"),
        "{:?}",
        resolved.notes
    );
}
