//! Patches nobody meant: whatever comes in, nothing panics, nothing outside is touched, and a refused patch changes
//! nothing.

use std::cell::RefCell;

use proptest::prelude::{ProptestConfig, Strategy, prop, proptest};

use crate::desk::Desk;

fn paths() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a.txt",
        "sub/b.txt",
        "new.txt",
        "x/y/z",
        "../outside/secret.txt",
        "/etc/passwd",
        "out/secret.txt",
        "out",
        "link",
        "dangling",
        ".",
        "..",
        "",
        "sub",
        "a.txt/x",
        "a\tb",
        "é",
        "a/a.txt",
        "b/a.txt",
        "/dev/null",
        "w/../a.txt",
    ])
}

fn line() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "one",
        "two",
        "three",
        "",
        "é\u{feff}",
        "\r",
        "-- x",
        "+++ y",
        "\\",
        "@@",
    ]);
    let start = prop::sample::select(vec![
        " ",
        "+",
        "-",
        "",
        "@@",
        "@@ -1,2 +1,3 @@",
        "@@ -99999999999999999999 +1 @@",
        "@@ -18446744073709551615,9 +0,0 @@",
        "\\ No newline",
        "*** End of File",
        "*** End Patch",
        "*** Begin Patch",
        "rename from ",
        "rename to ",
        "new file mode 100644",
        "deleted file mode 100644",
        "-- ",
        "diff ",
    ]);
    (start, text).prop_map(|(start, text)| format!("{start}{text}"))
}

fn header() -> impl Strategy<Value = String> {
    let form = prop::sample::select(vec![
        "*** Add File: {}",
        "*** Update File: {}",
        "*** Delete File: {}",
        "*** Move to: {}",
        "--- {}\n+++ {}",
        "--- a/{}\n+++ b/{}",
        "--- /dev/null\n+++ b/{}",
        "--- a/{}\n+++ /dev/null",
        "diff --git a/{} b/{}",
        "--- {}",
        "+++ {}",
    ]);
    (form, paths()).prop_map(|(form, path)| form.replace("{}", path))
}

fn patches() -> impl Strategy<Value = String> {
    let part = (header(), prop::collection::vec(line(), 0..6))
        .prop_map(|(header, lines)| format!("{header}\n{}", lines.join("\n")));
    let body = prop::collection::vec(part, 0..4).prop_map(|parts| parts.join("\n"));
    (body, prop::bool::ANY, prop::bool::ANY).prop_map(|(body, begin, end)| {
        let begin = if begin { "*** Begin Patch\n" } else { "" };
        let end = if end { "\n*** End Patch" } else { "" };
        format!("{begin}{body}{end}")
    })
}

/// Patches that fit more often, so that writing is met too.
fn likely() -> impl Strategy<Value = String> {
    let hunk = prop::sample::select(vec![
        "@@ -1,2 +1,2 @@\n-one\n+1\n two",
        "@@ -2 +2 @@\n-two\n+2",
        "@@\n+end",
        "@@ -3,1 +3,0 @@\n-three",
        "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three",
    ]);
    let file = prop::sample::select(vec!["a.txt", "sub/b.txt", "./a.txt", "link", "new.txt"]);
    (prop::collection::vec((file, hunk), 1..3), prop::bool::ANY).prop_map(|(parts, envelope)| {
        let part = |(path, hunk): (&str, &str)| match envelope {
            true => format!("*** Update File: {path}\n{hunk}\n"),
            false => format!("--- a/{path}\n+++ b/{path}\n{hunk}\n"),
        };
        let parts: String = parts.into_iter().map(part).collect();
        if envelope {
            format!("*** Begin Patch\n{parts}*** End Patch")
        } else {
            parts
        }
    })
}

#[test]
fn no_patch_does_harm() {
    let desk = Desk::new();
    desk.link("out", "../outside");
    desk.link("link", "../outside/secret.txt");
    desk.link("dangling", "../outside/new.txt");
    let seen = RefCell::new((0, 0));
    let check = |patch: &str| {
        for (file, content) in [
            ("a.txt", "one\ntwo\nthree\n"),
            ("sub/b.txt", "one\r\ntwo\r\nthree"),
        ] {
            desk.file(file, content);
        }
        let before = desk.snapshot();
        // Refused patches have no effects that anybody asks for, but asking must do no harm.
        let arguments = serde_json::json!({ "patch": patch });
        let _ = desk
            .tool("files.apply_patch")
            .effects(&crate::desk::input(arguments));
        match desk.patch(patch) {
            Ok(_) => seen.borrow_mut().0 += 1,
            Err(failed) => {
                assert!(failed.untouched, "{failed:?}");
                assert_eq!(desk.snapshot(), before, "{failed:?}");
                seen.borrow_mut().1 += 1;
            }
        }
        desk.outside_is_untouched();
        for made in ["new.txt", "x", "é", "a\tb", "b", "a", "w"] {
            let _ = std::fs::remove_file(desk.path(made));
            let _ = std::fs::remove_dir_all(desk.path(made));
        }
    };
    proptest!(ProptestConfig::with_cases(400), |(patch in patches(), likely in likely())| {
        check(&patch);
        check(&likely);
    });
    let (applied, refused) = *seen.borrow();
    assert!(
        applied > 20 && refused > 200,
        "applied {applied}, refused {refused}"
    );
}
