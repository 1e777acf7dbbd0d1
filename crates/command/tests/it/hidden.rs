//! Ways to make a command look like another one, or like none.

use crate::check_found;

#[test]
fn functions_do_not_hide_programs() {
    check_found(&[
        ("f() { rm x; }", "rm x"),
        ("function f { rm x; }", "rm x"),
        ("f() (rm x)", "rm x"),
        ("f() { rm x; } > g", "rm x; >g"),
        ("f() { rm x; }; f", "rm x; f …; !FunctionCalled"),
        ("ls() { rm x; }; ls", "rm x; ls …; !FunctionCalled"),
        ("ls; ls() { rm x; }", "ls …; rm x; !FunctionCalled"),
        ("env() { rm x; }; env ls", "rm x; ls …; !FunctionCalled"),
        ("cd() { rm x; }; cd y", "rm x; cd y …; !FunctionCalled"),
        (
            "function git() { rm x; }\ngit status",
            "rm x; git status …; !FunctionCalled",
        ),
        ("f() { g() { rm x; }; g; }", "rm x; g …; !FunctionCalled"),
    ]);
}

#[test]
fn changed_names() {
    check_found(&[
        ("alias ls='rm x'; ls", "alias ls=rm x; ls …; !ChangedShell"),
        ("alias ls='rm x'\nls", "alias ls=rm x; ls …; !ChangedShell"),
        (
            "hash -p /tmp/x ls; ls",
            "hash -p /tmp/x ls; ls …; !ChangedShell",
        ),
        ("hash -r; ls", "hash -r; ls"),
        (
            "enable -f ./x.so y; y",
            "enable -f ./x.so y ~; y …; !ChangedShell",
        ),
        (
            "enable -n echo; echo",
            "enable -n echo; echo …; !ChangedShell",
        ),
        (
            "shopt -s expand_aliases; ls",
            "shopt -s expand_aliases; ls …; !ChangedShell",
        ),
        ("shopt -s nullglob; ls", "shopt -s nullglob; ls"),
        ("set -a; ls", "set -a; ls …; !ChangedShell"),
        ("set -euo pipefail; ls", "set -euo pipefail; ls"),
        (
            "set -o allexport; ls",
            "set -o allexport; ls …; !ChangedShell",
        ),
        (
            "set -k; ls LD_PRELOAD=x",
            "set -k; ls LD_PRELOAD=x …; !ChangedShell",
        ),
        (
            "export PATH=/tmp; ls",
            "export PATH=/tmp; ls …; !ChangedShell",
        ),
        ("export FOO=1; ls", "export FOO=1; ls"),
        (
            "export $X; ls",
            "export …; ls …; !DynamicWord; !ChangedShell",
        ),
        (
            "declare -x PATH=/tmp; ls",
            "declare -x PATH=/tmp; ls …; !ChangedShell",
        ),
        (
            "readonly PATH=/tmp && ls",
            "readonly PATH=/tmp; ls …; !ChangedShell",
        ),
        ("read PATH <<< /tmp; ls", "read PATH; ls …; !ChangedShell"),
        (
            "printf -v PATH /tmp; ls",
            "printf -v PATH /tmp; ls …; !ChangedShell",
        ),
        ("unset PATH; ls", "unset PATH; ls …; !ChangedShell"),
        (
            "while true; do ls; alias ls=x; done",
            "true …; ls …; alias ls=x …; !ChangedShell",
        ),
        ("if a; then PATH=/tmp; fi; ls", "a; ls …; !ChangedShell"),
        ("command alias ls=x; ls", "alias ls=x; ls …; !ChangedShell"),
        ("env alias ls=x; ls", "alias ls=x; ls"),
    ]);
}

#[test]
fn words_that_are_evaluated_again() {
    check_found(&[
        (
            "test -v 'a[$(rm x)]'",
            "test -v a[$(rm x)]; rm x; !Evaluated",
        ),
        ("[ -v 'a[$(rm x)]' ]", "[ -v a[$(rm x)] ]; rm x; !Evaluated"),
        (
            "printf -v 'a[$(rm x)]' y",
            "printf -v a[$(rm x)] y; rm x; !Evaluated",
        ),
        ("unset 'a[`rm x`]'", "unset a[`rm x`]; rm x; !Evaluated"),
        ("read 'a[$(rm x)]'", "read a[$(rm x)]; rm x; !Evaluated"),
        (
            "declare 'a[$(rm x)]=1'",
            "declare a[$(rm x)]=1; rm x; !Evaluated",
        ),
        ("let 'a[$(rm x)]'", "let a[$(rm x)]; rm x; !Evaluated"),
        ("let 1+1", "let 1+1"),
        ("let x=y", "let x=y; !Evaluated"),
        ("declare -i x=y", "declare -i x=y; !Evaluated"),
        ("declare -n x=y", "declare -n x=y; !Evaluated"),
        (
            "mapfile -C 'rm x' -c 1 a",
            "mapfile -C rm x -c 1 a; !Evaluated",
        ),
        ("compgen -W '$(rm x)'", "compgen -W $(rm x); !Evaluated"),
        ("RANDOM='a[$(rm x)]'", "!Evaluated"),
        ("SECONDS=1", "!Evaluated"),
        ("OPTIND=x ls", "OPTIND=x ls; !Evaluated"),
        ("for SECONDS in 'a[$(rm x)]'; do ls; done", "ls; !Evaluated"),
        ("read RANDOM <<< 'a[$(rm x)]'", "read RANDOM; !Evaluated"),
        ("export OPTIND=x", "export OPTIND=x; !Evaluated"),
        ("printf -v 'a[x]' y", "printf -v a[x] y; !Evaluated"),
        ("read 'a[0]'", "read a[0]"),
        ("unset 'a[x]'", "unset a[x]; !Evaluated"),
        ("test y = 'a[x]'", "test y = a[x]"),
        (
            "BASH_ALIASES[ls]='rm x'; ls",
            "ls …; !ChangedShell; !Evaluated; !ChangedShell",
        ),
        ("compgen -C 'rm x'", "compgen -C rm x; !Evaluated"),
        ("jobs -x rm y", "jobs -x rm y; !Evaluated"),
        ("printf '%s' 'a $(b)'", "printf %s a $(b)"),
        ("[ -f x ]", "[ -f x ]"),
        ("test -v x", "test -v x"),
    ]);
}

#[test]
fn quoting_that_readers_disagree_on() {
    check_found(&[
        ("echo \\$'a\\'; rm x; echo 'b #'", "echo …; !DynamicWord"),
        (
            "echo \"${x:-'}\" ; rm x ; echo \"'}\"",
            "echo …; !DynamicWord",
        ),
        ("echo $$'a\\'; rm x; echo 'b #'", "echo …; !DynamicWord"),
        ("echo $'a\\\nb'", "!Ambiguous"),
        ("echo $\\\n'a\\'; rm x; echo 'b #'", "!Ambiguous"),
        (
            "echo \"a\\\nb\" 'c\\\nd' $x",
            "echo ab c\\\nd …; !DynamicWord",
        ),
        ("a\r\nb", "!ControlCharacter"),
        ("a\0b", "!ControlCharacter"),
        ("echo 'a", "!NotParsed"),
        ("echo \"a", "!NotParsed"),
        ("echo `a", "!NotParsed"),
        ("echo $(a", "!NotParsed"),
        ("echo \\", "!NotParsed"),
        ("a)", "!NotParsed"),
        ("a;;b", "!NotParsed"),
        ("echo !(rm x)", "!NotParsed"),
        ("!(rm x)", "rm x"),
        ("echo @(a|b)", "!NotParsed"),
        ("x=$(echo a # ) \nrm y)", "echo a; rm y; !Ambiguous"),
        ("echo \"$(rm \"x\")\"", "rm x; echo …; !DynamicWord"),
        ("echo $'\\xff'", "echo …; !DynamicWord"),
        ("echo ~99999999999999999999999", "echo …; !DynamicWord"),
    ]);
}
