//! Commands that stand in the words of others, and commands that the words do not tell.

use toolpost_command::{CommandPattern, OpaqueReason, SimpleCommand, analyze};

use crate::check_found;

#[test]
fn commands_in_options_and_operands_are_found() {
    check_found(&[
        (
            "git rebase --exec 'rm x' main",
            "git rebase --exec rm x main; rm x",
        ),
        ("git rebase -x'rm x' main", "git rebase -xrm x main; rm x"),
        (
            "git rebase -ix 'rm x; ls'",
            "git rebase -ix rm x; ls; rm x; ls",
        ),
        (
            "git -C y rebase --exec='rm x'",
            "git -C y rebase --exec=rm x; rm x",
        ),
        (
            "git --unknown y rebase --exe='rm x'",
            "git --unknown y rebase --exe=rm x; rm x",
        ),
        ("git bisect run rm x", "git bisect run rm x; rm x"),
        (
            "git submodule --quiet foreach 'rm x'",
            "git submodule --quiet foreach rm x; rm x",
        ),
        (
            "git submodule foreach --recursive rm x",
            "git submodule foreach --recursive rm x; rm x",
        ),
        (
            "git -c alias.p=push p -f",
            "git -c alias.p=push p -f; git push",
        ),
        (
            "git -c core.pager='rm x' log",
            "git -c core.pager=rm x log; rm x",
        ),
        (
            "git -c color.ui=always -c user.name=x log",
            "git -c color.ui=always -c user.name=x log",
        ),
        (
            "git config alias.x '!rm y'",
            "git config alias.x !rm y; rm y",
        ),
        (
            "git config --global user.name x",
            "git config --global user.name x",
        ),
        (
            "tar -czf a.tgz --to-command='rm x' y",
            "tar -czf a.tgz --to-command=rm x y; rm x",
        ),
        ("tar -xIf 'rm x' a", "tar -xIf rm x a; f"),
        (
            "tar -I 'zstd -3' -cf a b",
            "tar -I zstd -3 -cf a b; zstd -3",
        ),
        (
            "tar --checkpoint-action=exec='rm x' -cf a b",
            "tar --checkpoint-action=exec=rm x -cf a b; rm x",
        ),
        (
            "tar --checkpoint-action=dot -cf a b",
            "tar --checkpoint-action=dot -cf a b",
        ),
        ("tar -xzf Idea.tar", "tar -xzf Idea.tar"),
        ("tar xzf a.tgz", "tar xzf a.tgz"),
        ("npx rm x", "npx rm x; rm x"),
        ("npx --yes -p y rm x", "npx --yes -p y rm x; rm x"),
        ("npx --odd rm x", "npx --odd rm x ~; rm x"),
        ("npx -c 'rm x'", "npx -c rm x; rm x"),
        (
            "npm --prefix y exec -- rm x",
            "npm --prefix y exec -- rm x; rm x",
        ),
        ("npm test", "npm test"),
        ("uv run --with y rm x", "uv run --with y rm x; rm x"),
        ("uv run rm $X", "uv run rm …; rm; !DynamicWord"),
        ("fd -e rs -x rm -f", "fd -e rs -x rm -f ~; rm -f …"),
        ("fd y -X wc {} \\; -H", "fd y -X wc {} ; -H ~; wc …"),
        (
            "setpriv --reuid=1 --clear-groups rm x",
            "setpriv --reuid=1 --clear-groups rm x; rm x",
        ),
        (
            "setarch x86_64 -R rm x",
            "setarch x86_64 -R rm x; x86_64 -R rm x; rm x",
        ),
        ("i386 rm x", "i386 rm x; rm x"),
        (
            "/lib64/ld-linux-x86-64.so.2 --library-path /y /bin/rm x",
            "/lib64/ld-linux-x86-64.so.2 --library-path /y /bin/rm x; /bin/rm x",
        ),
        ("perf stat -e y rm x", "perf stat -e y rm x; rm x"),
        (
            "busybox awk 'BEGIN{system(\"rm x\")}'",
            "busybox awk BEGIN{system(\"rm x\")}; awk BEGIN{system(\"rm x\")} ~",
        ),
        (
            "npx timeout 5 sh -c 'rm x'",
            "npx timeout 5 sh -c rm x; rm x",
        ),
        (
            "git rebase -x 'npx rm x'",
            "git rebase -x npx rm x; npx rm x; rm x",
        ),
        ("A=1 npx rm x", "A=1 npx rm x; A=1 rm x"),
        (
            "ssh -p 22 -o ProxyCommand='rm x' h",
            "ssh -p 22 -o ProxyCommand=rm x h ~; rm x",
        ),
        ("ssh h", "ssh h ~"),
    ]);
}

#[test]
fn commands_that_words_do_not_tell_are_hidden() {
    check_found(&[
        ("sh s.sh", "sh s.sh ~"),
        ("bash -x s.sh y", "bash -x s.sh y ~"),
        ("python3 -c 1", "python3 -c 1 ~"),
        ("python3.12 -Bc 1", "python3.12 -Bc 1 ~"),
        ("python3 x.py -c", "python3 x.py -c"),
        ("sudo -s", "sudo -s ~"),
        ("chroot x", "chroot x ~"),
        ("python3 x.py", "python3 x.py"),
        ("python3 -m pytest -c x", "python3 -m pytest -c x"),
        ("echo 1 | python3", "echo 1; python3 ~"),
        ("python3 --version", "python3 --version"),
        ("perl -lne 1", "perl -lne 1 ~"),
        ("perl -Mre x.pl", "perl -Mre x.pl"),
        ("git --exec-path=/y status", "git --exec-path=/y status ~"),
        ("git --exec-path", "git --exec-path"),
        (
            "git -c core.hooksPath=y commit",
            "git -c core.hooksPath=y commit ~",
        ),
        (
            "git rebase --exec 'rm $x'",
            "git rebase --exec rm $x ~; rm …",
        ),
        (
            "git rebase --exec 'cd y && ls > f'",
            "git rebase --exec cd y && ls > f ~; cd y; ls",
        ),
        (
            "git rebase --exec 'ls > /f'",
            "git rebase --exec ls > /f; ls; >/f",
        ),
        ("git rebase --exec 'a ('", "git rebase --exec a ( ~"),
        ("awk '{print $1}' f", "awk {print $1} f"),
        ("awk -F: '{system($1)}' f", "awk -F: {system($1)} f ~"),
        ("awk -f x f", "awk -f x f ~"),
        ("sed -n '1,5p' f", "sed -n 1,5p f"),
        ("sed -i 's/a/b/' f", "sed -i s/a/b/ f"),
        ("sed '1e rm x' f", "sed 1e rm x f ~"),
        ("sed -ne p -e 's/a/b/e' f", "sed -ne p -e s/a/b/e f ~"),
        ("vim -c '!rm x' f", "vim -c !rm x f ~"),
        ("vim +10 f", "vim +10 f"),
        ("vim '+!rm x' f", "vim +!rm x f ~"),
        ("make -f x y", "make -f x y ~"),
        ("make CFLAGS=-g all", "make CFLAGS=-g all"),
        ("make 'X=$(shell rm y)'", "make X=$(shell rm y) ~"),
        ("make SHELL=./x", "make SHELL=./x; ./x"),
    ]);
}

#[test]
fn files_that_options_write_are_written() {
    check_found(&[
        ("git log --output=f", "git log --output=f; >f"),
        (
            "git -C y diff --output f HEAD",
            "git -C y diff --output f HEAD; >f",
        ),
        ("git log --oneline", "git log --oneline"),
        ("sort -o f x", "sort -o f x; >f"),
        ("sort -uof x", "sort -uof x; >f"),
        ("sort --output=/dev/null x", "sort --output=/dev/null x"),
        ("sort -k2 x", "sort -k2 x"),
        ("sed -n 'w f' x", "sed -n w f x; >f"),
        ("tree -o f", "tree -o f; >f"),
        (
            "curl -sSo f https://example.org",
            "curl -sSo f https://example.org; >f",
        ),
    ]);
}

#[test]
fn variables_that_choose_programs() {
    check_found(&[
        ("PAGER='rm x' git log", "PAGER=rm x git log; rm x"),
        (
            "GIT_SSH_COMMAND='rm $x' git fetch",
            "GIT_SSH_COMMAND=rm $x git fetch ~; rm …",
        ),
        (
            "PAGER='rm x' a; PAGER='rm x' b",
            "PAGER=rm x a; rm x; PAGER=rm x b",
        ),
        ("PATH=/y ls", "PATH=/y ls ~"),
        ("HOME=/y git status", "HOME=/y git status ~"),
        ("LD_PRELOAD=./x.so ls", "LD_PRELOAD=./x.so ls ~"),
        ("FOO=1 ls", "FOO=1 ls"),
        (
            "PAGER='PAGER=\"rm x\" a' b",
            "PAGER=PAGER=\"rm x\" a b; PAGER=rm x a; rm x",
        ),
    ]);
}

/// Rows of a pattern, a command, and whether an allow with the pattern covers it and spells what it hides.
#[test]
fn a_pattern_spells_what_is_hidden_only_without_a_star() {
    for (rule, text, covers, spells) in [
        ("sh s.sh", "sh s.sh", true, true),
        ("sh s.sh *", "sh s.sh a b", true, true),
        ("sh scripts/*.sh", "sh scripts/x.sh", true, true),
        ("sh *", "sh s.sh", true, false),
        ("* s.sh", "sh s.sh", true, false),
        ("*", "sh s.sh", true, false),
        ("python3 -c *", "python3 -c 1", true, false),
        ("python3 -c 1", "python3 -c 1", true, true),
        (
            "git -c * status",
            "git -c core.hooksPath=x status",
            true,
            false,
        ),
        (
            "git -c core.hooksPath=x *",
            "git -c core.hooksPath=x status",
            true,
            true,
        ),
        ("git *", "git -c core.hooksPath=x status", true, false),
        ("git *", "git status", true, true),
        ("PATH=* make", "PATH=/y make", true, false),
        ("PATH=/y make", "PATH=/y make", true, true),
        ("make", "PATH=/y make", false, false),
    ] {
        let pattern: CommandPattern = rule.parse().unwrap();
        let command = &analyze(text).commands[0];
        let found = (
            pattern.covers(command),
            pattern.covers(command) && pattern.spells(command),
        );
        assert_eq!(found, (covers, spells), "{rule} on {text}");
    }
}

#[test]
fn the_command_that_spells_another_is_named() {
    let commands = analyze("ls; git rebase -x 'npx rm x' -x 'make y'").commands;
    let spelled_in = |command: &SimpleCommand| command.spelled_in.map(|by| by.command);
    let found: Vec<(&str, Option<usize>)> = commands
        .iter()
        .map(|command| (command.text.as_str(), spelled_in(command)))
        .collect();
    let outer = "git rebase -x 'npx rm x' -x 'make y'";
    assert_eq!(
        found,
        [
            ("ls", None),
            (outer, None),
            ("npx rm x", Some(1)),
            ("rm x", Some(2)),
            ("make y", Some(1))
        ]
    );
    assert_eq!(commands[3].within, ["git rebase -x", "npx"]);
}

#[test]
fn texts_made_to_cost_much_are_bounded() {
    for (text, reason) in [
        ("npx ".repeat(4000) + "rm x", None),
        ("sudo ".repeat(4000) + "rm x", Some(OpaqueReason::TooDeep)),
        (
            "timeout 5 ".repeat(1000) + "rm x",
            Some(OpaqueReason::TooDeep),
        ),
        (
            "busybox ".repeat(4000) + "rm x",
            Some(OpaqueReason::TooDeep),
        ),
        ("git rebase".to_owned() + &" -x 'rm x'".repeat(1900), None),
        ("git".to_owned() + &" -c alias.x='!rm y'".repeat(1300), None),
        (
            (0..1300)
                .map(|number| format!("PAGER='rm {number}' ls;"))
                .collect(),
            Some(OpaqueReason::TooManyCommands),
        ),
        ("sed -e '".to_owned() + &"s/a/b/;".repeat(8000) + "'", None),
        ("awk '".to_owned() + &"|".repeat(60_000) + "'", None),
        ("tar -".to_owned() + &"z".repeat(60_000), None),
        ("tar ".to_owned() + &"-I'tar -Ix y' ".repeat(1200), None),
    ] {
        let analysis = analyze(&text);
        assert!(analysis.commands.len() <= 512);
        let found = analysis.opaque.first().map(|piece| piece.reason);
        assert_eq!(found, reason, "{:.30}", text);
    }
}
