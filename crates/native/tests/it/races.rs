//! Names that are swapped while a call runs. Nothing outside may be read or written, whoever wins.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use toolpost_model::{CallContext, ErrorClass, ToolCall};

use crate::desk::{Desk, Port, SECRET, input, text};

/// Two names change places in one step, so that each always exists.
fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

/// `dir` and `file.txt` are real, `spare_dir` and `spare.txt` are links to the same names outside.
fn desk_to_swap() -> Desk {
    let desk = Desk::new();
    desk.file("dir/secret.txt", "inside");
    desk.file("file.txt", "inside");
    desk.link("spare_dir", desk.outside());
    desk.link("spare.txt", "../outside/secret.txt");
    desk
}

/// Also on a panic: a failed assertion must not wait for a thread that nobody stops.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Seen {
    inside: usize,
    refused: usize,
}

#[test]
fn a_directory_that_turns_into_a_link_all_the_time_never_leads_out() {
    let desk = desk_to_swap();
    let stop = AtomicBool::new(false);
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        let _stop_at_the_end = StopWhenDropped(&stop);
        scope.spawn(|| {
            let dir = desk.path("dir");
            let spare_dir = desk.path("spare_dir");
            let file = desk.path("file.txt");
            let spare = desk.path("spare.txt");
            while !stop.load(Ordering::Relaxed) {
                exchange(&dir, &spare_dir);
                exchange(&file, &spare);
            }
        });
        let begun = Instant::now();
        // A second at least; longer only on a machine so busy that one of the two ends was not seen yet.
        while begun.elapsed() < Duration::from_secs(1)
            || (seen.inside == 0 || seen.refused == 0) && begun.elapsed() < Duration::from_secs(30)
        {
            for path in [
                "dir/secret.txt",
                "dir/../dir/secret.txt",
                "file.txt",
                "spare_dir/secret.txt",
            ] {
                read_once(&desk, path, &mut seen);
            }
            for path in [
                "dir/new.txt",
                "dir/secret.txt",
                "file.txt",
                "spare_dir/made/new.txt",
            ] {
                write_once(&desk, path, &mut seen);
            }
            for (tool, arguments) in changes_while_swapped() {
                change_once(&desk, tool, arguments, &mut seen);
            }
            desk.outside_is_untouched();
        }
    });
    assert!(
        seen.inside > 0 && seen.refused > 0,
        "both ends must be seen: {} {}",
        seen.inside,
        seen.refused
    );
}

fn read_once(desk: &Desk, path: &str, seen: &mut Seen) {
    match desk.read(path) {
        Ok(output) => {
            assert_ne!(text(&output), SECRET, "{path} was read outside");
            seen.inside += 1;
        }
        Err(failed) => seen.refused += usize::from(failed.class == ErrorClass::SandboxViolation),
    }
}

/// What is edited, moved and deleted while names are swapped; what is taken away is put back by `write_once`.
fn changes_while_swapped() -> Vec<(&'static str, serde_json::Value)> {
    let patch = "*** Begin Patch\n*** Update File: dir/secret.txt\n-inside\n+inside too\n*** Add File: dir/made/x\n+new\n*** \
                 End Patch";
    vec![
        (
            "files.edit_file",
            json!({ "path": "dir/secret.txt", "old_string": "inside", "new_string": "inside!" }),
        ),
        (
            "files.edit_file",
            json!({ "path": "file.txt", "old_string": "i", "new_string": "ii", "replace_all": true }),
        ),
        ("files.apply_patch", json!({ "patch": patch })),
        (
            "files.move_file",
            json!({ "from": "dir/new.txt", "to": "dir/moved.txt", "overwrite": true }),
        ),
        (
            "files.move_file",
            json!({ "from": "dir/moved.txt", "to": "spare_dir/moved.txt", "overwrite": true }),
        ),
        (
            "files.move_file",
            json!({ "from": "spare_dir/secret.txt", "to": "taken.txt", "overwrite": true }),
        ),
        ("files.delete_file", json!({ "path": "dir/secret.txt" })),
        (
            "files.delete_file",
            json!({ "path": "dir/made", "recursive": true }),
        ),
        (
            "files.delete_file",
            json!({ "path": "spare_dir/secret.txt" }),
        ),
    ]
}

fn change_once(desk: &Desk, tool: &str, arguments: serde_json::Value, seen: &mut Seen) {
    // Also asked, since it walks the same way.
    let _ = desk.tool(tool).effects(&input(arguments.clone()));
    match desk.call(tool, arguments) {
        Ok(output) => {
            let told = format!("{:?} {:?}", output.content, output.structured);
            assert!(!told.contains(SECRET), "{tool}: {told}");
            seen.inside += 1;
        }
        Err(failed) => seen.refused += usize::from(failed.class == ErrorClass::SandboxViolation),
    }
}

fn write_once(desk: &Desk, path: &str, seen: &mut Seen) {
    let arguments = json!({ "path": path, "content": "inside", "create_directories": true });
    match desk.call("files.write_file", arguments) {
        Ok(_) => seen.inside += 1,
        Err(failed) => seen.refused += usize::from(failed.class == ErrorClass::SandboxViolation),
    }
}

#[test]
fn a_swap_at_every_single_moment_of_a_call_never_leads_out() {
    for (tool, path) in [
        ("files.read_file", "dir/secret.txt"),
        ("files.read_file", "file.txt"),
        ("files.file_info", "dir/secret.txt"),
        ("files.list_directory", "dir"),
        ("files.list_directory", "."),
        ("files.write_file", "dir/secret.txt"),
        ("files.write_file", "dir/new/new.txt"),
        ("files.write_file", "file.txt"),
        ("files.edit_file", "dir/secret.txt"),
        ("files.edit_file", "file.txt"),
        ("files.apply_patch", "dir/secret.txt"),
        ("files.apply_patch", "file.txt"),
        ("files.delete_file", "dir/secret.txt"),
        ("files.delete_file", "dir"),
        ("files.delete_file", "file.txt"),
        ("files.move_file", "dir/secret.txt"),
        ("files.move_file", "dir"),
        ("files.move_file", "file.txt"),
    ] {
        for moment in 0..12 {
            let desk = desk_to_swap();
            let names = ["dir", "spare_dir", "file.txt", "spare.txt"].map(|name| desk.path(name));
            let port = Port::new(move |look| {
                if look == moment {
                    exchange(&names[0], &names[1]);
                    exchange(&names[2], &names[3]);
                }
                false
            });
            let arguments = match tool {
                "files.write_file" => {
                    json!({ "path": path, "content": "new", "create_directories": true })
                }
                "files.list_directory" => json!({ "path": path, "depth": 3 }),
                "files.edit_file" => json!({ "path": path, "old_string": "i", "new_string": "o" }),
                "files.apply_patch" => json!({ "patch": format!(
                    "*** Begin Patch\n*** Update File: {path}\n-inside\n+patched\n*** Add File: dir/made/new.txt\n+new\n\
                     *** End Patch"
                ) }),
                "files.delete_file" => json!({ "path": path, "recursive": true }),
                "files.move_file" => {
                    json!({ "from": path, "to": "dir2/x", "create_directories": true })
                }
                _ => json!({ "path": path }),
            };
            if let (Ok(output), _) = desk.call_with(tool, arguments, port) {
                let told = format!("{:?} {:?}", output.content, output.structured);
                assert!(!told.contains(SECRET), "{tool} {path} at {moment}: {told}");
                assert!(!told.contains("14 bytes"), "the secret's size: {told}");
            }
            desk.outside_is_untouched();
        }
    }
}

#[test]
fn a_call_that_nobody_waits_for_commits_nothing() {
    let desk = Desk::new();
    let (reached, waiting) = std::sync::mpsc::channel::<()>();
    let (dropped, go_on) = std::sync::mpsc::channel::<()>();
    let go_on = std::sync::Mutex::new(go_on);
    // The worker stands still at its last look until the call was dropped, as at a deadline.
    let port = Port::new(move |look| {
        if look == 2 {
            reached.send(()).unwrap();
            go_on.lock().unwrap().recv().unwrap();
        }
        false
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let call = ToolCall {
        input: input(json!({ "path": "a.txt", "content": "late" })),
        context: CallContext::new(Arc::new(port)),
    };
    let tools = crate::desk::tools_of(&desk.path(""));
    let write = tools["files.write_file"].clone();
    let task = runtime.spawn(async move {
        write
            .execute(call)
            .await
            .map(|_| ())
            .map_err(|failure| failure.message)
    });
    waiting.recv().unwrap();
    task.abort();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    dropped.send(()).unwrap();
    // The worker lets go of the call when it has ended.
    assert!(
        waiting.recv_timeout(Duration::from_secs(30)).is_err(),
        "one look at that moment"
    );
    assert!(
        fs::read_dir(desk.path("")).unwrap().next().is_none(),
        "{:?}",
        desk.snapshot()
    );
}

#[test]
fn a_link_put_over_the_file_s_name_is_replaced_not_followed() {
    let desk = Desk::new();
    desk.file("a.txt", "old");
    let file = desk.path("a.txt");
    let target = desk.outside().join("secret.txt");
    let port = Port::new(move |look| {
        if look == 3 {
            fs::remove_file(&file).unwrap();
            symlink(&target, &file).unwrap();
        }
        false
    });
    desk.call_with(
        "files.write_file",
        json!({ "path": "a.txt", "content": "new" }),
        port,
    )
    .0
    .unwrap();
    assert!(desk.path("a.txt").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(desk.path("a.txt")).unwrap(), "new");
    desk.outside_is_untouched();
}
