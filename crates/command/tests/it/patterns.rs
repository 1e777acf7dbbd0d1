//! Which commands a pattern is about.

use toolpost_command::{CommandPattern, CommandPatternError, SimpleCommand, analyze};

fn pattern(text: &str) -> CommandPattern {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The last command that is found, which is the innermost of one that is wrapped.
fn command(text: &str) -> SimpleCommand {
    analyze(text)
        .commands
        .pop()
        .unwrap_or_else(|| panic!("no command in {text}"))
}

/// Rows of a pattern, a command, and whether an allow and a deny with the pattern are about it.
#[track_caller]
fn check(rows: &[(&str, &str, bool, bool)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(rule, text, ..)| (pattern(rule), command(text)))
        .zip(rows)
        .map(|((pattern, command), row)| (row, pattern.covers(&command), pattern.catches(&command)))
        .filter(|((.., covers, catches), found_covers, found_catches)| {
            (covers, catches) != (found_covers, found_catches)
        })
        .map(|(row, covers, catches)| format!("{row:?} found {covers} {catches}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_and_stars() {
    check(&[
        ("ls", "ls", true, true),
        ("ls", "ls -la", false, true),
        ("ls", "ls x", false, false),
        ("ls *", "ls", true, true),
        ("ls *", "ls -la x", true, true),
        ("ls *", "lsof", false, false),
        ("ls*", "lsof", true, true),
        ("*", "anything at all", true, true),
        ("git log *", "git log", true, true),
        ("git log *", "git log -p x", true, true),
        ("git log *", "git logx", false, false),
        ("git log *", "git", false, false),
        ("git * main", "git checkout main", true, true),
        ("git * main", "git checkout -b main", false, true),
        ("git * main", "git main", false, false),
        ("cargo {build,test,check} *", "cargo test -p x", true, true),
        ("cargo {build,test,check} *", "cargo run", false, false),
        ("{ls,cat} x", "cat x", true, true),
        ("a{b,c}d{e,f}", "acdf", true, true),
        ("a{b,c}d{e,f}", "add", false, false),
        ("cat *.rs", "cat x.rs", true, true),
        ("cat *.rs", "cat x.rs y.rs", false, false),
        ("cat src/*", "cat src/../../etc/passwd", true, true),
        ("echo 'a b'", "echo 'a b'", true, true),
        ("echo 'a b'", "echo a b", false, false),
        ("echo \"a b\" *", "echo 'a b' c", true, true),
        ("echo a\\ b", "echo 'a b'", true, true),
        ("echo '*'", "echo '*'", true, true),
        ("echo '*'", "echo x", false, false),
        ("echo '{a,b}'", "echo '{a,b}'", true, true),
        ("echo {}", "echo {}", true, true),
        ("echo ''", "echo ''", true, true),
        ("echo ''", "echo", false, false),
    ]);
}

#[test]
fn programs_by_name_and_as_written() {
    check(&[
        ("git *", "git log", true, true),
        ("git *", "./git log", false, true),
        ("git *", "/tmp/git log", false, true),
        ("git *", "/usr/bin/git log", false, true),
        ("/usr/bin/git *", "/usr/bin/git log", true, true),
        ("/usr/bin/git *", "git log", false, true),
        ("/usr/bin/git *", "/tmp/git log", false, true),
        ("./x.sh", "./x.sh", true, true),
        ("./x.sh", "x.sh", false, true),
        ("rm *", "/bin/rm -rf x", false, true),
        ("rm *", "\\rm x", true, true),
        ("rm *", "'rm' x", true, true),
        ("rm *", "$'\\x72m' x", true, true),
        ("rm *", "busybox rm x", false, true),
        ("rm *", "/bin/busybox rm x", false, true),
        ("busybox *", "busybox rm x", true, true),
        ("rm *", "rmdir x", false, false),
        ("rm *", "echo rm x", false, false),
        ("cargo-*", "cargo-x", true, true),
        ("cargo-*", "cargo-x/../../sh", false, true),
    ]);
}

#[test]
fn variables_must_be_mentioned_to_allow() {
    check(&[
        ("npm test", "X=1 npm test", false, true),
        (
            "NODE_OPTIONS=* npm test",
            "NODE_OPTIONS=--x npm test",
            true,
            true,
        ),
        ("NODE_OPTIONS=* npm test", "npm test", false, true),
        (
            "NODE_OPTIONS=* npm test",
            "NODE_OPTIONS=--x Y=1 npm test",
            false,
            true,
        ),
        ("X=1 npm test", "X=1 npm test", true, true),
        ("X=1 npm test", "X=2 npm test", false, true),
        ("X={1,2} npm test", "X=2 npm test", true, true),
        ("X='a b' npm test", "X='a b' npm test", true, true),
        ("npm test", "LANG=C CI=1 npm test", true, true),
        ("LANG=C npm test", "npm test", true, true),
        ("npm test", "env X=1 npm test", false, true),
        ("X=1 npm test", "env X=1 npm test", true, true),
        ("X=* npm test", "X=$Y npm test", false, true),
        ("git log *", "GIT_DIR=x git log", false, true),
    ]);
}

#[test]
fn denies_see_through_other_spellings() {
    check(&[
        ("git push --force *", "git push --force", true, true),
        (
            "git push --force *",
            "git push origin main --force",
            false,
            true,
        ),
        ("git push --force *", "git push origin main -f", false, true),
        ("git push --force *", "git -C x push --force", false, true),
        ("git push --force *", "git -c a.b=c push -f", false, true),
        (
            "git push --force *",
            "git --git-dir=x --work-tree y push -f",
            false,
            true,
        ),
        (
            "git push --force *",
            "git --no-pager -P push -f",
            false,
            true,
        ),
        ("git push --force *", "git push origin +main", false, true),
        ("git push --force *", "git push origin main", false, false),
        (
            "git push --force *",
            "git push --force-with-lease",
            false,
            false,
        ),
        ("git push --force *", "git push --force=x", false, true),
        ("git push -f *", "git push --force", false, true),
        ("git push *", "git -C x push", false, true),
        ("git push *", "git --no-pager log push", false, false),
        ("git push *", "git stash push", false, false),
        ("git push origin *", "git push -o x origin", false, true),
        (
            "git push origin *",
            "git push upstream origin",
            false,
            false,
        ),
        ("git log", "git log --oneline", false, true),
        ("rm -rf *", "rm -rf x", true, true),
        ("rm -rf *", "rm -fr x", false, true),
        ("rm -rf *", "rm -r -f x", false, true),
        ("rm -rf *", "rm x -r -v -f", false, true),
        ("rm -rf *", "rm -Rfv x", false, true),
        ("rm -rf *", "rm --recursive --force x", false, true),
        ("rm -rf *", "rm --recur -f x", false, true),
        ("rm -rf *", "rm -r x", false, false),
        ("rm -rf *", "rm -- -rf", false, false),
        ("rm -rf /", "rm -rf /", true, true),
        ("rm -rf /", "rm -r / -f", false, true),
        ("rm -rf /", "rm -rf /tmp", false, false),
        ("rm --recursive *", "rm -r x", false, true),
        ("chmod -R *", "chmod --recursive 777 x", false, true),
        ("cp -r *", "cp -R a b", false, true),
        ("npm publish *", "npm --prefix x publish", false, true),
        ("npm publish *", "pnpm -C x publish", false, false),
        ("pnpm publish *", "pnpm -C x publish", false, true),
        ("cargo publish *", "cargo +nightly publish", false, true),
        ("cargo publish *", "cargo --config a=b publish", false, true),
        ("docker run *", "docker --context x run y", false, true),
        ("kubectl delete *", "kubectl -n x delete pod y", false, true),
        ("make deploy", "make -C x deploy", false, true),
        ("curl --output=x *", "curl --output x y", false, true),
        ("curl -o *", "curl -sSo x y", false, true),
        ("xargs *", "xargs rm", false, true),
        ("sudo *", "sudo -u x rm y", false, true),
        ("sh *", "sh -c 'rm x'", false, true),
    ]);
}

#[test]
fn options_behind_one_dash_are_words() {
    let find = |text: &str| analyze(text).commands.remove(0);
    let rule = pattern("find * -delete *");
    assert!(rule.catches(&find("find . -name x -delete")));
    assert!(!rule.catches(&find("find . -type d -newer e -lname t -e")));
}

#[test]
fn opaque_commands_are_never_allowed_and_may_be_denied() {
    check(&[
        ("rm *", "rm $X", false, true),
        ("rm -rf *", "rm $X", false, true),
        ("rm -rf /", "rm -rf $X", false, true),
        ("rm a", "rm b $X", false, false),
        ("git push *", "git $X", false, true),
        ("git push *", "git log $X", false, false),
        ("git push *", "git -C $X push", false, true),
        ("*", "rm $X", false, true),
        ("*", "$X", false, false),
        ("rm *", "$X", false, false),
        ("rm *", "$X rm y", false, false),
        ("rm *", "xargs rm", false, true),
        ("rm *", "xargs rm -rf", false, true),
        ("rm *", "find . -delete", false, true),
        ("rm *", "find . -exec rm {} +", false, true),
        ("ls *", "PATH=/tmp; ls", false, true),
        ("ls *", "ls() { rm x; }; ls", false, true),
    ]);
}

#[test]
fn patterns_that_are_none() {
    for (text, expected) in [
        ("", CommandPatternError::Empty),
        ("  ", CommandPatternError::Empty),
        ("X=1", CommandPatternError::Empty),
        (
            "echo 'a",
            CommandPatternError::UnclosedQuote("'a".to_owned()),
        ),
        (
            "echo a\\",
            CommandPatternError::UnclosedQuote("a\\".to_owned()),
        ),
        (
            "echo {a,b",
            CommandPatternError::Alternatives("{a,b".to_owned()),
        ),
        (
            "echo {a,{b,c}}",
            CommandPatternError::Alternatives("{a,{b,c}}".to_owned()),
        ),
        (
            "a; b",
            CommandPatternError::Operator {
                word: "a;".to_owned(),
                character: ';',
            },
        ),
        (
            "a | b",
            CommandPatternError::Operator {
                word: "|".to_owned(),
                character: '|',
            },
        ),
        (
            "a > b",
            CommandPatternError::Operator {
                word: ">".to_owned(),
                character: '>',
            },
        ),
        (
            "a $(b)",
            CommandPatternError::Operator {
                word: "$(b)".to_owned(),
                character: '$',
            },
        ),
        ("a\nb", CommandPatternError::ControlCharacter),
        (
            "{a,b,c}{a,b,c}{a,b,c}{a,b,c}",
            CommandPatternError::TooManyAlternatives("{a,b,c}{a,b,c}{a,b,c}{a,b,c}".to_owned()),
        ),
    ] {
        assert_eq!(text.parse::<CommandPattern>(), Err(expected), "{text}");
    }
    assert_eq!(
        "x".repeat(5000).parse::<CommandPattern>(),
        Err(CommandPatternError::TooLong(5000))
    );
}

#[test]
fn patterns_are_written_as_they_are_read() {
    for (text, expected) in [
        ("git log *", "git log *"),
        ("  git \t log   *  ", "git log *"),
        ("echo 'a  b' \"c\" d\\ e", "echo 'a  b' \"c\" d\\ e"),
        ("X=* a {b,c}", "X=* a {b,c}"),
    ] {
        let read = pattern(text);
        assert_eq!(read.to_string(), expected);
        assert_eq!(pattern(expected), read);
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<CommandPattern>(&json).unwrap(), read);
    }
    assert!(serde_json::from_str::<CommandPattern>("\"a; b\"").is_err());
}
