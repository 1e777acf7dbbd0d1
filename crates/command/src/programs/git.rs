//! Git, which runs commands from its settings and from many of its options.

use super::CommandOptionMeaning::{
    AttachedScript, Flag, Hides, HidesAttached, Script, Setting, Value, Writes,
};
use super::OperandMeaning::{
    Command, Hides as AlwaysHides, HidesIf, Script as JoinedScript, SettingPair, Subcommand,
};
use super::SettingMeaning::{Free, GitAlias, Script as ScriptValue};
use super::{LaunchingProgram, NO_PROGRAM, SettingMeaning, SettingTable};

pub(super) const PROGRAMS: &[LaunchingProgram] = &[
    LaunchingProgram {
        names: "git",
        options: &[
            ("-c", Setting(&SETTINGS)),
            ("--config-env", Hides),
            ("--exec-path", HidesAttached),
            (
                "-C --git-dir --work-tree --namespace --attr-source --super-prefix --list-cmds",
                Value,
            ),
            (
                "-p -P --paginate --no-pager --no-replace-objects --no-lazy-fetch --bare",
                Flag,
            ),
            (
                "--literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs",
                Flag,
            ),
            (
                "--no-optional-locks --no-advice --version -v --help -h --html-path --man-path",
                Flag,
            ),
        ],
        operands: Subcommand,
        reason: "runs programs that git's settings name",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["rebase"],
        options: &[
            ("-x --exec", Script),
            ("-s -X -C --onto --strategy --strategy-option", Value),
        ],
        reason: "runs a command after each commit",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["bisect run"],
        operands: Command(0),
        reason: "runs a command on each commit that it tries",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["submodule foreach"],
        options: &[("--recursive --quiet -q", Flag)],
        operands: JoinedScript(0),
        reason: "runs a command in each submodule",
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["filter-branch"],
        options: &[
            (
                "--setup --env-filter --tree-filter --index-filter --parent-filter",
                Script,
            ),
            (
                "--msg-filter --commit-filter --tag-name-filter --subdirectory-filter",
                Script,
            ),
            ("-d", Value),
        ],
        reason: "runs a command on each commit",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["difftool"],
        options: &[("-x --extcmd", Script), ("-t --tool", Value)],
        reason: "runs a command on each file that differs",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["grep"],
        options: &[
            ("-O --open-files-in-pager", AttachedScript),
            ("-e -f -A -B -C -m", Value),
        ],
        reason: "opens files in a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &[
            "clone",
            "fetch",
            "pull",
            "push",
            "ls-remote",
            "fetch-pack",
            "send-pack",
            "remote add",
        ],
        options: &[
            ("-u --upload-pack --receive-pack --exec", Script),
            ("-c --config", Setting(&SETTINGS)),
            ("--template", Hides),
            (
                "-o -b -j --origin --branch --depth --reference --filter",
                Value,
            ),
        ],
        operands: HidesIf(&["ext::"]),
        reason: "talks to another repository through a program",
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["archive"],
        options: &[
            ("--exec", Script),
            ("-o --output", Writes),
            ("--format --prefix --remote", Value),
        ],
        reason: "starts a program for the archive",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &[
            "log",
            "diff",
            "show",
            "whatchanged",
            "reflog",
            "diff-tree",
            "diff-index",
            "diff-files",
            "stash show",
            "range-diff",
        ],
        options: &[("--output", Writes)],
        reason: "writes its output to a file",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["send-email"],
        options: &[
            (
                "--to-cmd --cc-cmd --header-cmd --sendmail-cmd --smtp-server",
                Script,
            ),
            ("--from --to --cc --subject", Value),
        ],
        reason: "runs commands to send mail",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["config set", "config"],
        options: &[("-f --file --blob --type -t --default --comment", Value)],
        operands: SettingPair(&SETTINGS),
        reason: "sets commands that git runs later",
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["hook run", "instaweb"],
        operands: AlwaysHides,
        reason: "runs programs of the repository",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "git",
        subcommands: &["init"],
        options: &[
            ("--template", Hides),
            ("-b --initial-branch --separate-git-dir", Value),
        ],
        reason: "installs the hooks of a template",
        ..NO_PROGRAM
    },
];

/// A setting that is not listed counts as one that starts programs: git has hundreds, and every version adds some.
static SETTINGS: SettingTable = SettingTable {
    known: &[
        ("alias.*", GitAlias),
        ("core.pager", ScriptValue),
        ("core.editor", ScriptValue),
        ("core.sshcommand", ScriptValue),
        ("core.askpass", ScriptValue),
        ("core.gitproxy", ScriptValue),
        ("core.fsmonitor", ScriptValue),
        ("pager.*", ScriptValue),
        ("sequence.editor", ScriptValue),
        ("diff.external", ScriptValue),
        ("diff.*.command", ScriptValue),
        ("diff.*.textconv", ScriptValue),
        ("difftool.*.cmd", ScriptValue),
        ("mergetool.*.cmd", ScriptValue),
        ("merge.*.driver", ScriptValue),
        ("filter.*.clean", ScriptValue),
        ("filter.*.smudge", ScriptValue),
        ("filter.*.process", ScriptValue),
        ("gpg.program", ScriptValue),
        ("gpg.*.program", ScriptValue),
        ("interactive.difffilter", ScriptValue),
        ("trailer.*.command", ScriptValue),
        ("trailer.*.cmd", ScriptValue),
        ("uploadpack.packobjectshook", ScriptValue),
        ("remote.*.uploadpack", ScriptValue),
        ("remote.*.receivepack", ScriptValue),
        ("browser.*.cmd", ScriptValue),
        ("man.*.cmd", ScriptValue),
        ("tar.*.command", ScriptValue),
        ("imap.tunnel", ScriptValue),
        ("user.*", Free),
        ("author.*", Free),
        ("committer.*", Free),
        ("color.*", Free),
        ("advice.*", Free),
        ("column.*", Free),
        ("status.*", Free),
        ("log.*", Free),
        ("blame.*", Free),
        ("grep.*", Free),
        ("i18n.*", Free),
        ("gc.*", Free),
        ("pack.*", Free),
        ("index.*", Free),
        ("feature.*", Free),
        ("transfer.*", Free),
        ("http.*", Free),
        ("fetch.*", Free),
        ("push.*", Free),
        ("pull.*", Free),
        ("rerere.*", Free),
        ("stash.*", Free),
        ("safe.directory", Free),
        ("protocol.version", Free),
        ("core.quotepath", Free),
        ("core.autocrlf", Free),
        ("core.eol", Free),
        ("core.safecrlf", Free),
        ("core.filemode", Free),
        ("core.ignorecase", Free),
        ("core.abbrev", Free),
        ("core.symlinks", Free),
        ("core.longpaths", Free),
        ("core.compression", Free),
        ("core.whitespace", Free),
        ("core.commentchar", Free),
        ("commit.gpgsign", Free),
        ("commit.verbose", Free),
        ("tag.gpgsign", Free),
        ("tag.sort", Free),
        ("branch.sort", Free),
        ("branch.autosetup*", Free),
        ("merge.ff", Free),
        ("merge.conflictstyle", Free),
        ("merge.renames", Free),
        ("merge.renamelimit", Free),
        ("rebase.auto*", Free),
        ("rebase.updaterefs", Free),
        ("init.defaultbranch", Free),
        ("diff.algorithm", Free),
        ("diff.renames", Free),
        ("diff.renamelimit", Free),
        ("diff.noprefix", Free),
        ("diff.mnemonicprefix", Free),
        ("diff.context", Free),
        ("diff.colormoved", Free),
        ("diff.submodule", Free),
        ("diff.ignoresubmodules", Free),
        ("submodule.recurse", Free),
        ("submodule.fetchjobs", Free),
        ("format.pretty", Free),
        ("format.signoff", Free),
        ("maintenance.auto", Free),
    ],
    other: SettingMeaning::Hides,
};
