use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    sync::Arc,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toolpost_model::{CallContext, EffectClass, ErrorClass, ResourceAccess, ResourceKey, ToolCall};

use crate::desk::{Desk, Failed, Port, input, structured, tools_of};

/// SHA-256 of "old".
const OLD: &str = "bb0bebd66d8b6ebef2a4afb3c0c57caa5e3e4ab2ffd4eb0bb1f6a42b5e3a1a6e";

fn sha_of(desk: &Desk, path: &str) -> String {
    structured(&desk.read(path).unwrap())["sha256"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn write_expecting(desk: &Desk, path: &str, content: &str, sha256: &str) -> Result<Value, Failed> {
    let arguments = json!({ "path": path, "content": content, "expected_sha256": sha256 });
    desk.call("files.write_file", arguments)
        .map(|output| structured(&output).clone())
}

#[test]
fn a_file_is_made_and_then_replaced() {
    let desk = Desk::new();
    let output = desk.write("a.txt", "hello world\n").unwrap();
    assert_eq!(
        output.summary.as_deref(),
        Some("wrote 12 bytes to a.txt (new)")
    );
    let sha256 = sha_of(&desk, "a.txt");
    assert_eq!(
        structured(&output),
        &json!({ "path": "a.txt", "bytes": 12, "created": true, "sha256": sha256 })
    );
    assert_eq!(
        fs::metadata(desk.path("a.txt")).unwrap().mode() & 0o133,
        0,
        "no more than 0644"
    );

    let output = desk.write("./a.txt", "").unwrap();
    assert_eq!(output.summary.as_deref(), Some("wrote 0 bytes to a.txt"));
    assert_eq!(structured(&output)["created"], false);
    assert_eq!(structured(&output)["previous_sha256"], sha256);
    assert_eq!(
        desk.snapshot().len(),
        4,
        "w, w/a.txt, outside, outside/secret.txt"
    );
}

#[test]
fn mode_and_owner_are_kept_but_not_lent_rights() {
    let desk = Desk::new();
    desk.file("run.sh", "old");
    fs::set_permissions(desk.path("run.sh"), fs::Permissions::from_mode(0o6751)).unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(desk.path("run.sh"), Some(1234), Some(4321)).unwrap();
    }
    desk.write("run.sh", "new").unwrap();
    let now = fs::metadata(desk.path("run.sh")).unwrap();
    assert_eq!(now.mode() & 0o7777, 0o751);
    assert!(!root || (now.uid(), now.gid()) == (1234, 4321));
}

#[test]
fn links_inside_stay_links() {
    let desk = Desk::new();
    desk.file("sub/real.txt", "old");
    desk.link("link.txt", "sub/real.txt");
    desk.link("dangling.txt", "sub/new.txt");
    desk.link("dir", "sub");
    let output = desk.write("link.txt", "through").unwrap();
    assert_eq!(structured(&output)["path"], "sub/real.txt");
    desk.write("dangling.txt", "made").unwrap();
    desk.write("dir/third.txt", "third").unwrap();
    for (link, target) in [
        ("link.txt", "sub/real.txt"),
        ("dangling.txt", "sub/new.txt"),
        ("dir", "sub"),
    ] {
        assert_eq!(fs::read_link(desk.path(link)).unwrap(), Path::new(target));
    }
    for (file, content) in [
        ("sub/real.txt", "through"),
        ("sub/new.txt", "made"),
        ("sub/third.txt", "third"),
    ] {
        assert_eq!(fs::read_to_string(desk.path(file)).unwrap(), content);
    }
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let desk = Desk::new();
    fs::create_dir(desk.path("dir")).unwrap();
    mknodat(
        CWD,
        desk.path("pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    desk.file("file", "old");
    let before = desk.snapshot();
    for (path, class, part) in [
        ("dir", ErrorClass::ExecutionFailed, "`dir` is a directory"),
        (".", ErrorClass::InvalidArguments, "names a directory"),
        ("dir/", ErrorClass::InvalidArguments, "names a directory"),
        ("new/", ErrorClass::InvalidArguments, "names a directory"),
        ("dir/..", ErrorClass::InvalidArguments, "names a directory"),
        (
            "pipe",
            ErrorClass::ExecutionFailed,
            "`pipe` is a named pipe",
        ),
        (
            "file/below",
            ErrorClass::ExecutionFailed,
            "`file` is not a directory",
        ),
        (
            "new/below",
            ErrorClass::ExecutionFailed,
            "the directory `new` does not exist",
        ),
    ] {
        let failed = desk.write(path, "new").unwrap_err();
        assert_eq!(failed.class, class, "{path}: {failed:?}");
        assert!(
            failed.message.contains(part) && failed.untouched,
            "{path}: {failed:?}"
        );
    }
    assert_eq!(desk.snapshot(), before);
}

#[test]
fn directories_are_made_only_when_asked_for() {
    let desk = Desk::new();
    let failed = desk.write("x/y/z.txt", "new").unwrap_err();
    assert_eq!(
        (failed.code.as_str(), failed.hint.as_str()),
        ("not_found", "set `create_directories: true` to create it")
    );
    let arguments = json!({ "path": "x/y/z.txt", "content": "new", "create_directories": true });
    desk.call("files.write_file", arguments).unwrap();
    assert_eq!(fs::read_to_string(desk.path("x/y/z.txt")).unwrap(), "new");
}

#[test]
fn content_that_changed_is_not_overwritten() {
    let desk = Desk::new();
    desk.file("a.txt", "old");
    let old = sha_of(&desk, "a.txt");
    let written = write_expecting(&desk, "a.txt", "new", &old.to_uppercase()).unwrap();
    assert_eq!(written["previous_sha256"], old);

    let new = sha_of(&desk, "a.txt");
    let failed = write_expecting(&desk, "a.txt", "newer", &old).unwrap_err();
    assert_eq!(
        (failed.class, failed.code.as_str()),
        (ErrorClass::ExecutionFailed, "changed")
    );
    assert!(failed.untouched);
    assert_eq!(
        failed.message,
        format!(
            "`a.txt` has changed: its content has sha256 {}, expected {}",
            &new[..12],
            &old[..12]
        )
    );
    let failed = write_expecting(&desk, "b.txt", "newer", &old).unwrap_err();
    assert_eq!(failed.code, "changed");
    assert!(
        failed.message.starts_with("`b.txt` does not exist"),
        "{failed:?}"
    );
    let failed = write_expecting(&desk, "a.txt", "newer", "abc").unwrap_err();
    assert_eq!(
        (failed.class, failed.hint.as_str()),
        (ErrorClass::InvalidArguments, "/expected_sha256")
    );
    assert_eq!(fs::read_to_string(desk.path("a.txt")).unwrap(), "new");
    assert!(!desk.path("b.txt").exists());
}

#[test]
fn a_change_between_comparing_and_replacing_is_noticed() {
    let desk = Desk::new();
    desk.file("a.txt", "old");
    let path = desk.path("a.txt");
    let old = sha_of(&desk, "a.txt");
    let arguments = json!({ "path": "a.txt", "content": "new", "expected_sha256": old });
    let mut noticed = 0;
    for moment in 0..6 {
        fs::write(&path, "old").unwrap();
        let path = path.clone();
        let port = Port::new(move |look| {
            if look == moment {
                fs::write(&path, "somebody else's").unwrap();
            }
            false
        });
        if let (Err(failed), _) = desk.call_with("files.write_file", arguments.clone(), port) {
            assert_eq!(failed.code, "changed", "{failed:?}");
            assert_eq!(
                fs::read_to_string(desk.path("a.txt")).unwrap(),
                "somebody else's"
            );
            noticed += 1;
        }
    }
    assert!(noticed >= 3, "noticed only {noticed} times");
}

#[test]
fn a_stopped_write_leaves_nothing_behind() {
    let desk = Desk::new();
    desk.file("a.txt", "old");
    let before = desk.snapshot();
    let arguments = [
        json!({ "path": "a.txt", "content": "new" }),
        json!({ "path": "x/y/z.txt", "content": "new", "create_directories": true }),
    ];
    for arguments in arguments {
        let mut stopped = 0;
        let done = (0..20).find(|moment| {
            let moment = *moment;
            let (result, _) = desk.call_with(
                "files.write_file",
                arguments.clone(),
                Port::new(move |look| look == moment),
            );
            let Err(failed) = result else { return true };
            assert!(
                failed.class == ErrorClass::Canceled && failed.untouched,
                "{failed:?}"
            );
            assert_eq!(desk.snapshot(), before, "stopped at look {moment}");
            stopped += 1;
            false
        });
        assert!(done.is_some() && stopped >= 3, "stopped {stopped} times");
        fs::write(desk.path("a.txt"), "old").unwrap();
    }
}

#[test]
fn a_failed_rename_leaves_no_temporary_file() {
    let desk = Desk::new();
    let taken = desk.path("x/a.txt");
    let arguments = json!({ "path": "x/a.txt", "content": "new", "create_directories": true });
    // Somebody makes a directory of the file's name at the last moment before the rename.
    let port = Port::new(move |look| {
        if look == 2 {
            fs::create_dir(&taken).unwrap();
        }
        false
    });
    let failed = desk
        .call_with("files.write_file", arguments, port)
        .0
        .unwrap_err();
    assert!(
        failed.message.starts_with("cannot write `x/a.txt`: ") && failed.untouched,
        "{failed:?}"
    );
    let left: Vec<_> = fs::read_dir(desk.path("x"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.txt"]);
}

#[test]
fn a_file_system_that_takes_no_files_is_a_clear_error() {
    let tools = tools_of(Path::new("/proc/self"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for path in ["new.txt", "comm"] {
        let context = CallContext::new(Arc::new(Port::new(|_| false)));
        let call = ToolCall {
            input: input(json!({ "path": path, "content": "x" })),
            context,
        };
        let failure = runtime
            .block_on(tools["files.write_file"].execute(call))
            .unwrap_err();
        assert_eq!(failure.class, ErrorClass::ExecutionFailed);
        assert_eq!(failure.untouched, Some(true));
        assert!(
            failure
                .message
                .starts_with(&format!("cannot write `{path}`: ")),
            "{}",
            failure.message
        );
    }
}

#[test]
fn too_much_content_is_refused_by_name_of_the_limit() {
    let desk = Desk::new();
    let failed = desk
        .write("a.txt", &"x".repeat(8 * 1024 * 1024 + 1))
        .unwrap_err();
    assert_eq!(
        (failed.class, failed.hint.as_str()),
        (ErrorClass::InvalidArguments, "/content")
    );
    assert_eq!(
        failed.message,
        "the content has 8388609 bytes, the limit is 8388608"
    );
    desk.write("a.txt", &"x".repeat(8 * 1024 * 1024)).unwrap();
}

#[test]
fn writers_at_the_same_time_leave_one_whole_content() {
    let desk = Desk::new();
    let content = |writer: u8| char::from(b'a' + writer).to_string().repeat(100_000);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let desk = &desk;
            scope.spawn(move || {
                for _ in 0..10 {
                    desk.write("shared.txt", &content(writer)).unwrap();
                    let seen = fs::read_to_string(desk.path("shared.txt")).unwrap();
                    assert!(
                        seen.len() == 100_000
                            && seen.bytes().all(|byte| byte == seen.as_bytes()[0])
                    );
                }
            });
        }
    });
    assert_eq!(
        fs::read_dir(desk.path("")).unwrap().count(),
        1,
        "only the file is left"
    );
}

#[test]
fn effects_name_what_is_written() {
    let desk = Desk::new();
    desk.file("sub/real.txt", "old");
    desk.link("link.txt", "sub/real.txt");
    let check = |arguments: Value, uses: &[(&str, ResourceAccess)], idempotent: bool| {
        let effects = desk.effects("files.write_file", arguments);
        assert_eq!(effects.class, EffectClass::Write);
        let found: Vec<_> = effects
            .uses
            .iter()
            .map(|used| (used.key.clone(), used.access))
            .collect();
        let key = |place: &str| ResourceKey::path(desk.path(place).to_str().unwrap());
        let expected: Vec<_> = uses
            .iter()
            .map(|(place, access)| (key(place), *access))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(effects.idempotent, idempotent);
    };
    let write = |place| (place, ResourceAccess::Write);
    let read = |place| (place, ResourceAccess::Read);
    check(
        json!({ "path": "new.txt", "content": "" }),
        &[write("new.txt")],
        true,
    );
    check(
        json!({ "path": "link.txt", "content": "" }),
        &[write("sub/real.txt")],
        true,
    );
    // To compare digests is to learn what is in the file.
    let compared = json!({ "path": "link.txt", "content": "", "expected_sha256": OLD });
    check(
        compared,
        &[write("sub/real.txt"), read("sub/real.txt")],
        false,
    );
    check(
        json!({ "path": "x/y/z.txt", "content": "" }),
        &[write("x/y/z.txt")],
        true,
    );
    // The lock is on what is made; a rule may speak of the file.
    let made = |path: &str| json!({ "path": path, "content": "", "create_directories": true });
    check(made("x/y/z.txt"), &[write("x"), write("x/y/z.txt")], true);
    check(
        made("sub/y/z.txt"),
        &[write("sub/y"), write("sub/y/z.txt")],
        true,
    );
    check(made("sub/z.txt"), &[write("sub/z.txt")], true);
}
