//! The threads that work on files.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolpost_model::{CallContext, DynTool, ToolCall};

use crate::desk::{Desk, Port, input, text, tools_of};

const THREADS: usize = 8;

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

fn call(path: &str, port: Port) -> ToolCall {
    let input = input(json!({ "path": path, "line_numbers": false }));
    ToolCall {
        input,
        context: CallContext::new(Arc::new(port)),
    }
}

/// How many threads of this process work on files. Each test runs in a process of its own under nextest; otherwise
/// those of other tests are counted too, so nothing is said of the exact number.
fn file_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.trim_end() == "toolpost-files")
        .count()
}

fn read_file(desk: &Desk) -> Arc<dyn DynTool> {
    tools_of(&desk.path(""))["files.read_file"].clone()
}

#[test]
fn a_panic_fails_its_call_and_no_other() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    for _ in 0..3 * THREADS {
        let failed = desk
            .call_with(
                "files.read_file",
                json!({ "path": "a.txt" }),
                Port::new(|_| panic!("on purpose")),
            )
            .0;
        let failed = failed.unwrap_err();
        assert_eq!(failed.code, "worker_stopped");
        assert_eq!(
            failed.message,
            "the file worker panicked before it was done"
        );
    }
    assert_eq!(text(&desk.read("a.txt").unwrap()), "a");
}

#[test]
fn more_calls_than_threads_wait_for_one_another() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    let runtime = runtime();
    let read = read_file(&desk);
    let (reached, waiting) = mpsc::channel();
    let (go_on, told) = mpsc::channel::<()>();
    let told = Arc::new(Mutex::new(told));
    let calls: Vec<_> = (0..3 * THREADS)
        .map(|_| {
            let reached = reached.clone();
            let told = told.clone();
            let read = read.clone();
            let port = Port::new(move |look| {
                if look == 0 {
                    reached.send(()).unwrap();
                    told.lock().unwrap().recv().unwrap();
                }
                false
            });
            runtime.spawn(async move {
                read.execute(call("a.txt", port))
                    .await
                    .map(|_| ())
                    .map_err(|f| f.message)
            })
        })
        .collect();
    for _ in 0..THREADS {
        waiting.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    assert!(
        waiting.recv_timeout(Duration::from_millis(200)).is_err(),
        "no more than {THREADS} run at a time"
    );
    for _ in 0..3 * THREADS {
        go_on.send(()).unwrap();
    }
    for call in calls {
        let done =
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), call).await });
        done.unwrap().unwrap().unwrap();
    }
}

#[test]
fn a_call_that_is_dropped_while_it_waits_never_runs() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    let runtime = runtime();
    let read = read_file(&desk);
    let (reached, waiting) = mpsc::channel();
    let (go_on, told) = mpsc::channel::<()>();
    let told = Arc::new(Mutex::new(told));
    let mut busy = Vec::new();
    for _ in 0..THREADS {
        let reached = reached.clone();
        let told = told.clone();
        let read = read.clone();
        let port = Port::new(move |look| {
            if look == 0 {
                reached.send(()).unwrap();
                let _ = told.lock().unwrap().recv();
            }
            false
        });
        busy.push(runtime.spawn(async move { read.execute(call("a.txt", port)).await.is_ok() }));
        waiting.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    let late = read.clone();
    let port = Port::new(|_| panic!("it must not run"));
    let given_up = runtime.block_on(async move {
        let call = late.execute(call("a.txt", port));
        tokio::time::timeout(Duration::from_millis(50), call)
            .await
            .is_err()
    });
    assert!(given_up);
    drop(go_on);
    for call in busy {
        assert!(runtime.block_on(call).unwrap());
    }
    assert_eq!(text(&desk.read("a.txt").unwrap()), "a");
}

#[test]
fn threads_are_made_when_needed_and_end_with_the_workspace() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    let before = file_threads();
    let runtime = runtime();
    let read = read_file(&desk);
    for _ in 0..20 {
        runtime
            .block_on(read.execute(call("a.txt", Port::new(|_| false))))
            .map_err(|f| f.message)
            .unwrap();
    }
    let used = file_threads();
    assert!(used > before, "{before}, {used}");
    drop(read);
    let begun = Instant::now();
    while file_threads() > before && begun.elapsed() < Duration::from_secs(30) {
        std::thread::yield_now();
    }
    assert!(file_threads() <= before, "the threads are still there");
}

/// A host looks whether to stop on the worker's own thread, so it can try there what a tool gone wrong would.
#[test]
fn a_worker_reaches_nothing_outside_of_the_roots() {
    let probe = std::thread::spawn(|| toolpost_sandbox::confine_thread(&[]))
        .join()
        .unwrap();
    if probe.landlock_abi.is_none() {
        // This kernel has no second wall; the path rules are tested elsewhere.
        return;
    }
    let desk = Desk::new();
    desk.file("a.txt", "inside");
    let inside = desk.path("a.txt");
    let outside = desk.outside();
    let (tell, told) = mpsc::channel();
    let port = Port::new(move |look| {
        if look == 0 {
            let tries = [
                std::fs::read(&inside).map(|_| ()),
                std::fs::write(&inside, "changed"),
                std::fs::read(outside.join("secret.txt")).map(|_| ()),
                std::fs::write(outside.join("new.txt"), ""),
                std::fs::read("/proc/self/environ").map(|_| ()),
                std::fs::rename(&inside, outside.join("taken.txt")),
            ];
            tell.send(tries.map(|tried| tried.is_ok())).unwrap();
        }
        false
    });
    desk.call_with("files.read_file", json!({ "path": "a.txt" }), port)
        .0
        .unwrap();
    assert_eq!(
        told.recv().unwrap(),
        [true, true, false, false, false, false]
    );
    desk.outside_is_untouched();
    // Only the workers are confined.
    assert!(std::fs::read(desk.outside().join("secret.txt")).is_ok());
}
