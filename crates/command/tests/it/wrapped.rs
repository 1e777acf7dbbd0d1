//! Commands that start others.

use toolpost_command::analyze;

use crate::check_found;

#[test]
fn wrappers_are_looked_through() {
    check_found(&[
        ("env rm x", "rm x"),
        ("env -i rm x", "rm x"),
        ("env - rm x", "rm x"),
        ("env -u A -i rm x", "rm x"),
        ("env --unset=A rm x", "rm x"),
        ("env A=1 LANG=C rm x", "A=1 rm x"),
        ("env -- A=1 rm x", "A=1 rm x"),
        ("/usr/bin/env rm x", "rm x"),
        ("env", "env"),
        ("env A=1", "env A=1"),
        ("env -S 'rm x'", "env -S rm x; !UnknownWrapper"),
        ("env -vS 'rm x'", "env -vS rm x; !UnknownWrapper"),
        ("./env rm x", "./env rm x; rm x"),
        ("nice rm x", "rm x"),
        ("nice -n 5 rm x", "rm x"),
        ("nice -n5 rm x", "rm x"),
        ("nice -10 rm x", "rm x"),
        ("nice --adjustment=5 rm x", "rm x"),
        ("ionice -c2 -n 7 rm x", "rm x"),
        ("nohup rm x &", "rm x"),
        ("setsid -f rm x", "rm x"),
        ("timeout 5 rm x", "rm x"),
        ("timeout -k 1 -s KILL 5s rm x", "rm x"),
        ("timeout --signal=KILL 5 rm x", "rm x"),
        (
            "timeout --new-option 5 rm x",
            "timeout --new-option 5 rm x; !UnknownWrapper",
        ),
        ("stdbuf -oL -e 0 rm x", "rm x"),
        ("command rm x", "rm x"),
        ("command -p rm x", "rm x"),
        ("command -v rm", "command -v rm"),
        ("builtin cd x", "cd x"),
        ("exec rm x", "rm x"),
        ("exec -a ls rm x", "rm x"),
        ("exec -cl rm x", "rm x"),
        ("command exec -a ls rm x", "rm x"),
        ("\\time -p rm x", "rm x"),
        ("time -o f rm x", "-o f rm x"),
        (
            "/usr/bin/time -o f rm x",
            "/usr/bin/time -o f rm x; !UnknownWrapper",
        ),
        ("taskset -c 0 rm x", "rm x"),
        ("flock f rm x", "rm x"),
        ("flock -n f -c 'rm x'", "flock -n f -c rm x; rm x"),
        ("watch -n 1 rm x", "rm x"),
        ("watch 'ls; rm x'", "ls; rm x"),
        ("timeout 5 nice env A=1 rm x", "A=1 rm x"),
        ("A=1 timeout 5 rm x", "A=1 rm x"),
        ("timeout 5 rm $X", "rm …; !DynamicWord"),
        ("timeout $X rm y", "timeout …; !DynamicWord"),
        ("busybox rm x", "busybox rm x"),
        ("busybox sh -c 'rm x'", "busybox sh -c rm x; rm x"),
        ("ssh host rm x", "ssh host rm x; rm x"),
        ("git -c alias.x='!rm y' x", "git -c alias.x=!rm y x; rm y"),
    ]);
}

#[test]
fn those_with_power_stay_commands_of_their_own() {
    check_found(&[
        ("sudo rm x", "sudo rm x; rm x"),
        ("sudo -u y rm x", "sudo -u y rm x; rm x"),
        ("sudo -uy -n rm x", "sudo -uy -n rm x; rm x"),
        ("sudo A=1 rm x", "sudo A=1 rm x; A=1 rm x"),
        ("sudo -E --user=y -- rm x", "sudo -E --user=y -- rm x; rm x"),
        ("sudo sh -c 'rm x'", "sudo sh -c rm x; rm x"),
        ("sudo -s", "sudo -s ~"),
        ("sudo $X", "sudo …; !DynamicWord"),
        ("doas -u y rm x", "doas -u y rm x; rm x"),
        ("chroot / rm x", "chroot / rm x; rm x"),
        ("unshare -rn rm x", "unshare -rn rm x; rm x"),
        ("nsenter -t 1 -a rm x", "nsenter -t 1 -a rm x; rm x"),
        (
            "strace -f -e trace=all rm x",
            "strace -f -e trace=all rm x; rm x",
        ),
        ("strace -o f rm x", "strace -o f rm x; !UnknownWrapper"),
        ("su -c 'rm x'", "su -c rm x; rm x"),
        ("script -c 'rm x' f", "script -c rm x f; rm x"),
        ("parallel rm ::: x", "parallel rm ::: x; !UnknownWrapper"),
        ("entr rm x", "entr rm x; !UnknownWrapper"),
    ]);
}

#[test]
fn what_is_found_or_piped_is_not_known() {
    check_found(&[
        ("xargs rm", "rm …; !DynamicWord"),
        ("ls | xargs rm -rf", "ls; rm -rf …; !DynamicWord"),
        ("xargs -0 -n 1 -I{} rm {}", "rm {} …; !DynamicWord"),
        ("xargs --null --max-args=1 rm", "rm …; !DynamicWord"),
        ("xargs -i rm {}", "rm {} …; !DynamicWord"),
        ("xargs", "xargs"),
        ("xargs sh -c 'rm x'", "rm x; !DynamicWord"),
        ("xargs timeout 5 rm", "rm …; !DynamicWord"),
        ("find . -name x", "find . -name x"),
        (
            "find . -exec rm {} \\;",
            "find . -exec rm {} ;; rm …; !DynamicWord",
        ),
        (
            "find . -exec rm -f {} +",
            "find . -exec rm -f {} +; rm -f …; !DynamicWord",
        ),
        ("find . -execdir rm x ';'", "find . -execdir rm x ;; rm x"),
        (
            "find . -ok rm {} \\; -okdir ls \\;",
            "find . -ok rm {} ; -okdir ls ;; rm …; ls; !DynamicWord",
        ),
        (
            "find . -exec sh -c 'rm x' \\;",
            "find . -exec sh -c rm x ;; rm x",
        ),
        (
            "find . -exec sh -c 'rm \"$1\"' _ {} \\;",
            "find . -exec sh -c rm \"$1\" _ {} ;; rm …; !DynamicWord",
        ),
        ("find . -delete", "find . -delete; rm …; !DynamicWord"),
        ("find . -fprint f", "find . -fprint f; >f"),
        (
            "find . -name '*.rs' -exec grep x {} +",
            "find . -name *.rs -exec grep x {} +; grep x …; !DynamicWord",
        ),
    ]);
}

#[test]
fn scripts_are_read_again() {
    check_found(&[
        ("sh -c 'rm x'", "rm x"),
        ("bash -c \"rm x; ls\"", "rm x; ls"),
        ("bash -lc 'rm x'", "rm x"),
        ("bash -euxo pipefail -c 'rm x'", "rm x"),
        ("bash --norc --noprofile -c 'rm x'", "rm x"),
        ("bash -c -- 'rm x'", "rm x"),
        ("/bin/sh -c 'rm x'", "rm x"),
        ("./sh -c 'rm x'", "./sh -c rm x; rm x"),
        ("A=1 sh -c 'rm x; ls'", "A=1 rm x; A=1 ls"),
        ("sh -c \"sh -c 'rm x'\"", "rm x"),
        ("sh -c 'sh -c \"sh -c \\\"sh -c ls\\\"\"'", "!TooDeep"),
        ("sh -c \"$X\"", "sh -c …; !DynamicWord"),
        ("sh -c 'ls' $X", "ls; !DynamicWord"),
        ("sh -c 'rm $1' _ x", "rm …; !DynamicWord"),
        ("sh -c 'rm x'; ls", "rm x; ls"),
        ("sh -c 'PATH=/tmp; a'; ls", "a …; ls; !ChangedShell"),
        ("sh -c 'a ('", "!NotParsed"),
        ("sh -c '[[ a > b ]]'", "!OtherShell"),
        ("sh -c '((rm x))'", "!OtherShell; !Evaluated"),
        ("zsh -c 'rm x'", "rm x; !OtherShell"),
        ("bash -ic 'rm x'", "rm x; !OtherShell"),
        ("bash x.sh", "bash x.sh ~"),
        (
            "bash --rcfile f -c ls",
            "bash --rcfile f -c ls; !UnknownWrapper",
        ),
        ("bash", "bash; !ReadsCommands"),
        ("bash -s x", "bash -s x; !ReadsCommands"),
        ("sh < f", "sh; <f; !ReadsCommands"),
        ("bash --version", "bash --version"),
        ("eval rm x", "rm x"),
        ("eval 'rm x; ls'", "rm x; ls"),
        ("eval -- 'rm' x", "rm x"),
        ("eval \"$X\"", "eval …; !DynamicWord"),
        ("eval rm $X", "rm; !DynamicWord"),
        ("eval 'PATH=/tmp'; ls", "ls …; !ChangedShell"),
        (". ./f", ". ./f; !SourcedFile"),
        ("source f", "source f; !SourcedFile"),
        ("trap 'rm x' EXIT", "trap rm x EXIT; rm x"),
        ("trap -- 'rm x' INT TERM", "trap -- rm x INT TERM; rm x"),
        ("trap - INT", "trap - INT"),
        ("trap '' INT", "trap  INT"),
        ("trap -p", "trap -p"),
        ("fish -c 'rm x'", "rm x; !OtherShell"),
    ]);
}

#[test]
fn the_way_to_a_command_is_told() {
    for (text, expected) in [
        ("rm x", vec![]),
        ("env rm x", vec!["env"]),
        ("timeout 5 rm x", vec!["timeout 5"]),
        (
            "nice -n 5 sh -c 'env A=1 rm x'",
            vec!["nice -n 5", "sh -c", "env A=1"],
        ),
        ("find . -execdir rm x \\;", vec!["find -execdir"]),
        ("eval rm x", vec!["eval"]),
    ] {
        let analysis = analyze(text);
        let within = analysis
            .commands
            .last()
            .map(|command| command.within.clone());
        assert_eq!(
            within,
            Some(expected.into_iter().map(str::to_owned).collect()),
            "{text}"
        );
    }
}
