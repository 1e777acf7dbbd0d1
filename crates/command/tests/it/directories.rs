//! Where commands run.

use toolpost_command::{CommandDirectory, analyze};

/// The directory of the last command: `.` is the start, `?` is unknown.
fn directory(text: &str) -> String {
    match analyze(text)
        .commands
        .pop()
        .map(|command| command.directory)
    {
        Some(CommandDirectory::Start) => ".".to_owned(),
        Some(CommandDirectory::Beneath(path)) => path,
        Some(CommandDirectory::Unknown) => "?".to_owned(),
        None => "no command".to_owned(),
    }
}

#[test]
fn directories_follow_cd() {
    let rows = [
        ("ls", "."),
        ("cd x && ls", "x"),
        ("cd x/../y/./z && ls", "y/z"),
        ("cd x && cd .. && ls", "."),
        ("cd .. && ls", ".."),
        ("cd /a && cd b && ls", "/a/b"),
        ("cd -- x && ls", "x"),
        ("cd -L x && ls", "x"),
        ("cd 'a b' && ls", "a b"),
        // A `cd` that fails leaves the shell where it was, and the list goes on.
        ("cd x; ls", "?"),
        ("cd x\nls", "?"),
        ("cd x || ls", "."),
        ("cd x || exit; ls", "?"),
        ("a || cd x; ls", "?"),
        ("a && cd x; ls", "?"),
        ("! cd x && ls", "."),
        ("cd x && a && ls", "x"),
        ("cd x && a || ls", "?"),
        ("cd x && a; ls", "?"),
        ("(cd x && a); ls", "."),
        ("(cd x && ls)", "x"),
        ("cd x & ls", "."),
        ("cd x | ls", "."),
        ("echo $(cd x && a) | ls", "."),
        ("{ cd x && a; } ; ls", "?"),
        ("cd x && { ls; }", "x"),
        ("cd x && (ls)", "x"),
        ("cd && ls", "?"),
        ("cd - && ls", "?"),
        ("cd $x && ls", "?"),
        ("cd ~ && ls", "?"),
        ("cd -P x && ls", "?"),
        ("cd x y && ls", "?"),
        ("cd $x && cd /a && ls", "/a"),
        ("pushd x && ls", "?"),
        ("popd && ls", "?"),
        ("command cd x && ls", "x"),
        ("builtin cd x && ls", "x"),
        ("env cd x && ls", "."),
        ("eval 'cd x' && ls", "?"),
        ("eval 'cd x && ls'", "x"),
        ("sh -c 'cd x'; ls", "."),
        ("cd x && sh -c 'cd y && ls'", "x/y"),
        ("env -C x ls", "x"),
        ("cd y && env --chdir=../x ls", "x"),
        ("env -C x ls; pwd", "."),
        ("if a; then cd x; fi; ls", "?"),
        ("if cd x; then ls; fi", "?"),
        ("if a; then ls; else pwd; fi; ls", "."),
        ("while a; do cd x && b; done; ls", "?"),
        ("while ls; do cd x; done", "?"),
        ("case a in b) cd x;; c) ls;; esac", "?"),
        ("f() { ls; }", "?"),
        ("trap ls EXIT", "?"),
    ];
    for (text, expected) in rows {
        assert_eq!(directory(text), expected, "{text}");
    }
}

#[test]
fn loops_know_that_they_come_back() {
    let analysis = analyze("while a > f; do cd x && b; done");
    assert!(
        analysis
            .commands
            .iter()
            .all(|command| command.directory == CommandDirectory::Unknown),
        "{analysis:?}"
    );
    assert!(
        analysis
            .redirects
            .iter()
            .all(|redirect| redirect.directory == CommandDirectory::Unknown),
        "{analysis:?}"
    );
}

#[test]
fn redirections_are_looked_up_where_they_are_opened() {
    for (text, expected) in [
        ("a > f", CommandDirectory::Start),
        ("cd x && a > f", CommandDirectory::Beneath("x".to_owned())),
        ("cd x > f", CommandDirectory::Start),
        (
            "cd x && { a; } > f",
            CommandDirectory::Beneath("x".to_owned()),
        ),
        ("cd x; a > f", CommandDirectory::Unknown),
    ] {
        assert_eq!(analyze(text).redirects[0].directory, expected, "{text}");
    }
}
