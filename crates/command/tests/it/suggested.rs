//! What is offered to a person, and what is not.

use toolpost_command::{analyze, suggestions};

#[test]
fn narrow_to_wide() {
    let rows: &[(&str, &[&str])] = &[
        ("ls -la", &["ls -la", "ls *"]),
        ("cat x", &["cat x", "cat *"]),
        ("grep -rn 'a b' .", &["grep -rn 'a b' .", "grep *"]),
        ("mkdir -p x", &["mkdir -p x", "mkdir *"]),
        ("cargo test -p x", &["cargo test -p x", "cargo test *"]),
        ("cargo test", &["cargo test", "cargo test *"]),
        ("git status", &["git status", "git status *"]),
        (
            "git commit -m \"it's\"",
            &["git commit -m \"it's\"", "git commit *"],
        ),
        ("npm test", &["npm test", "npm test *"]),
        ("go build ./...", &["go build ./...", "go build *"]),
        ("kubectl get pods", &["kubectl get pods", "kubectl get *"]),
        ("docker ps", &["docker ps", "docker ps *"]),
        (
            "NODE_OPTIONS=--x npm test",
            &["NODE_OPTIONS=--x npm test", "NODE_OPTIONS=--x npm test *"],
        ),
        ("X='a b' ls", &["X='a b' ls", "X='a b' ls *"]),
        ("LANG=C ls", &["ls", "ls *"]),
        (
            "echo '*' '{a,b}' \"a'b\\\"c\"",
            &["echo '*' '{a,b}' \"a'b\\\"c\"", "echo *"],
        ),
        ("dd if=a of=b", &["dd 'if=a' 'of=b'"]),
        ("echo ''", &["echo ''", "echo *"]),
        // Only as they are.
        ("rm x", &["rm x"]),
        ("chmod +x y", &["chmod +x y"]),
        (
            "curl https://example.org/a",
            &["curl https://example.org/a"],
        ),
        ("ssh host ls", &["ssh host ls"]),
        ("git push origin main", &["git push origin main"]),
        ("git push --force", &["git push --force"]),
        ("git", &["git"]),
        ("git -C x status", &["git -C x status"]),
        ("git config a b", &["git config a b"]),
        ("npm run x", &["npm run x"]),
        ("npx x", &["npx x"]),
        ("make test", &["make test"]),
        ("docker run x", &["docker run x"]),
        ("cargo run", &["cargo run"]),
        ("./gradlew test", &["./gradlew test"]),
        ("./cargo test", &["./cargo test"]),
        ("find . -name x", &["find . -name x"]),
        ("sort x", &["sort x"]),
        ("python3 x.py", &["python3 x.py"]),
        ("python3 -m pytest", &["python3 -m pytest"]),
        ("node x.js", &["node x.js"]),
        ("bash x.sh", &["bash x.sh"]),
        ("xargs", &["xargs"]),
        // Not at all.
        ("python3 -c 'print(1)'", &[]),
        ("python3", &[]),
        ("python3 -", &[]),
        ("node -e 1", &[]),
        ("node --eval=1", &[]),
        ("perl -ne 1 x", &[]),
        ("ruby -e 1", &[]),
        ("php -r 1", &[]),
        ("deno eval 1", &[]),
        ("awk 1 x", &[]),
        ("bash", &[]),
        ("rm $X", &[]),
        ("rm *", &[]),
        ("xargs rm", &[]),
        ("X=$Y ls", &[]),
        ("$X", &[]),
        ("echo 'a\nb'", &["echo *"]),
    ];
    for (text, expected) in rows {
        let command = analyze(text)
            .commands
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("no command in {text}"));
        let offered: Vec<String> = suggestions(&command)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(offered, *expected, "{text}");
    }
}

#[test]
fn a_wrapper_with_power_is_offered_as_it_is() {
    let analysis = analyze("sudo rm x");
    let offered: Vec<Vec<String>> = analysis
        .commands
        .iter()
        .map(|command| {
            suggestions(command)
                .iter()
                .map(ToString::to_string)
                .collect()
        })
        .collect();
    assert_eq!(offered, [["sudo rm x"], ["rm x"]]);
}

#[test]
fn long_commands_are_not_offered() {
    let text = format!("rm {}", "x".repeat(400));
    assert!(suggestions(&analyze(&text).commands[0]).is_empty());
}
