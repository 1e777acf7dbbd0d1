//! A table of programs that run files, with the position of the file among their words.

/// A program that runs files.
pub(super) struct ScriptInterpreter {
    /// Its names, without versions.
    names: &'static [&'static str],
    /// Words before the script, as in `deno run`.
    pub(super) subcommands: &'static [&'static str],
    /// Options with a value that is not a file.
    pub(super) values: &'static [&'static str],
    /// Options with a file that it runs.
    pub(super) files: &'static [&'static str],
    /// Options with the code itself; there is no script then.
    pub(super) inline: &'static [&'static str],
    /// Options with its working directory.
    pub(super) directories: &'static [&'static str],
    /// Files that it runs if none is named, in its order.
    pub(super) implied: &'static [&'static str],
    pub(super) takes: OperandKind,
}

/// The meaning of the first word that is neither an option nor an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKind {
    /// A script. Without it, the script is read from standard input.
    Script,
    /// A script, a module behind `-m`, or the standard input.
    ScriptOrModule,
    /// Data or a target.
    NoScript,
}

const NONE: &[&str] = &[];

const SCRIPTED: ScriptInterpreter = ScriptInterpreter {
    names: NONE,
    subcommands: NONE,
    values: NONE,
    files: NONE,
    inline: NONE,
    directories: NONE,
    implied: NONE,
    takes: OperandKind::Script,
};

const INTERPRETERS: &[ScriptInterpreter] = &[
    ScriptInterpreter {
        names: &[
            "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh",
        ],
        values: &["-o", "-O", "+o", "+O"],
        files: &["--rcfile", "--init-file"],
        inline: &["-c"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &[".", "source"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["python", "pypy"],
        values: &["-W", "-X", "-Q", "--check-hash-based-pycs"],
        inline: &["-c"],
        takes: OperandKind::ScriptOrModule,
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["node", "nodejs", "deno", "bun", "tsx", "ts-node"],
        subcommands: &["run", "test", "exec"],
        values: &["-C", "--conditions", "--input-type"],
        files: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--preload",
        ],
        inline: &["-e", "--eval", "-p", "--print"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["perl"],
        values: &["-I"],
        inline: &["-e", "-E"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["ruby"],
        values: &["-I", "-C", "-E"],
        files: &["-r"],
        inline: &["-e"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["php"],
        values: &["-d"],
        files: &["-f", "-c"],
        inline: &["-r"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["lua", "luajit"],
        values: &["-l"],
        inline: &["-e"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["Rscript", "julia"],
        files: &["-L"],
        inline: &["-e", "-E"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["pwsh"],
        files: &["-File", "-f"],
        inline: &["-Command", "-c"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["tclsh", "wish", "guile", "groovy", "elixir", "osascript"],
        inline: &["-e"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["expect"],
        files: &["-f"],
        inline: &["-c"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["java"],
        values: &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
        files: &["-jar"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["dotnet", "go", "uv"],
        subcommands: &["run", "exec"],
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["awk", "gawk", "mawk", "nawk", "sed"],
        files: &["-f", "--file", "-i", "--include"],
        takes: OperandKind::NoScript,
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["make", "gmake"],
        files: &["-f", "--file", "--makefile"],
        directories: &["-C", "--directory"],
        implied: &["GNUmakefile", "makefile", "Makefile"],
        takes: OperandKind::NoScript,
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["just"],
        files: &["-f", "--justfile"],
        directories: &["-d", "--working-directory"],
        implied: &["justfile", "Justfile", ".justfile"],
        takes: OperandKind::NoScript,
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["npm", "pnpm", "yarn"],
        directories: &["-C", "--prefix", "--dir", "--cwd"],
        implied: &["package.json"],
        takes: OperandKind::NoScript,
        ..SCRIPTED
    },
    ScriptInterpreter {
        names: &["rake"],
        files: &["-f", "--rakefile"],
        implied: &["rakefile", "Rakefile"],
        takes: OperandKind::NoScript,
        ..SCRIPTED
    },
];

/// The interpreter of a program's name: `/usr/bin/python3.12` is `python`.
pub(super) fn of(program: &str) -> Option<&'static ScriptInterpreter> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let named = |name: &str| {
        INTERPRETERS
            .iter()
            .find(|interpreter| interpreter.names.contains(&name))
    };
    named(name).or_else(|| named(plain))
}
