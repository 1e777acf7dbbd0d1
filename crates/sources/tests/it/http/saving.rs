use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use toolpost_model::ErrorClass;

use super::{Net, Server, facts, refused, reply, text};

#[test]
fn a_body_is_saved_whole() {
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let sent = content.clone();
    let server = Server::start(move |_| reply("200 OK", &["Content-Type: application/zip"], &sent));
    let net = Net::open(&[&server]);
    let output = net.request(json!({ "url": server.url("/"), "save_to": "a.zip" })).unwrap();
    assert_eq!(fs::read(net.path("a.zip")).unwrap(), content);
    assert_eq!((&facts(&output)["saved_to"], &facts(&output)["bytes"]), (&json!("a.zip"), &json!(3_000_000)));
    assert_eq!(facts(&output)["sha256"].as_str().unwrap().len(), 64);
    assert!(text(&output).contains("saved 3000000 bytes to a.zip (new)"), "{}", text(&output));
    assert_eq!(output.content.len(), 1);
    assert_eq!(net.files(), ["a.zip"]);
}

#[test]
fn an_existing_file_is_replaced_and_keeps_its_mode() {
    let server = Server::start(|_| reply("200 OK", &[], "new"));
    let net = Net::open(&[&server]);
    fs::write(net.path("run.sh"), "old").unwrap();
    fs::set_permissions(net.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(net.path("run.sh"), net.path("other")).unwrap();
    net.request(json!({ "url": server.url("/"), "save_to": "run.sh" })).unwrap();
    assert_eq!(fs::read_to_string(net.path("run.sh")).unwrap(), "new");
    assert_eq!(fs::metadata(net.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::read_to_string(net.path("other")).unwrap(), "old");
}

#[test]
fn what_is_no_place_for_a_file_is_refused_before_the_request() {
    let server = Server::start(|_| reply("200 OK", &[], "new"));
    let net = Net::open(&[&server]);
    fs::create_dir(net.path("dir")).unwrap();
    std::os::unix::fs::symlink("/tmp", net.path("out")).unwrap();
    for (path, code) in [("dir", "is_directory"), ("missing/a", "not_found"), ("out/a", "leaves_workspace")] {
        let failed = net.request(json!({ "url": server.url("/"), "save_to": path })).map(|_| ()).unwrap_err();
        assert_eq!(failed.code, code);
        assert!(failed.untouched);
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_place_that_moves_during_the_download_is_not_written() {
    // The agent's path led to `a` when the call was decided on; meanwhile it leads to a protected place.
    let net = std::sync::Arc::new(std::sync::OnceLock::<std::path::PathBuf>::new());
    let home = net.clone();
    let server = Server::start(move |_| {
        let home = home.get().unwrap();
        fs::remove_file(home.join("link")).unwrap();
        std::os::unix::fs::symlink(".git", home.join("link")).unwrap();
        reply("200 OK", &[], "hook")
    });
    let desk = Net::open(&[&server]);
    net.set(desk.path("")).unwrap();
    fs::create_dir(desk.path("a")).unwrap();
    fs::create_dir(desk.path(".git")).unwrap();
    std::os::unix::fs::symlink("a", desk.path("link")).unwrap();
    let result = desk.request(json!({ "url": server.url("/"), "save_to": "link/hook" }));
    assert_eq!(refused(result, ErrorClass::ExecutionFailed).code, "swapped");
    assert!(fs::read_dir(desk.path(".git")).unwrap().next().is_none());
    assert!(fs::read_dir(desk.path("a")).unwrap().next().is_none());
}

#[test]
fn an_error_page_is_not_saved() {
    let server = Server::start(|_| reply("500 Oops", &["Content-Type: text/plain"], "broken"));
    let net = Net::open(&[&server]);
    let output = net.request(json!({ "url": server.url("/"), "save_to": "a" })).unwrap();
    assert!(text(&output).contains("nothing was saved") && text(&output).ends_with("broken"));
    assert!(net.files().is_empty());
}
