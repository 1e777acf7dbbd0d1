//! Variables that are set for a text from outside.

use toolpost_command::{
    Analysis, CommandPattern, OpaqueReason, analyze, analyze_with, suggestions,
};

use crate::summary;

/// A variable that programs find their settings by, and one that means nothing to them.
const HOME: &[(&str, &str)] = &[("HOME", "/w/x")];
const FOO: &[(&str, &str)] = &[("FOO", "1")];

#[test]
fn every_command_carries_them() {
    for (text, environment, expected) in [
        ("git status", HOME, "HOME=/w/x git status ~"),
        ("ls; (cat x | wc)", FOO, "FOO=1 ls; FOO=1 cat x; FOO=1 wc"),
        (
            "echo $(git log)",
            FOO,
            "FOO=1 git log; FOO=1 echo …; !DynamicWord",
        ),
        ("sh -c 'git log'", FOO, "FOO=1 git log"),
        ("A=1 timeout 5 make", FOO, "FOO=1 A=1 make"),
        (
            "find . -exec rm x \\;",
            FOO,
            "FOO=1 find . -exec rm x ;; FOO=1 rm x",
        ),
        ("f() { make; }", FOO, "FOO=1 make"),
        ("cat <(make)", FOO, "FOO=1 make; FOO=1 cat …; !DynamicWord"),
        (
            "git status",
            &[("LANG", "C"), ("LC_ALL", "C"), ("NO_COLOR", "1")],
            "git status",
        ),
        (
            "make",
            &[("TZ", "UTC"), ("PATH", "/w:/bin")],
            "PATH=/w:/bin make ~",
        ),
        (
            "OPTIND=x ls",
            &[("SECONDS", "a[$(rm x)]")],
            "SECONDS=a[$(rm x)] OPTIND=x ls; !Evaluated",
        ),
        (
            "ls",
            &[("BASH_FUNC_ls%%", "() { rm x; }")],
            "BASH_FUNC_ls%%=() { rm x; } ls ~; !Ambiguous",
        ),
    ] {
        assert_eq!(
            summary(&analyze_with(text, environment.iter().copied())),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_text_only_reads_with_free_variables_alone() {
    for (text, environment, reads) in [
        ("ls -la", &[][..], true),
        ("ls -la", &[("LANG", "C"), ("LC_TIME", "C")], true),
        ("ls -la", HOME, false),
        ("[[ -f x ]]", HOME, false),
        ("", HOME, false),
        ("cd x", &[("CDPATH", "/etc")], false),
    ] {
        let analysis = analyze_with(text, environment.iter().copied());
        assert_eq!(analysis.only_reads(), reads, "{text} {environment:?}");
    }
    let steers = |environment: &[(&str, &str)]| {
        analyze_with("cd x", environment.iter().copied()).commands[0].only_steers()
    };
    assert!(steers(&[("LANG", "C")]) && !steers(HOME));
}

#[test]
fn a_pattern_must_mention_them_to_allow() {
    let covers = |pattern: &str, environment: &[(&str, &str)]| {
        let pattern: CommandPattern = pattern.parse().unwrap();
        pattern.covers(&analyze_with("git status", environment.iter().copied()).commands[0])
    };
    for (pattern, environment, expected) in [
        ("git status", HOME, false),
        ("HOME=/w/x git status", HOME, true),
        ("HOME=* git status", HOME, true),
        ("HOME=/other git status", HOME, false),
        (
            "HOME=* git status",
            &[("HOME", "/w/x"), ("PATH", "/w")],
            false,
        ),
        ("git status", &[("LANG", "C")], true),
    ] {
        assert_eq!(
            covers(pattern, environment),
            expected,
            "{pattern} {environment:?}"
        );
    }
}

#[test]
fn suggestions_mention_them() {
    let offered = |environment: &[(&str, &str)]| -> Vec<String> {
        let analysis = analyze_with("make x", environment.iter().copied());
        suggestions(&analysis.commands[0])
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(offered(&[("PATH", "/w:/bin")]), ["PATH=/w:/bin make x"]);
    assert_eq!(offered(&[("X", "a b"), ("LANG", "C")]), ["X='a b' make x"]);
    assert_eq!(offered(&[("X", &"y".repeat(400))]), [""; 0]);
}

#[test]
fn what_is_shown_is_short_and_tame() {
    let text = |environment: &[(&str, &str)]| {
        analyze_with("rm -rf x", environment.iter().copied()).commands[0]
            .text
            .clone()
    };
    assert_eq!(text(&[("A", "1"), ("B", "")]), "A=1 B= rm -rf x");
    assert_eq!(
        text(&[("A", "\u{202e}\u{1b}[2J\n; ls #")]),
        r"A='\u{202e}\u{1b}[2J\n; ls #' rm -rf x"
    );
    let long = "y".repeat(5000);
    assert_eq!(text(&[("A", &long)]), "A=… rm -rf x");
    let many: Vec<String> = (0..9).map(|number| format!("V{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(
        text(&many),
        "V0=1 V1=1 V2=1 V3=1 (and 5 more variables) rm -rf x"
    );
    // Those in the text itself, too, and before a command that is not literal.
    assert_eq!(analyze("A=1 rm x").commands[0].text, "A=1 rm x");
    assert_eq!(
        analyze(&format!("A={long} rm $x")).commands[0].text,
        "A=… rm $x"
    );
}

#[test]
fn an_environment_that_is_too_large_is_opaque() {
    let names: Vec<String> = (0..1000).map(|number| format!("V{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let long = "y".repeat(10_000);
    for environment in [many, vec![("A", long.as_str())]] {
        let Analysis {
            commands, opaque, ..
        } = analyze_with("ls; ls", environment);
        assert!(
            commands
                .iter()
                .all(|command| command.assignments.len() <= 64)
        );
        let reasons: Vec<OpaqueReason> = opaque.iter().map(|piece| piece.reason).collect();
        assert_eq!(reasons, [OpaqueReason::LargeEnvironment]);
    }
}

#[test]
fn a_search_path_for_folders_makes_them_unknown() {
    use toolpost_command::CommandDirectory;
    let directory = |text: &str, environment: &[(&str, &str)]| {
        analyze_with(text, environment.iter().copied())
            .commands
            .pop()
            .unwrap()
            .directory
    };
    assert_eq!(
        directory("cd x && ls", &[]),
        CommandDirectory::Beneath("x".to_owned())
    );
    assert_eq!(
        directory("cd x && ls", &[("CDPATH", "/etc")]),
        CommandDirectory::Unknown
    );
    assert_eq!(
        directory("CDPATH=/etc cd x && ls", &[]),
        CommandDirectory::Unknown
    );
}
