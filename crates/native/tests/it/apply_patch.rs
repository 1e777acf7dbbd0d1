use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResourceAccess, ResourceKey};

use crate::desk::{Desk, Port, structured, text};

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch\n")
}

/// Applies `patch` to a file `f` with `content` and gives what it holds then.
fn patched(content: &str, patch: &str) -> String {
    let desk = Desk::new();
    desk.file("f", content);
    desk.patch(patch)
        .unwrap_or_else(|failed| panic!("{patch}\n{failed:?}"));
    desk.content("f")
}

fn refused(content: &str, patch: &str) -> (String, String) {
    let desk = Desk::new();
    desk.file("f", content);
    let before = desk.snapshot();
    let failed = desk.patch(patch).unwrap_err();
    assert!(failed.untouched, "{failed:?}");
    assert_eq!(desk.snapshot(), before);
    (failed.code, failed.message)
}

#[test]
fn an_envelope_adds_updates_moves_and_deletes() {
    let desk = Desk::new();
    for file in ["keep.rs", "move.rs", "gone.rs"] {
        desk.file(file, "one\ntwo\nthree\n");
    }
    fs::set_permissions(desk.path("move.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = desk
        .patch(&envelope(
            "*** Add File: new/dir/a.txt\n+first\n+\n+third\n*** Update File: keep.rs\n@@\n one\n-two\n+2\n three\n*** \
             Update File: move.rs\n*** Move to: there/moved.rs\n@@\n-three\n+3\n*** Delete File: gone.rs",
        ))
        .unwrap();
    assert_eq!(desk.content("new/dir/a.txt"), "first\n\nthird\n");
    assert_eq!(desk.content("keep.rs"), "one\n2\nthree\n");
    assert_eq!(desk.content("there/moved.rs"), "one\ntwo\n3\n");
    assert_eq!(
        fs::metadata(desk.path("there/moved.rs"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
    assert!(!desk.path("move.rs").exists() && !desk.path("gone.rs").exists());
    let told = text(&output);
    for part in [
        "added new/dir/a.txt (+3 -0)\n",
        "updated keep.rs (+1 -1)\n",
        "moved move.rs to there/moved.rs (+1 -1)\n",
        "deleted gone.rs (+0 -3)\n",
        "--- a/keep.rs\n+++ b/keep.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    ] {
        assert!(told.contains(part), "{part:?} is missing:\n{told}");
    }
    let files = structured(&output)["files"].as_array().unwrap();
    let kinds: Vec<_> = files
        .iter()
        .map(|file| file["change"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["added", "updated", "moved", "deleted"]);
    assert_eq!(
        (&files[2]["from"], &files[2]["path"]),
        (&json!("move.rs"), &json!("there/moved.rs"))
    );
    assert_eq!(
        files[1]["sha256"],
        structured(&desk.read("keep.rs").unwrap())["sha256"]
    );
    assert_eq!(output.summary.as_deref(), Some("patched 4 files"));
}

#[test]
fn a_unified_diff_does_the_same() {
    let desk = Desk::new();
    for file in ["a/keep.rs", "move.rs", "gone.rs", "plain.txt"] {
        desk.file(file, "one\ntwo\nthree\n");
    }
    desk.file("empty", "");
    desk.patch(
        "From: somebody\nSubject: [PATCH] a message\n\n---\n a/keep.rs | 2 +-\n\ndiff --git a/a/keep.rs b/a/keep.rs\nindex \
         123..456 100644\n--- a/a/keep.rs\n+++ b/a/keep.rs\n@@ -1,3 +1,3 @@ fn context\n one\n-two\n+2\n three\ndiff --git \
         a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+true\n\\ No \
         newline at end of file\ndiff --git a/move.rs b/moved.rs\nsimilarity index 90%\nrename from move.rs\nrename to \
         moved.rs\n--- a/move.rs\n+++ b/moved.rs\n@@ -3 +3 @@\n-three\n+3\ndiff --git a/gone.rs b/gone.rs\ndeleted file mode \
         100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\ndiff --git a/empty b/empty\ndeleted file \
         mode 100644\nindex e69de29..0000000\ndiff --git a/fresh b/fresh\nnew file mode 100644\nindex 0000000..e69de29\n\
         --- plain.txt\t2026-01-01 00:00:00\n+++ plain.txt\t2026-01-02 00:00:00\n@@ -1,2 +1,3 @@\n one\n+one and a half\n two\n\
         -- \n2.39.0\n",
    )
    .unwrap();
    assert_eq!(desk.content("a/keep.rs"), "one\n2\nthree\n");
    assert_eq!(desk.content("new.sh"), "#!/bin/sh\ntrue");
    assert_eq!(
        fs::metadata(desk.path("new.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o700,
        0o700
    );
    assert_eq!(desk.content("moved.rs"), "one\ntwo\n3\n");
    assert_eq!(desk.content("fresh"), "");
    assert_eq!(
        desk.content("plain.txt"),
        "one\none and a half\ntwo\nthree\n"
    );
    for gone in ["move.rs", "gone.rs", "empty"] {
        assert!(!desk.path(gone).exists(), "{gone}");
    }
}

#[test]
fn hunks_find_their_place_by_their_lines() {
    let ten: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    let hunk = |place: &str, body: &str| format!("--- a/f\n+++ b/f\n@@ {place} @@\n{body}");
    // Off by some lines, or with wrong counts.
    let absurd = format!("-{} +1", (isize::MAX as usize) + 2);
    for place in [
        absurd.as_str(),
        "-5,3 +5,3",
        "-1,3 +1,3",
        "-40,3 +40,3",
        "-5,9 +5,2",
        "-5 +5",
        "",
    ] {
        let result = patched(&ten, &hunk(place, " line 4\n-line 5\n+five\n line 6\n"));
        assert_eq!(result, ten.replace("line 5", "five"), "{place}");
    }
    let twice = format!(
        "--- a/f\n+++ b/f\n@@ {absurd} @@\n-line 2\n+two\n@@ {absurd} @@\n-line 9\n+nine\n"
    );
    assert_eq!(
        patched(&ten, &twice),
        ten.replace("line 2", "two").replace("line 9", "nine")
    );
    // The stated place wins where the lines stand at several.
    let same = "x\ny\n".repeat(5);
    assert_eq!(
        patched(&same, &hunk("-3,2 +3,2", "-x\n+z\n y\n")),
        "x\ny\nz\ny\nx\ny\nx\ny\nx\ny\n"
    );
    let (code, message) = refused(&same, &hunk("-4,2 +4,2", "-x\n+z\n y\n"));
    assert_eq!(code, "ambiguous");
    assert!(
        message.ends_with("its lines occur several times, from lines 1, 3, 5, 7, 9 on"),
        "{message}"
    );
    // A line above says which one is meant.
    let classes = "class A\n  def go\n    old\nclass B\n  def go\n    old\n";
    let update = envelope("*** Update File: f\n@@ class B\n@@   def go\n-    old\n+    new");
    assert_eq!(
        patched(classes, &update),
        "class A\n  def go\n    old\nclass B\n  def go\n    new\n"
    );
    // Several hunks, of which the first moves the second.
    let two = "--- a/f\n+++ b/f\n@@ -1,1 +1,3 @@\n line 1\n+a\n+b\n@@ -9,2 +11,2 @@\n-line 9\n+nine\n line 10\n";
    assert_eq!(
        patched(&ten, two),
        ten.replace("line 1\n", "line 1\na\nb\n")
            .replace("line 9", "nine")
            .replace("line 1\na\nb\n0", "line 10")
    );
    // Only added lines: where stated, or at the end.
    assert_eq!(patched("a\nb\n", &hunk("-1,0 +2", "+x\n")), "a\nx\nb\n");
    assert_eq!(patched("a\nb\n", &hunk("-0,0 +1", "+x\n")), "x\na\nb\n");
    assert_eq!(
        patched("a\nb\n", &envelope("*** Update File: f\n@@\n+x")),
        "a\nb\nx\n"
    );
    assert_eq!(
        patched(
            "a\nb\na\nb\n",
            &envelope("*** Update File: f\n@@\n a\n-b\n+c\n*** End of File")
        ),
        "a\nb\na\nc\n"
    );
    // A blank line of context that lost its blank.
    assert_eq!(
        patched("a\n\nb\n", &hunk("-1,3 +1,3", "-a\n+A\n\n b\n")),
        "A\n\nb\n"
    );
}

#[test]
fn line_ends_and_the_end_of_the_file_stay() {
    let update = "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n";
    assert_eq!(patched("a\r\nb\r\n", update), "a\r\nB\r\nc\r\n");
    assert_eq!(
        patched("a\r\nb\r\n", &update.replace('\n', "\r\n")),
        "a\r\nB\r\nc\r\n"
    );
    assert_eq!(
        patched("a\nb\n", &update.replace('\n', "\r\n")),
        "a\nB\nc\n"
    );
    assert_eq!(patched("a\nb", update), "a\nB\nc");
    assert_eq!(patched("\u{feff}a\nb\n", update), "\u{feff}a\nB\nc\n");
    let marked =
        |old: &str, new: &str| format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n{old}+B\n{new}");
    let mark = "\\ No newline at end of file\n";
    assert_eq!(patched("a\nb", &marked(mark, mark)), "a\nB");
    assert_eq!(patched("a\nb", &marked(mark, "")), "a\nB\n");
    assert_eq!(patched("a\nb\n", &marked("", mark)), "a\nB");
    assert_eq!(
        patched("a\nb", "--- a/f\n+++ b/f\n@@ -1,2 +1,1 @@\n a\n-b\n"),
        "a"
    );
}

#[test]
fn a_hunk_that_does_not_fit_is_explained() {
    let file = "fn a() {\n    one();\n}\n\nfn b() {\n    two();\n}\n";
    let update = |body: &str| envelope(&format!("*** Update File: f\n{body}"));
    let check = |patch: &str, code: &str, part: &str| {
        let (found, message) = refused(file, patch);
        assert_eq!(found, code, "{message}");
        assert!(message.contains(part), "{message}");
    };
    check(
        &update("@@\n fn b() {\n-    too();\n+    three();"),
        "no_match",
        "line 6 is `    two();`, expected `    too();`",
    );
    check(
        &update("@@\n fn b() {\n-  two();\n+    three();"),
        "no_match",
        "the lines from 5 on differ from it only in blanks",
    );
    check(
        &update("@@ fn c() {\n-    two();\n+    x();"),
        "no_match",
        "there is no line `fn c() {` for its `@@`",
    );
    check(
        &update("@@\n-    two();\n+x\n@@\n-    one();\n+y"),
        "no_match",
        "are at line 2, before those of an earlier hunk",
    );
    check(&update("@@\n }\n+x"), "ambiguous", "from lines 3, 7 on");
    check(
        "--- a/f\n+++ b/f\n@@ -90,0 +91 @@\n+x\n",
        "no_match",
        "it adds after line 90, but the file has 7",
    );
    check(
        "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-fn a() {\n",
        "no_match",
        "removes only a part",
    );
    check(
        &update("@@\n-    two();\n+    two();"),
        "no_change",
        "changes nothing",
    );
}

#[test]
fn nothing_is_written_unless_everything_fits() {
    let desk = Desk::new();
    desk.file("a.txt", "a\n");
    desk.file("b.txt", "b\n");
    desk.file("latin1", b"caf\xe9\n");
    desk.link("link", "a.txt");
    let before = desk.snapshot();
    let good = "*** Update File: a.txt\n-a\n+A\n*** Add File: x/y/new.txt\n+new";
    for (bad, code) in [
        ("*** Update File: b.txt\n-c\n+C", "no_match"),
        ("*** Update File: missing.txt\n-c\n+C", "not_found"),
        ("*** Delete File: missing.txt", "not_found"),
        ("*** Add File: b.txt\n+new", "exists"),
        ("*** Add File: link\n+new", "exists"),
        ("*** Update File: b.txt\n*** Move to: latin1", "exists"),
        ("*** Update File: latin1\n-c\n+C", "not_text"),
        ("*** Update File: link\n-a\n+B", "changed_twice"),
        ("*** Add File: ./x/y/new.txt\n+again", "changed_twice"),
        ("*** Delete File: link", "not_a_regular_file"),
        ("*** Delete File: x", "not_found"),
        ("*** Add File: a.txt/below\n+new", "not_a_directory"),
    ] {
        for patch in [format!("{good}\n{bad}"), format!("{bad}\n{good}")] {
            let failed = desk.patch(&envelope(&patch)).unwrap_err();
            assert_eq!(
                (failed.code.as_str(), failed.untouched),
                (code, true),
                "{bad}: {failed:?}"
            );
            assert_eq!(desk.snapshot(), before, "{bad}");
        }
    }
    // Through a link the file behind it is changed.
    desk.patch(&envelope("*** Update File: link\n-a\n+B"))
        .unwrap();
    assert_eq!(
        (
            desk.content("a.txt").as_str(),
            fs::read_link(desk.path("link")).is_ok()
        ),
        ("B\n", true)
    );
}

#[test]
fn what_is_no_patch_is_refused_with_its_line() {
    let desk = Desk::new();
    desk.file("f", "a\n");
    for (patch, part) in [
        ("", "line 1 of the patch: it contains no change"),
        ("hello", "it contains no change"),
        ("*** Begin Patch\n*** End Patch", "it contains no change"),
        (
            "*** Begin Patch\n*** Update File: f\n-a\n+b\n",
            "`*** End Patch` is missing",
        ),
        (
            "*** Begin Patch\n*** Update File: f\nwrong\n*** End Patch",
            "line 3 of the patch: `wrong` begins with none of",
        ),
        (
            "*** Begin Patch\n*** Add File: g\nx\n*** End Patch",
            "every line of a new file begins with `+`",
        ),
        (
            "*** Begin Patch\n*** Update File: f\n*** End Patch",
            "no hunk changes `f`",
        ),
        (
            "*** Begin Patch\n*** Update File: f\n@@\n a\n*** End Patch",
            "this hunk changes nothing",
        ),
        (
            "*** Begin Patch\n*** Update File:\n-a\n*** End Patch",
            "the path is missing",
        ),
        (
            "*** Begin Patch\n*** Rename File: f\n*** End Patch",
            "`*** Rename File: f` is not",
        ),
        (
            "*** Begin Patch\n*** Delete File: f\n*** End Patch\nrm -rf /",
            "`rm -rf /` comes after the end",
        ),
        ("@@ -1 +1 @@\n-a\n+b\n", "this hunk belongs to no file"),
        ("--- a/f\n+++ b/f\n", "no hunk changes `f`"),
        (
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\nno prefix\n",
            "`no prefix` begins with none of",
        ),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n", "this hunk has no lines"),
        (
            "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
            "only content is patched",
        ),
        (
            "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
            "only content is patched",
        ),
        (
            "diff --git a/f b/f\nGIT binary patch\nliteral 0\n",
            "binary changes cannot be applied",
        ),
        (
            "--- \"a/f\"\n+++ \"b/f\"\n@@ -1 +1 @@\n-a\n+b\n",
            "is quoted",
        ),
        (
            "--- a/f\n+++ b/dir/\n@@ -1 +1 @@\n-a\n+b\n",
            "names a directory",
        ),
    ] {
        let failed = desk.patch(patch).unwrap_err();
        assert_eq!(
            (failed.class, failed.hint.as_str()),
            (ErrorClass::InvalidArguments, "/patch"),
            "{patch:?}: {failed:?}"
        );
        assert!(
            failed.message.contains(part),
            "{patch:?}: {}",
            failed.message
        );
    }
}

#[test]
fn a_patch_that_is_stopped_or_disturbed_leaves_all_or_nothing() {
    let patch = envelope(
        "*** Update File: a.txt\n-a\n+A\n*** Add File: x/new.txt\n+new\n*** Update File: b.txt\n*** Move to: \
         y/moved.txt\n*** Delete File: c.txt\n*** Update File: d.txt\n-d\n+D",
    );
    let mut stopped = 0;
    let mut disturbed = 0;
    for moment in 0..40 {
        for disturb in [false, true] {
            let desk = Desk::new();
            for name in ["a", "b", "c", "d"] {
                desk.file(&format!("{name}.txt"), format!("{name}\n"));
            }
            let before = desk.snapshot();
            let last = desk.path("d.txt");
            let port = Port::new(move |look| {
                if look == moment && disturb {
                    fs::write(&last, "somebody else's\n").unwrap();
                }
                look == moment && !disturb
            });
            let Err(failed) = desk
                .call_with("files.apply_patch", json!({ "patch": patch }), port)
                .0
            else {
                continue;
            };
            assert!(failed.untouched, "{failed:?}");
            let mut after = desk.snapshot();
            if disturb {
                after.insert(desk.path("d.txt"), "d\n".to_owned());
                disturbed += 1;
            } else {
                stopped += 1;
            }
            let files = |snapshot: &std::collections::BTreeMap<std::path::PathBuf, String>| {
                snapshot
                    .iter()
                    .map(|(path, what)| (path.file_name().unwrap().to_owned(), what.clone()))
                    .collect::<Vec<_>>()
            };
            let mut before = files(&before);
            let mut after = files(&after);
            before.sort();
            after.sort();
            assert_eq!(after, before, "at look {moment}, disturbed: {disturb}");
        }
    }
    assert!(
        stopped > 10 && disturbed > 5,
        "stopped {stopped} times, disturbed {disturbed} times"
    );
}

#[test]
fn what_cannot_be_put_back_is_told() {
    // The last file is swapped by somebody else, and so is the first after it was written.
    let patch = envelope("*** Update File: a.txt\n-a\n+A\n*** Update File: b.txt\n-b\n+B");
    let mut partial = 0;
    for moment in 0..20 {
        let desk = Desk::new();
        desk.file("a.txt", "a\n");
        desk.file("b.txt", "b\n");
        let first = desk.path("a.txt");
        let last = desk.path("b.txt");
        let port = Port::new(move |look| {
            if look == moment {
                if fs::read_to_string(&first).unwrap() == "A\n" {
                    fs::remove_file(&first).unwrap();
                    fs::write(&first, "theirs\n").unwrap();
                }
                fs::write(&last, "theirs\n").unwrap();
            }
            false
        });
        if let (Ok(output), _) =
            desk.call_with("files.apply_patch", json!({ "patch": patch }), port)
            && output.partial
        {
            partial += 1;
            assert!(
                text(&output).starts_with("patched in part: another program changed `b.txt`"),
                "{}",
                text(&output)
            );
            let kinds: Vec<_> = structured(&output)["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|f| f["change"].clone())
                .collect();
            assert_eq!(kinds, ["updated", "unchanged"]);
            assert_eq!(
                (desk.content("a.txt"), desk.content("b.txt")),
                ("theirs\n".into(), "theirs\n".into())
            );
        }
    }
    assert!(partial > 0, "the moment between the two was not met");
}

#[test]
fn effects_name_every_place() {
    let desk = Desk::new();
    desk.file("a.txt", "a\n");
    desk.link("link", "a.txt");
    let patch = envelope(
        "*** Update File: link\n-a\n+A\n*** Add File: x/y/new.txt\n+new\n*** Update File: old\n*** Move to: moved\n*** Delete \
         File: link",
    );
    let effects = desk.effects("files.apply_patch", json!({ "patch": patch }));
    let of = |access| {
        let uses = effects
            .uses
            .iter()
            .filter(move |used| used.access == access);
        uses.map(|used| used.key.clone()).collect::<Vec<_>>()
    };
    let keys = |places: &[&str]| {
        let key = |place: &&str| ResourceKey::path(desk.path(place).to_str().unwrap());
        places.iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(
        of(ResourceAccess::Write),
        keys(&["a.txt", "x", "x/y/new.txt", "old", "moved", "link"])
    );
    // What is changed, moved or deleted is shown.
    assert_eq!(of(ResourceAccess::Read), keys(&["a.txt", "old", "link"]));
    assert!(!effects.idempotent);
    let declared: Value = (*desk.tool("files.apply_patch").declaration().input.schema).clone();
    assert!(
        declared["properties"]["patch"]["description"]
            .as_str()
            .unwrap()
            .contains("*** Begin Patch")
    );
}
