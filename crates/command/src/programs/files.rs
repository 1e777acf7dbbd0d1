//! Programs for files and texts that have options to start programs or write files.

use super::CommandOptionMeaning::{
    Attached, AttachedScript, Code, Command, Flag, Hides, HidesIf, Script, Setting, Value, Writes,
};
use super::EmbeddedLanguage::{Awk, Sed};
use super::OperandMeaning::{Code as CodeOperand, HidesIf as HidesIfOperand, OldOptions};
use super::{LaunchingProgram, NO_PROGRAM, SettingMeaning, SettingTable};

pub(super) const PROGRAMS: &[LaunchingProgram] = &[
    LaunchingProgram {
        names: "tar gtar bsdtar star",
        options: &[
            ("--to-command -I --use-compress-program", Script),
            (
                "-F --info-script --new-volume-script --rsh-command --rmt-command",
                Script,
            ),
            ("--checkpoint-action", Setting(&CHECKPOINT_ACTIONS)),
            ("-C -f -T -X -b -g -K -L -N -V -H", Value),
            (
                "--directory --file --files-from --exclude-from --blocking-factor --transform --exclude",
                Value,
            ),
            (
                "-x -c -t -v -z -j -J -r -u -A -d -p -m -k -h -l -P -S -O -w -W -a -n -o -s -G -B -i -M -R",
                Flag,
            ),
        ],
        operands: OldOptions("IF"),
        reason: "starts a program to pack or unpack",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "sort gsort",
        options: &[
            ("--compress-program", Script),
            ("-o --output", Writes),
            (
                "-k -t -T -S --key --field-separator --temporary-directory --buffer-size --parallel",
                Value,
            ),
        ],
        reason: "starts a program for its temporary files",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "split gsplit",
        options: &[("--filter", Script), ("-a -b -C -l -n -t", Value)],
        reason: "gives each piece to a command",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "rg",
        options: &[("--pre --hostname-bin", Script)],
        reason: "starts a program for each file that it searches",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "fd fdfind",
        options: &[
            ("-x --exec -X --exec-batch", Command),
            (
                "-e -E -t -d -j -S -c -o --extension --exclude --type --max-depth --min-depth --threads",
                Value,
            ),
            (
                "--size --color --owner --changed-within --changed-before --base-directory --search-path",
                Value,
            ),
            (
                "-H -I -u -s -i -g -F -a -l -L -p -0 -1 -q --hidden --no-ignore --glob",
                Flag,
            ),
        ],
        reason: "starts a program for each match",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "awk gawk mawk nawk original-awk",
        options: &[
            (
                "-f --file -i --include -l --load -E --exec -D --debug",
                Hides,
            ),
            ("-e --source", Code(Awk)),
            ("-F -v -W --field-separator --assign", Value),
        ],
        operands: CodeOperand(Awk),
        reason: "runs commands from its program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "sed gsed",
        options: &[
            ("-f --file", Hides),
            ("-e --expression", Code(Sed)),
            ("-i --in-place", Attached),
            ("-l --line-length", Value),
            (
                "-n -E -r -s -u -z --quiet --silent --regexp-extended --separate --unbuffered",
                Flag,
            ),
            (
                "--null-data --posix --debug --sandbox --follow-symlinks",
                Flag,
            ),
        ],
        operands: CodeOperand(Sed),
        reason: "runs commands from its script",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "tree",
        options: &[("-o", Writes), ("-L -P -I -H -T", Value)],
        reason: "writes its output to a file",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "man",
        options: &[
            ("-P --pager", Script),
            ("-H --html", AttachedScript),
            ("-C --config-file", Hides),
            ("-L -m -M -S -s -e -E -p -r -R -T -X -Z", Value),
        ],
        reason: "shows pages with a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "less more most pg lv",
        options: &[
            ("+", HidesIf(&["!", "|", "v"])),
            ("-k --lesskey-file --lesskey-src --lesskey-content", Hides),
            ("-o -O --log-file --LOG-FILE", Writes),
        ],
        reason: "runs commands from its options",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "zip",
        options: &[("-TT --unzip-command", Script)],
        reason: "starts a program to test the archive",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "cpio gcpio mt",
        options: &[
            ("--rsh-command --rmt-command", Script),
            ("-O -F -I -H -C -E -R", Value),
        ],
        reason: "reaches an archive through a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "nano pico rnano",
        options: &[("-s --speller", Script), ("-C -T -r -Q -o -Y -X -J", Value)],
        reason: "starts a program that checks the spelling",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "sqlite3",
        options: &[("-cmd", HidesIf(SQLITE_COMMANDS)), ("-init", Hides)],
        operands: HidesIfOperand(SQLITE_COMMANDS),
        reason: "runs commands of its shell",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "psql",
        options: &[
            ("-c --command", HidesIf(&["\\"])),
            ("-f --file", Hides),
            ("-o --output -L --log-file", Writes),
        ],
        reason: "runs commands of its shell",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "mysql mariadb",
        options: &[
            ("-e --execute", HidesIf(&["\\", "system", "source"])),
            ("--pager", AttachedScript),
            ("--tee", Writes),
        ],
        reason: "runs commands of its shell",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "pandoc",
        options: &[
            ("-F --filter --pdf-engine", Script),
            ("-L --lua-filter -d --defaults --data-dir", Hides),
            ("-o --output --log --extract-media", Writes),
            (
                "-f -r -t -w -V -M -H -B -A -c -T --from --to --template --metadata --variable",
                Value,
            ),
        ],
        reason: "gives the document to a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "gs",
        options: &[("-c", Hides)],
        reason: "runs code from its options",
        ..NO_PROGRAM
    },
];

const SQLITE_COMMANDS: &[&str] = &[".sh", ".sy", ".load", ".read", ".import", "edit("];

static CHECKPOINT_ACTIONS: SettingTable = SettingTable {
    known: &[("exec", SettingMeaning::Script)],
    other: SettingMeaning::Free,
};
