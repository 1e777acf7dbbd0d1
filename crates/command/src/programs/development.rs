//! Build tools, package managers, and version control beside git.

use super::CommandOptionMeaning::{
    CommaCommand, Flag, Hides, HidesAlone, HidesIf, Script, Setting, Value,
};
use super::OperandMeaning::{
    Command as Words, CommandBehindDashes, Script as JoinedScript, ScriptFile, Settings, Subcommand,
};
use super::{LaunchingProgram, NO_PROGRAM, SettingMeaning, SettingTable};

pub(super) const PROGRAMS: &[LaunchingProgram] = &[
    LaunchingProgram {
        names: "make gmake bmake",
        options: &[
            ("-f --file --makefile --eval", Hides),
            (
                "-C -I -o -W --directory --include-dir --old-file --new-file --assume-new --what-if",
                Value,
            ),
        ],
        operands: Settings(&MAKE_VARIABLES),
        reason: "runs commands of a makefile that was chosen or changed",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "ninja just task",
        options: &[
            ("-f --justfile --taskfile", Hides),
            ("--shell --shell-arg -c --command", Hides),
            ("-C -j -k -l -d -t --working-directory", Value),
        ],
        reason: "runs commands of a file that was chosen",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "cmake",
        options: &[
            ("-P", Hides),
            ("-E", HidesIf(&["env", "time", "chdir"])),
            ("-S -B -D -G -C", Value),
        ],
        reason: "runs commands of a script",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "cargo",
        options: &[("--config", Hides)],
        reason: "runs programs that cargo's settings name",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "go",
        options: &[(
            "-exec --exec -toolexec --toolexec -vettool --vettool",
            Script,
        )],
        reason: "starts a program for each tool or test",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "gcc g++ cc c++ clang clang++",
        options: &[
            ("-wrapper", CommaCommand),
            ("-fplugin", Hides),
            ("-specs --specs", Hides),
        ],
        reason: "starts a program for each step",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "npx bunx pnpx",
        options: &[
            ("-c --call", Script),
            (
                "-p --package -w --workspace --registry --userconfig --cache",
                Value,
            ),
            (
                "-y -q --yes --no --no-install --quiet --ignore-existing --bun --workspaces --silent",
                Flag,
            ),
        ],
        operands: Words(0),
        reason: "fetches a program and starts it",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "npm pnpm yarn",
        options: &[
            ("--script-shell --node-options", Hides),
            (
                "--prefix -w --workspace --registry --userconfig -C --dir -F --filter --cwd",
                Value,
            ),
            (
                "-r -s -g --recursive --silent --global --workspaces --if-present",
                Flag,
            ),
        ],
        operands: Subcommand,
        reason: "runs scripts with a shell of the caller's choice",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "npm pnpm yarn",
        subcommands: &["exec", "x", "dlx", "create", "init"],
        options: &[
            ("-c --call", Script),
            ("--shell-mode", HidesAlone),
            (
                "-p --package -w --workspace --allow-build --registry",
                Value,
            ),
            (
                "-y -q -r --yes --no --quiet --recursive --parallel --workspaces --silent",
                Flag,
            ),
        ],
        operands: Words(0),
        reason: "fetches a program and starts it",
    },
    LaunchingProgram {
        names: "bun",
        options: &[
            (
                "-e --eval -p --print -r --preload --require --import",
                Hides,
            ),
            ("-b --bun --silent", Flag),
            ("--cwd -c --config", Value),
        ],
        operands: Subcommand,
        reason: "runs code from its options",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "bun",
        subcommands: &["x"],
        options: &[("-y --yes --bun --silent", Flag), ("-p --package", Value)],
        operands: Words(0),
        reason: "fetches a program and starts it",
    },
    LaunchingProgram {
        names: "bun",
        subcommands: &["exec"],
        operands: JoinedScript(0),
        reason: "runs a script",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "uv",
        options: &[
            (
                "-q -v -n --quiet --verbose --offline --no-cache --no-config --no-progress --native-tls",
                Flag,
            ),
            (
                "--directory --project --config-file --cache-dir --color --python-preference",
                Value,
            ),
        ],
        operands: Subcommand,
        reason: "starts a program in an environment",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "uv",
        subcommands: &["run", "tool run"],
        options: UV_OPTIONS,
        operands: Words(0),
        reason: "starts a program in an environment",
    },
    LaunchingProgram {
        names: "uvx",
        options: UV_OPTIONS,
        operands: Words(0),
        reason: "fetches a program and starts it",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "poetry pipenv pdm hatch rye conda mamba micromamba pixi pipx",
        subcommands: &["run"],
        options: &[
            (
                "-n -p --name --prefix --spec --python --cwd -e --env --environment --manifest-path",
                Value,
            ),
            (
                "-v -q --no-capture-output --live-stream --verbose --quiet --no-cache",
                Flag,
            ),
        ],
        operands: Words(0),
        reason: "starts a program in an environment",
    },
    LaunchingProgram {
        names: "bundle rbenv pyenv nodenv nvm asdf volta opam rustup stack cabal composer corepack",
        subcommands: &["exec", "run"],
        options: &[
            ("--gemfile --with --node", Value),
            ("--install --keep-file-descriptors", Flag),
        ],
        operands: Words(0),
        reason: "starts a program in an environment",
    },
    LaunchingProgram {
        names: "direnv",
        subcommands: &["exec"],
        operands: Words(1),
        reason: "starts a program in the environment of a folder",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "mise op doppler aws-vault chamber sops infisical envchain",
        subcommands: &["exec", "x", "run", "exec-env"],
        options: &[("-c --command", Script)],
        operands: CommandBehindDashes,
        reason: "starts a program in an environment",
    },
    LaunchingProgram {
        names: "nix-shell nix",
        options: &[
            ("--run --command -c", Script),
            ("-p --packages", Flag),
            ("-E --expr -f --file", Hides),
        ],
        reason: "runs a command in an environment",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "pytest tox nox",
        options: &[
            ("-p", Hides),
            ("-c --rootdir -k -m -n -o -W -r -e -f", Value),
        ],
        reason: "loads a plug-in",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "apt apt-get aptitude dpkg",
        options: &[
            (
                "-o --option -c --config-file --pre-invoke --post-invoke",
                Hides,
            ),
            ("-t", Value),
        ],
        reason: "runs programs that its settings name",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "latex pdflatex xelatex lualatex tex pdftex luatex latexmk",
        options: &[
            (
                "-shell-escape --shell-escape -enable-write18 --enable-write18",
                HidesAlone,
            ),
            ("-e -r", Hides),
        ],
        reason: "runs commands of the document",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "ansible ansible-playbook",
        options: &[("-a --args", Script), ("-i -m -u -l -e -f", Value)],
        operands: ScriptFile,
        reason: "runs commands on other machines",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "hg chg",
        options: &[
            ("--config", Setting(&MERCURIAL_SETTINGS)),
            ("-e --ssh --remotecmd -t --tool", Script),
            (
                "-R -r -b -m -u -d -l --cwd --repository --rev --message --user --date",
                Value,
            ),
        ],
        reason: "runs programs that its settings name",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "svn",
        options: &[
            ("--editor-cmd --diff-cmd --diff3-cmd", Script),
            ("--config-option --config-dir", Hides),
            (
                "-m -r -c -F -x --username --password --depth --message --revision",
                Value,
            ),
        ],
        reason: "starts a program to edit or compare files",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "rpm rpmbuild rpmspec rpmdb rpmkeys",
        options: &[
            ("--pipe", Script),
            ("-E -D --eval --define --load --macros --rcfile", Hides),
            ("--root --dbpath --qf --queryformat", Value),
        ],
        reason: "expands macros that run commands",
        ..NO_PROGRAM
    },
];

static MERCURIAL_SETTINGS: SettingTable = SettingTable {
    known: &[
        ("alias.*", SettingMeaning::Script),
        ("hooks.*", SettingMeaning::Script),
        ("pager.pager", SettingMeaning::Script),
        ("ui.editor", SettingMeaning::Script),
        ("ui.merge", SettingMeaning::Script),
        ("ui.ssh", SettingMeaning::Script),
        ("ui.remotecmd", SettingMeaning::Script),
        ("ui.*", SettingMeaning::Free),
        ("color.*", SettingMeaning::Free),
        ("diff.*", SettingMeaning::Free),
    ],
    // Extensions are code, and their settings name programs.
    other: SettingMeaning::Hides,
};

const UV_OPTIONS: &[(&str, super::CommandOptionMeaning)] = &[
    (
        "-p -w --python --with --with-editable --with-requirements --from --extra --group --only-group",
        Value,
    ),
    (
        "--env-file --index --index-url --default-index --directory --project --package --no-extra",
        Value,
    ),
    ("-m --module", Value),
    (
        "-q -v -n -s -i --quiet --verbose --isolated --frozen --locked --no-sync --no-dev --dev --offline",
        Flag,
    ),
    (
        "--script --gui-script --all-extras --all-groups --active --exact --no-project --no-cache --refresh",
        Flag,
    ),
    (
        "--no-config --no-env-file --no-editable --all-packages --only-dev --upgrade -U",
        Flag,
    ),
];

static MAKE_VARIABLES: SettingTable = SettingTable {
    known: &[
        ("SHELL", SettingMeaning::Script),
        (".SHELLFLAGS", SettingMeaning::Hides),
        ("MAKEFLAGS", SettingMeaning::Hides),
        ("MAKEFILES", SettingMeaning::Hides),
        ("CC", SettingMeaning::Script),
        ("CXX", SettingMeaning::Script),
        ("LD", SettingMeaning::Script),
        ("AR", SettingMeaning::Script),
        ("RM", SettingMeaning::Script),
        ("PYTHON", SettingMeaning::Script),
    ],
    other: SettingMeaning::FreeUnlessExpanded,
};
