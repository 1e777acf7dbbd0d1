use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use super::{Net, Server, facts, reply, text};

#[test]
fn a_body_is_saved_whole() {
    let content: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let sent = content.clone();
    let server = Server::start(move |_| reply("200 OK", &["Content-Type: application/zip"], &sent));
    let net = Net::open(&[&server]);
    let output = net
        .request(json!({ "url": server.url("/"), "save_to": "a.zip" }))
        .unwrap();
    assert_eq!(fs::read(net.path("a.zip")).unwrap(), content);
    assert_eq!(
        (&facts(&output)["saved_to"], &facts(&output)["bytes"]),
        (&json!("a.zip"), &json!(3_000_000))
    );
    assert_eq!(facts(&output)["sha256"].as_str().unwrap().len(), 64);
    assert!(
        text(&output).contains("saved 3000000 bytes to a.zip (new)"),
        "{}",
        text(&output)
    );
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
    net.request(json!({ "url": server.url("/"), "save_to": "run.sh" }))
        .unwrap();
    assert_eq!(fs::read_to_string(net.path("run.sh")).unwrap(), "new");
    assert_eq!(
        fs::metadata(net.path("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o750
    );
    assert_eq!(fs::read_to_string(net.path("other")).unwrap(), "old");
}

#[test]
fn what_is_no_place_for_a_file_is_refused_before_the_request() {
    let server = Server::start(|_| reply("200 OK", &[], "new"));
    let net = Net::open(&[&server]);
    fs::create_dir(net.path("dir")).unwrap();
    std::os::unix::fs::symlink("/tmp", net.path("out")).unwrap();
    for (path, code) in [("dir", "is_directory"), ("out/a", "leaves_workspace")] {
        let failed = net
            .request(json!({ "url": server.url("/"), "save_to": path }))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(failed.code, code);
        assert!(failed.untouched);
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_link_that_is_turned_during_the_download_changes_nothing() {
    // The path led to `a` when the call was decided on; meanwhile it leads to a protected place.
    let place = std::sync::Arc::new(std::sync::OnceLock::<std::path::PathBuf>::new());
    let home = place.clone();
    let server = Server::start(move |_| {
        let home = home.get().unwrap();
        fs::remove_file(home.join("link")).unwrap();
        std::os::unix::fs::symlink(".git", home.join("link")).unwrap();
        reply("200 OK", &[], "hook")
    });
    let net = Net::open(&[&server]);
    place.set(net.path("")).unwrap();
    fs::create_dir(net.path("a")).unwrap();
    fs::create_dir(net.path(".git")).unwrap();
    std::os::unix::fs::symlink("a", net.path("link")).unwrap();
    net.request(json!({ "url": server.url("/"), "save_to": "link/hook" }))
        .unwrap();
    assert!(fs::read_dir(net.path(".git")).unwrap().next().is_none());
    assert_eq!(fs::read_to_string(net.path("a/hook")).unwrap(), "hook");
}

#[test]
fn missing_directories_are_made_and_taken_back() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/short" => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".to_vec(),
        _ => reply("200 OK", &[], "new"),
    });
    let net = Net::open(&[&server]);
    let failed = net
        .request(json!({ "url": server.url("/short"), "save_to": "x/y/a" }))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(failed.code, "cut_off");
    assert!(net.files().is_empty(), "{:?}", net.files());
    net.request(json!({ "url": server.url("/"), "save_to": "x/y/a" }))
        .unwrap();
    assert_eq!(fs::read_to_string(net.path("x/y/a")).unwrap(), "new");
}

#[test]
fn a_protected_path_asks() {
    let net = Net::closed();
    let caution = |path: &str| {
        let effects = net.effects(
            "http_request",
            json!({ "url": "https://example.org/", "save_to": path }),
        );
        effects.unwrap().caution
    };
    assert!(caution(".git/hooks/pre-commit").unwrap().contains(".git"));
    assert!(caution("sub/.bashrc").is_some());
    assert_eq!(caution("downloads/a.bin"), None);
}

#[test]
fn an_error_page_is_not_saved() {
    let server = Server::start(|_| reply("500 Oops", &["Content-Type: text/plain"], "broken"));
    let net = Net::open(&[&server]);
    let output = net
        .request(json!({ "url": server.url("/"), "save_to": "a" }))
        .unwrap();
    assert!(text(&output).contains("nothing was saved") && text(&output).ends_with("broken"));
    assert!(net.files().is_empty());
}
