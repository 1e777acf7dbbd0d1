//! A component that was written in Python: built here by componentize-py, and tried with and without grants.
//!
//! It is eighteen megabytes with an interpreter inside, so what is built and what is compiled are kept under `target`.

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;
use toolpost_model::{ErrorClass, EventBody, Principal, Stage};
use toolpost_testkit::{CallEventRecorder, TestHost};
use toolpost_wasm::{DirectoryAccess, DirectoryGrant, InstanceUse, WasmModules, WasmSettings};

use crate::workshop::planned;

/// The component and an engine that has compiled it, made once for all tests here.
async fn component() -> &'static (WasmModules, PathBuf) {
    static MADE: OnceCell<(WasmModules, PathBuf)> = OnceCell::const_new();
    MADE.get_or_init(|| async {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .canonicalize()
            .unwrap();
        let kept = root.join("target/wasm-fixtures");
        fs::create_dir_all(&kept).unwrap();
        // Tests of a run are processes of their own: the first one builds and compiles, the others wait and take it
        // from there. The lock goes with the file.
        let lock = fs::File::create(kept.join("lock")).unwrap();
        lock.lock().unwrap();
        let modules = WasmModules::new(Some(&kept.join("compiled"))).unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/python");
        let path = built(&root, &sources, "look_around", "toolset-module");
        let first = modules
            .load(
                &planned(&path, &Map::new()),
                &path,
                None,
                WasmSettings::default(),
            )
            .await;
        first.unwrap_or_else(|error| panic!("{error}"));
        (modules, path)
    })
    .await
}

/// A Python module of a folder as a component. It is built when its source, or the world it is for, is not what it was.
fn built(root: &Path, sources: &Path, name: &str, world: &str) -> PathBuf {
    let kept = root.join("target/wasm-fixtures");
    let builder = root.join("target/peers/bin/componentize-py");
    assert!(
        builder.exists(),
        "componentize-py is not in target/peers, so no component can be built from Python\n\
         hint: run `cargo xtask peers`"
    );
    let of_crate = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut digest = Sha256::new();
    for file in [
        of_crate("wit/toolpost-modules.wit"),
        sources.join(format!("{name}.py")),
    ] {
        digest.update(fs::read(file).unwrap());
    }
    let digest: String = digest
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let path = kept.join(format!("{name}-{digest}.wasm"));
    if path.exists() {
        return path;
    }
    let unfinished = kept.join(format!("unfinished-{name}-{}.wasm", std::process::id()));
    let mut command = Command::new(builder);
    command
        .arg("-d")
        .arg(of_crate("wit"))
        .args(["-w", world, "componentize", name, "-p"]);
    let output = command
        .arg(sources)
        .arg("-o")
        .arg(&unfinished)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::rename(unfinished, &path).unwrap();
    path
}

/// The component of the guide, as it stands there.
#[tokio::test]
async fn the_component_of_the_guide_works() {
    let (modules, _) = component().await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let guide = fs::read_to_string(root.join("docs/wasm.md")).unwrap();
    let (_, code) = guide.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("words.py"), code).unwrap();
    let path = built(
        &root,
        folder.path(),
        "words",
        "amplifier:modules/tool-module",
    );
    let module = modules
        .load(
            &planned(&path, &Map::new()),
            &path,
            None,
            WasmSettings::default(),
        )
        .await;
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    let host = TestHost::build(|builder| builder.source(module)).await;
    let counted = host
        .call("count_words", json!({ "text": "one two three" }))
        .await;
    assert_eq!(
        counted.structured_content,
        Some(json!({ "words": 3 })),
        "{:?}",
        counted.error
    );
    let refused = host.call("count_words", json!({ "text": "" })).await;
    assert_eq!(refused.error.unwrap().message, "there is no text");
}

async fn host(config: Value, settings: WasmSettings) -> TestHost {
    let (modules, path) = component().await;
    let Value::Object(config) = config else {
        panic!("an object")
    };
    let module = modules
        .load(&planned(path, &config), path, None, settings)
        .await;
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    TestHost::build(|builder| builder.source(module)).await
}

fn grant(folder: &Path, access: DirectoryAccess) -> WasmSettings {
    let granted = DirectoryGrant {
        host: folder.to_owned(),
        guest: "/data".to_owned(),
        access,
    };
    WasmSettings {
        directories: vec![granted],
        ..WasmSettings::default()
    }
}

#[tokio::test]
async fn a_python_component_serves_its_tools() {
    let host = host(json!({ "greeting": "hello" }), WasmSettings::default()).await;
    let result = host
        .call("count_words", json!({ "text": "one two  three" }))
        .await;
    assert_eq!(
        result.structured_content,
        Some(json!({ "words": 3, "greeting": "hello" })),
        "{:?}",
        result.error
    );
    let wrong = host.call("count_words", json!({ "text": 3 })).await;
    assert_eq!(wrong.error_class(), Some(ErrorClass::InvalidArguments));

    let (modules, path) = component().await;
    let config: Map<_, _> = [("forbidden".to_owned(), json!(true))]
        .into_iter()
        .collect();
    let refused = modules
        .load(&planned(path, &config), path, None, WasmSettings::default())
        .await;
    let said = refused.err().unwrap().message;
    assert!(
        said.contains("it does not accept its configuration: `forbidden` is not an option"),
        "{said}"
    );
}

#[tokio::test]
async fn what_it_prints_is_told_and_what_it_raises_is_shown() {
    let host = host(json!({}), WasmSettings::default()).await;
    let (listener, events) = CallEventRecorder::new(64);
    let request = host.request("crash", json!({})).notify(Arc::new(listener));
    let result = host.host.call(request).await.result().clone();
    let text = result.model_text();
    assert!(
        text.contains("about to crash") && text.contains("nobody expected this"),
        "{text}"
    );
    let printed: String = events
        .all()
        .await
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::Output(chunk) => Some(chunk.text),
            _ => None,
        })
        .collect();
    assert!(printed.contains("a line on the way"), "{printed}");
}

#[tokio::test]
async fn files_are_those_of_the_granted_folders() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("note.txt"), "a note").unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "a secret").unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("secret.txt"),
        folder.path().join("link"),
    )
    .unwrap();
    let note = json!({ "path": "/data/note.txt" });

    let without = host(json!({}), WasmSettings::default()).await;
    let there = folder.path().join("note.txt");
    for path in ["/data/note.txt", "/etc/hostname", there.to_str().unwrap()] {
        let failed = without.call("read", json!({ "path": path })).await;
        assert_eq!(
            failed.error_class(),
            Some(ErrorClass::ExecutionFailed),
            "{path} was read"
        );
    }

    let looks = host(json!({}), grant(folder.path(), DirectoryAccess::ReadOnly)).await;
    assert_eq!(
        looks.call("read", note.clone()).await.model_text(),
        "a note"
    );
    for path in ["/data/../secret.txt", "/data/link", "/etc/hostname"] {
        let failed = looks.call("read", json!({ "path": path })).await;
        assert_eq!(
            failed.error_class(),
            Some(ErrorClass::ExecutionFailed),
            "{path} was read"
        );
    }
    let refused = looks
        .call("write", json!({ "path": "/data/new.txt" }))
        .await;
    assert_eq!(refused.error_class(), Some(ErrorClass::ExecutionFailed));
    assert!(!folder.path().join("new.txt").exists());

    let writes = host(json!({}), grant(folder.path(), DirectoryAccess::ReadWrite)).await;
    assert_eq!(
        writes
            .call("write", json!({ "path": "/data/new.txt" }))
            .await
            .model_text(),
        "done"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("new.txt")).unwrap(),
        "written by a guest"
    );
}

#[tokio::test]
async fn variables_and_connections_are_granted_one_by_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = json!({ "port": listener.local_addr().unwrap().port() });
    let without = host(json!({}), WasmSettings::default()).await;
    let refused = without.call("connect", port.clone()).await.error.unwrap();
    assert_eq!(
        &*refused.code, "execution_failed",
        "an `OSError` was expected: {refused:?}"
    );
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody connected");
    listener.set_nonblocking(false).unwrap();
    let seen = without
        .call("variables", json!({}))
        .await
        .structured_content
        .unwrap();
    assert!(
        seen.get("HOME").is_none() && seen.get("PATH").is_none(),
        "{seen}"
    );

    let settings = WasmSettings {
        network: true,
        environment: [("LEVEL".to_owned(), "3".to_owned())].into(),
        ..WasmSettings::default()
    };
    let with = host(json!({}), settings).await;
    // A thread of its own: where nobody connects, nobody waits for it.
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"welcome").unwrap());
    let result = with.call("connect", port).await;
    assert_eq!(result.model_text(), "welcome", "{:?}", result.error);
    assert_eq!(
        with.call("variables", json!({}))
            .await
            .structured_content
            .unwrap()["LEVEL"],
        "3"
    );
}

#[tokio::test]
async fn a_guest_that_sleeps_is_stopped() {
    let host = host(json!({}), WasmSettings::default()).await;
    let mut request = host.request("sleep", json!({}));
    request.times.timeout = Some(Duration::from_millis(500));
    assert_eq!(
        host.host.call(request).await.result().error_class(),
        Some(ErrorClass::Timeout)
    );

    let (listener, mut events) = CallEventRecorder::new(64);
    let sleeping = host.request("sleep", json!({})).notify(Arc::new(listener));
    let running = host.host.start(sleeping).await;
    while !matches!(
        events.next().await.unwrap().body,
        EventBody::Stage {
            stage: Stage::Execute
        }
    ) {}
    assert!(
        host.host
            .cancel(running.invocation_id(), &Principal::agent("test"))
    );
    assert_eq!(
        running.answer().await.result().error_class(),
        Some(ErrorClass::Canceled)
    );
}

#[tokio::test]
async fn a_session_keeps_the_interpreter_where_the_operator_says_so() {
    let fresh = host(json!({}), WasmSettings::default()).await;
    let kept = WasmSettings {
        instances: Some(InstanceUse::PerSession),
        ..WasmSettings::default()
    };
    let kept = host(json!({}), kept).await;
    for (host, expected) in [(fresh, ["1", "1"]), (kept, ["1", "2"])] {
        for expected in expected {
            assert_eq!(
                host.call("count_calls", json!({})).await.model_text(),
                expected
            );
        }
    }
}
