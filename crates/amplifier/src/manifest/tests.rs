use super::{
    ComponentError, DeclaredTransport, FolderError, FolderNames, FoundIn, ModuleManifest,
    ModuleManifestError, ModuleType, component_type, detect,
};

fn python() -> DeclaredTransport {
    DeclaredTransport::Python { unknown_word: None }
}

fn wasm(artifact: &str, sha256: Option<&str>) -> DeclaredTransport {
    DeclaredTransport::Wasm {
        artifact: artifact.to_owned(),
        sha256: sha256.map(str::to_owned),
    }
}

#[test]
fn a_manifest_says_what_the_module_is_and_how_it_runs() {
    let digest = "0123456789abcdef".repeat(4);
    let hashed = format!(
        "[module]\ntransport = 'wasm'\ntype = 'tool'\nartifact = 'a.wasm'\nsha256 = '{digest}'"
    );
    let grpc = DeclaredTransport::Grpc {
        endpoint: "localhost:50051".to_owned(),
    };
    let rust = DeclaredTransport::Rust {
        name: "my-tool".to_owned(),
    };
    for (text, module_type, transport) in [
        ("[module]\ntype = 'tool'", ModuleType::Tool, python()),
        (
            "[module]\ntype = 'hook'\ntransport = 'python'",
            ModuleType::Hook,
            python(),
        ),
        (
            "[module]\ntype = 'tool'\ntransport = 'wasm'",
            ModuleType::Tool,
            wasm("module.wasm", None),
        ),
        (
            hashed.as_str(),
            ModuleType::Tool,
            wasm("a.wasm", Some(&digest)),
        ),
        (
            "[module]\ntype='tool'\ntransport='grpc'\n[grpc]\nendpoint=' localhost:50051 '",
            ModuleType::Tool,
            grpc,
        ),
        (
            "[module]\ntype = 'tool'\ntransport = 'rust'\ncrate = 'my-tool'",
            ModuleType::Tool,
            rust,
        ),
        // Other people's tables and keys do not disturb.
        (
            "[module]\ntype = 'provider'\ncolour = 1\n[build]\nx = []",
            ModuleType::Provider,
            python(),
        ),
    ] {
        let read = ModuleManifest::read(text).unwrap();
        assert_eq!(
            (read.module_type, read.transport, read.notes),
            (module_type, transport, vec![]),
            "{text}"
        );
    }
}

#[test]
fn an_unknown_transport_means_python_and_is_told() {
    let read = ModuleManifest::read("[module]\ntype = 'tool'\ntransport = 'wsam'").unwrap();
    assert_eq!(
        read.transport,
        DeclaredTransport::Python {
            unknown_word: Some("wsam".to_owned())
        }
    );
    assert!(
        read.notes[0].contains("`transport = \"wsam\"`"),
        "{:?}",
        read.notes
    );
}

#[test]
fn a_digest_that_nobody_looks_at_is_told() {
    let read = ModuleManifest::read("[module]\ntype = 'tool'\nsha256 = 'x'").unwrap();
    assert!(read.notes[0].contains("`sha256`"), "{:?}", read.notes);
}

#[test]
fn a_manifest_that_makes_no_sense_is_refused_by_name() {
    let upper = "0123456789ABCDEF".repeat(4);
    let hashed = format!("[module]\ntransport = 'wasm'\ntype = 'tool'\nsha256 = '{upper}'");
    for (text, expected) in [
        ("", ModuleManifestError::NoModule),
        ("[grpc]\nendpoint = 'a:1'", ModuleManifestError::NoModule),
        ("[module]\ntransport = 'wasm'", ModuleManifestError::NoType),
        (
            "[module]\ntype = 'tol'",
            ModuleManifestError::UnknownType("tol".to_owned()),
        ),
        (
            "[module]\ntype='tool'\ntransport='wasm'\nartifact='../a.wasm'",
            ModuleManifestError::Artifact("../a.wasm".into()),
        ),
        (
            "[module]\ntype='tool'\ntransport='wasm'\nartifact='.a.wasm'",
            ModuleManifestError::Artifact(".a.wasm".into()),
        ),
        (
            "[module]\ntype='tool'\ntransport='wasm'\nartifact='a\\b'",
            ModuleManifestError::Artifact("a\\\\b".into()),
        ),
        (
            "[module]\ntype='tool'\ntransport='wasm'\nartifact=''",
            ModuleManifestError::Artifact(String::new()),
        ),
        (hashed.as_str(), ModuleManifestError::Sha256(upper)),
        (
            "[module]\ntype='tool'\ntransport='rust'",
            ModuleManifestError::NoCrate,
        ),
        (
            "[module]\ntype='tool'\ntransport='rust'\ncrate='../x'",
            ModuleManifestError::Crate("../x".into()),
        ),
        (
            "[module]\ntype='tool'\ntransport='rust'\ncrate='-x'",
            ModuleManifestError::Crate("-x".into()),
        ),
        (
            "[module]\ntype='tool'\ntransport='grpc'",
            ModuleManifestError::NoEndpoint,
        ),
        (
            "[module]\ntype='tool'\ntransport='grpc'\n[grpc]\nendpoint='  '",
            ModuleManifestError::NoEndpoint,
        ),
    ] {
        assert_eq!(ModuleManifest::read(text), Err(expected), "{text}");
    }
    for broken in ["[module", "[module]\ntype = 5", "module = 'tool'"] {
        assert!(
            matches!(
                ModuleManifest::read(broken),
                Err(ModuleManifestError::Toml(_))
            ),
            "{broken}"
        );
    }
}

#[test]
fn a_folder_is_what_its_names_say() {
    let folder = |files: &[&str], packages: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        detect(&FolderNames {
            files: owned(files),
            packages: owned(packages),
        })
    };
    let component = |artifact: &str, passed_over: &[&str]| FoundIn::Wasm {
        artifact: artifact.to_owned(),
        passed_over: passed_over.iter().map(|name| (*name).to_owned()).collect(),
    };
    for (files, packages, expected) in [
        (
            &["a.wasm", "amplifier.toml"][..],
            &["pkg"][..],
            Ok(FoundIn::Manifest),
        ),
        (
            &["z.wasm", "a.wasm"],
            &["pkg"],
            Ok(component("a.wasm", &["z.wasm"])),
        ),
        (
            &["README.md"],
            &["amplifier_module_tool_x"],
            Ok(FoundIn::Python),
        ),
        (&["__init__.py"], &[], Ok(FoundIn::Python)),
        (&["pyproject.toml"], &[], Ok(FoundIn::Python)),
        (&["README.md", ".hidden.wasm"], &[], Err(FolderError)),
        (&[], &[], Err(FolderError)),
    ] {
        assert_eq!(folder(files, packages), expected, "{files:?} {packages:?}");
    }
}

#[test]
fn a_component_is_what_it_exports() {
    let unknown = |exports: &[&str]| ComponentError::Unknown {
        exports: exports.iter().map(|name| (*name).to_owned()).collect(),
    };
    for (exports, expected) in [
        (&["amplifier:modules/tool@1.0.0"][..], Ok(ModuleType::Tool)),
        (&["amplifier:modules/tool"], Ok(ModuleType::Tool)),
        (
            &["amplifier:modules/tool@1.2.0", "wasi:cli/run@0.2.3"],
            Ok(ModuleType::Tool),
        ),
        (&["get-spec", "execute"], Ok(ModuleType::Tool)),
        (
            &["amplifier:modules/hook-handler@1.0.0"],
            Ok(ModuleType::Hook),
        ),
        (
            &["amplifier:modules/approval-provider@1.0.0"],
            Ok(ModuleType::Approval),
        ),
        (
            &["amplifier:modules/provider@1.0.0"],
            Ok(ModuleType::Provider),
        ),
        (
            &["amplifier:modules/context-manager@1.0.0"],
            Ok(ModuleType::Context),
        ),
        (
            &["amplifier:modules/orchestrator@1.0.0"],
            Ok(ModuleType::Orchestrator),
        ),
        (
            &["amplifier:modules/toolbox@1.0.0"],
            Err(unknown(&["amplifier:modules/toolbox@1.0.0"])),
        ),
        (&["execute"], Err(unknown(&["execute"]))),
        (&[], Err(unknown(&[]))),
        (
            &[
                "amplifier:modules/tool@1.0.0",
                "amplifier:modules/provider@1.0.0",
            ],
            Err(ComponentError::Ambiguous {
                found: vec![ModuleType::Tool, ModuleType::Provider],
            }),
        ),
    ] {
        assert_eq!(
            component_type(exports.iter().copied()),
            expected,
            "{exports:?}"
        );
    }
}
