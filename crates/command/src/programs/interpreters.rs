//! Interpreters and editors that get code in a word. A file with code counts as a program like any other; only the
//! files of shells contain commands that rules could match.

use super::CommandOptionMeaning::{Attached, Code, Ends, Flag, Hides, Value};
use super::EmbeddedLanguage::Editor;
use super::OperandMeaning::{CodeFromInput, Hides as AlwaysHides, ScriptFile, Subcommand};
use super::{LaunchingProgram, NO_PROGRAM};

const CODE: &str = "runs code from its arguments";

pub(super) const PROGRAMS: &[LaunchingProgram] = &[
    LaunchingProgram {
        names: "python pypy ipython jython micropython",
        options: &[
            ("-c", Hides),
            ("-m", Ends),
            ("-W -X", Value),
            ("-V -h --version --help", Ends),
        ],
        operands: CodeFromInput,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "perl raku",
        options: &[
            ("-e -E", Hides),
            ("-I", Value),
            ("-M -m -x -D -F -C", Attached),
            ("-v -V --version --help", Ends),
            ("-i -n -p -l -a -w -s -0 -t -T -W -c", Flag),
        ],
        operands: CodeFromInput,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "ruby irb jruby",
        options: &[
            ("-e", Hides),
            ("-r -I -C", Value),
            ("-E -K -x", Attached),
            ("-v --version --help -h", Ends),
        ],
        operands: CodeFromInput,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "node nodejs tsx ts-node",
        options: &[
            ("-e -p --eval --print -pe", Hides),
            (
                "-r --require --import --loader --experimental-loader",
                Hides,
            ),
            (
                "-v -h -c --version --help --check --test --run --v8-options --watch",
                Ends,
            ),
            ("-C --conditions --env-file", Value),
        ],
        operands: CodeFromInput,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "deno",
        options: &[
            ("-c --config --log-level -L", Value),
            ("-q --quiet --version -V --help -h", Flag),
        ],
        operands: Subcommand,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "deno",
        subcommands: &["eval", "repl"],
        operands: AlwaysHides,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "php",
        options: &[
            ("-r -B -R -E -F", Hides),
            ("-d -c -z -t", Value),
            ("-f -S", Ends),
            ("-v -i -m -h --version", Ends),
        ],
        operands: CodeFromInput,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "lua luajit texlua julia tclsh wish jshell Rscript elixir",
        options: &[
            ("-e -E -l --eval --print", Hides),
            ("-v -h -V --version --help", Ends),
        ],
        operands: CodeFromInput,
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "R iex erl groovy scala kotlin clojure clj ghc ocaml racket guile sbcl octave gnuplot osascript crystal nim \
                matlab maxima gosh swipl",
        options: &[("-e --eval -eval -E -r -batch --execute -g -c", Hides)],
        reason: CODE,
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "pwsh powershell nu xonsh elvish osh oil yash",
        options: &[
            (
                "-c -Command -command -EncodedCommand -e --commands --command",
                Hides,
            ),
            ("--version -v --help -h", Ends),
        ],
        operands: ScriptFile,
        reason: "runs the commands of a shell that is not bash",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "vi vim nvim view vimdiff gvim gview rvim nvi vise neovide",
        options: &[
            ("-c --cmd -S -s -u -U -l", Hides),
            ("+", Code(Editor)),
            ("-T -t -q -i -w -W", Value),
            (
                "-R -n -d -e -E -b -N -g -f -m -M -o -O -p -Z -y -A -x",
                Flag,
            ),
        ],
        reason: "runs commands of an editor",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "ex",
        operands: AlwaysHides,
        reason: "runs commands of an editor",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "emacs emacsclient xemacs",
        options: &[
            (
                "--eval -eval -e --execute -execute --funcall -funcall -f",
                Hides,
            ),
            ("-l --load -load --script -script -x", Hides),
        ],
        reason: "runs code of an editor",
        ..NO_PROGRAM
    },
];
