//! What is wrong with the sections of A2E and A2A.

use toolpost_config::ConfigFile;

use super::check;

#[test]
fn a2e() {
    check(
        "a2e: { hostid: x }",
        "1:8",
        "unknown key `hostid`",
        Some("did you mean `host_id`?"),
    );
    check(
        "a2e: { host_id: '' }",
        "1:17",
        "`a2e.host_id` is empty",
        None,
    );
    check(
        "a2e: { host_id: '  ' }",
        "1:17",
        "`a2e.host_id` is empty",
        None,
    );
    let unprintable = "`a2e.host_id` holds a character that cannot be printed";
    check("a2e: { host_id: \"a\\nb\" }", "1:17", unprintable, None);
    check("a2e: { host_id: \"a\\u202eb\" }", "1:17", unprintable, None);
    let text = |letters| format!("a2e: {{ host_id: {} }}", "ü".repeat(letters));
    ConfigFile::parse(&text(64), "t").unwrap();
    check(
        &text(65),
        "1:17",
        "`a2e.host_id` has 65 characters; it can have up to 64",
        None,
    );
    check(
        "a2e: { require_negotiated: 1 }",
        "1:28",
        "expected true or false",
        None,
    );
    check(
        "a2e: { audit: x.log }",
        "1:15",
        "expected a table of keys and values",
        None,
    );
    let home = "`a2e.audit.path` is `~/a.log`, and `~` is not expanded here";
    check(
        "a2e: { audit: { path: ~/a.log } }",
        "1:23",
        home,
        Some("write the whole path"),
    );
    let size = "`a2e.audit.max_bytes` is 1023; it must be between 1KiB and 1024GiB";
    check("a2e: { audit: { max_bytes: 1023 } }", "1:28", size, None);
    let count = "`a2e.audit.backup_count` is 1001; it must be between 0 and 1000";
    check(
        "a2e: { audit: { backup_count: 1001 } }",
        "1:31",
        count,
        None,
    );
    check(
        "a2e: { audit: { backup_count: -1 } }",
        "1:31",
        "expected a whole number from 0 on",
        None,
    );
}

#[test]
fn a2a() {
    check(
        "a2a: { event: auto }",
        "1:8",
        "unknown key `event`",
        Some("did you mean `events`?"),
    );
    check("a2a: { name: ' ' }", "1:14", "`a2a.name` is empty", None);
    check(
        "a2a: { description: '' }",
        "1:21",
        "`a2a.description` is empty",
        None,
    );
    let unprintable = "`a2a.description` holds a character that cannot be printed";
    check(
        "a2a: { description: \"a\\u202eb\" }",
        "1:21",
        unprintable,
        None,
    );
    let text = |letters| format!("a2a: {{ description: {} }}", "x".repeat(letters));
    ConfigFile::parse(&text(1_000), "t").unwrap();
    check(
        &text(1_001),
        "1:21",
        "`a2a.description` has 1001 characters; it can have up to 1000",
        None,
    );
    for bad in [
        "tools.example.org/a2a",
        "ftp://h/a2a",
        "https://",
        "https://u@h/a",
        "https://h/a?b",
        "https://h/a b",
    ] {
        let message = format!("`a2a.url` is `{bad}`, which is not the URL of an agent");
        let hint = "write the whole address, such as `https://tools.example.org/a2a`";
        check(
            &format!("a2a: {{ url: '{bad}' }}"),
            "1:13",
            &message,
            Some(hint),
        );
    }
    for good in [
        "https://h",
        "http://127.0.0.1:8765/a2a",
        "https://[::1]:1/x/a2a",
    ] {
        ConfigFile::parse(&format!("a2a: {{ url: '{good}' }}"), "t").unwrap();
    }
}
