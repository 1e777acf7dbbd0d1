//! Texts that are made to be too much.

use toolpost_command::{Analysis, OpaquePart, OpaqueReason, analyze};

fn reasons(text: &str) -> Vec<OpaqueReason> {
    analyze(text)
        .opaque
        .iter()
        .map(|opaque| opaque.reason)
        .collect()
}

#[test]
fn what_is_too_much_is_opaque() {
    let rows = [
        ("a".repeat(64 * 1024 + 1), OpaqueReason::TooLong),
        ("a ".repeat(5000), OpaqueReason::TooLong),
        ("(".repeat(64), OpaqueReason::TooDeep),
        (
            "( ".repeat(13) + "a" + &" )".repeat(13),
            OpaqueReason::TooDeep,
        ),
        ("{ ".repeat(2000), OpaqueReason::TooDeep),
        ("$(".repeat(20_000), OpaqueReason::TooDeep),
        ("\"$(".repeat(20_000), OpaqueReason::TooDeep),
        ("${a:-".repeat(10_000), OpaqueReason::TooDeep),
        ("$[".repeat(20_000), OpaqueReason::TooDeep),
        ("case a in a) ".repeat(5), OpaqueReason::TooDeep),
        ("if a; then ".repeat(33), OpaqueReason::TooDeep),
        ("! ".repeat(1000) + "a", OpaqueReason::TooDeep),
        ("coproc ".repeat(5) + "a", OpaqueReason::TooDeep),
        ("a[".repeat(30), OpaqueReason::TooDeep),
        ("case[\\function".repeat(30), OpaqueReason::TooDeep),
        // The tokenizer does not come back from these.
        ("<< $( & case ".to_owned(), OpaqueReason::Ambiguous),
        ("<< $[ << =~ ".to_owned(), OpaqueReason::Ambiguous),
    ];
    for (text, expected) in rows {
        assert_eq!(reasons(&text), [expected], "{:.40}", text);
    }
}

#[test]
fn commands_beyond_the_list_make_it_opaque() {
    assert!(!analyze(&"a;".repeat(512)).is_opaque());
    let analysis = analyze(&"a;".repeat(2000));
    assert_eq!(analysis.commands.len(), 512);
    assert!(
        analysis
            .opaque
            .iter()
            .all(|opaque| opaque.reason == OpaqueReason::TooManyCommands)
    );
    assert!(analysis.is_opaque());
}

#[test]
fn quoted_text_may_be_as_nested_as_it_likes() {
    for text in [
        format!("python3 -c '{}'", "f(".repeat(5000)),
        format!(
            "cat > f <<'EOF'\n{}\nEOF\n",
            "if (x) { case 1: y((1 << 2)); `${z}` }\n".repeat(500)
        ),
        format!("node -e '{}'", "`${a}`".repeat(500)),
        format!("echo \"{}\"", "{ ( [ if case ".repeat(1000)),
    ] {
        let analysis = analyze(&text);
        assert!(!analysis.is_opaque(), "{:?}", analysis.opaque);
        assert_eq!(analysis.commands.len(), 1);
    }
}

/// As much nesting as the bounds let through, in an unoptimised build, on the stack of a runtime's worker.
#[test]
fn the_bounds_fit_a_small_stack() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let texts = [
        nested("{ ", "a;", " }; ", 32).replace("}; }", "} ; }"),
        nested("if a; then ", "b; ", "fi; ", 32),
        nested("while a; do ", "b; ", "done; ", 32),
        nested("function f { ", "b; ", "}; ", 16),
        nested("( ", "a", " )", 12),
        nested("( ", "", "", 12) + &"{ ".repeat(19),
        "{ ".repeat(32),
        "if ".repeat(32),
        "! ".repeat(32),
        "coproc ".repeat(32) + "a",
        nested("case a in a) ", "b", " ;; esac", 4),
        nested("echo $(", "a", ")", 8),
        nested("echo \"$(", "a", ")\"", 12),
        nested("$(", "a", ")", 48),
        nested("${a:-", "b", "}", 48),
        nested("echo ${a:-", "$(rm x)", "}", 12),
        nested("[[ ( ", "a", " ) ]]", 12),
        format!("[[ {} a ]]", "! ".repeat(32)),
        format!("a{}", "|a".repeat(2000)),
        format!("a{}", "&&a".repeat(2000)),
        format!("echo{}", " x".repeat(4000)),
        format!("x=({})", "a ".repeat(4000)),
    ];
    let worker = std::thread::Builder::new().stack_size(1024 * 1024);
    let walk = move || {
        texts
            .iter()
            .filter(|text| analyze(text) != Analysis::default())
            .count()
    };
    assert_eq!(worker.spawn(walk).unwrap().join().unwrap(), 19);
}

#[test]
fn texts_for_people_are_short_and_tame() {
    let analysis = analyze("echo $'\\e[2J\\r' '\u{202e}x' a\u{7}b");
    assert_eq!(
        analysis.commands[0].text,
        r"echo '\u{1b}[2J\r' \u{202e}x 'a\u{7}b'"
    );
    let analysis = analyze(&format!("rm {} $x", "y ".repeat(1000)));
    let OpaquePart { text, .. } = &analysis.opaque[0];
    assert!(
        (190..=202).contains(&text.chars().count()) && text.ends_with("y …"),
        "{text}"
    );
}

/// A word that does not fit is left out whole: half of it could be half a secret, which no search for secrets finds.
#[test]
fn texts_are_cut_between_words() {
    let word = "y".repeat(1000);
    assert_eq!(analyze(&format!("rm {word} $x")).opaque[0].text, "rm …");
    assert_eq!(analyze(&format!("rm {word}")).commands[0].text, "rm …");
    assert_eq!(analyze(&word).commands[0].text, "…");
    assert_eq!(
        analyze(&format!("say 'a b {word}'")).commands[0].text,
        "say 'a b …"
    );
}

#[test]
fn reasons_are_said_in_words() {
    for (text, expected) in [
        ("rm $x", "contains a word that is known only when it runs"),
        ("a (", "cannot be parsed"),
        (". f", "runs the commands of a file in this shell"),
    ] {
        assert_eq!(
            analyze(text).opaque[0].reason.to_string(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn facts_are_serialised() {
    let facts = serde_json::to_value(analyze("X=1 cat a > b")).unwrap();
    let expected = serde_json::json!({
        "commands": [{
            "words": ["cat", "a"],
            "assignments": [{ "name": "X", "value": "1" }],
            "opaque": false,
            "within": [],
            "directory": "start",
            "text": "X=1 cat a",
        }],
        "redirects": [{ "target": "b", "access": "write", "directory": "start" }],
        "opaque": [],
    });
    assert_eq!(facts, expected);
}
