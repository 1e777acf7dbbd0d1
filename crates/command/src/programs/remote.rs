//! Programs that connect to other machines, through a program of the caller's choice or to run commands there.

use super::CommandOptionMeaning::{Flag, Hides, Script, Setting, Value, Writes};
use super::OperandMeaning::{HidesIf, Script as JoinedScript};
use super::SettingMeaning::{Free, Hides as HidesValue, Script as ScriptValue};
use super::{LaunchingProgram, NO_PROGRAM, SettingTable};

pub(super) const PROGRAMS: &[LaunchingProgram] = &[
    LaunchingProgram {
        names: "ssh slogin autossh mosh dropbear dbclient",
        options: &[
            ("-o", Setting(&SSH_SETTINGS)),
            ("-F", Hides),
            (
                "-B -b -c -D -E -e -I -i -J -L -l -m -O -p -P -Q -R -S -W -w -M",
                Value,
            ),
            (
                "-4 -6 -A -a -C -f -G -g -K -k -N -n -q -s -T -t -V -v -X -x -Y -y",
                Flag,
            ),
        ],
        operands: JoinedScript(1),
        reason: "runs a command on another machine, or reaches it through one",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "sshpass",
        options: &[("-p -f -d -P", Value), ("-e -v", Flag)],
        operands: super::OperandMeaning::Command(0),
        reason: "starts a program and gives it a password",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "scp sftp",
        options: &[
            ("-S -D", Script),
            ("-o", Setting(&SSH_SETTINGS)),
            ("-F -b", Hides),
            ("-c -i -J -l -P -X -B -R -s", Value),
        ],
        reason: "reaches another machine through a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "rsync",
        options: &[
            ("-e --rsh --rsync-path", Script),
            (
                "-f -T -B -M --filter --exclude --include --exclude-from --include-from --files-from",
                Value,
            ),
        ],
        reason: "reaches another machine through a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "nc ncat netcat nc.openbsd nc.traditional",
        options: &[
            ("-e -c --exec --sh-exec", Script),
            ("--lua-exec", Hides),
            ("-i -p -w -s -x -X -o", Value),
            ("-l -k -u -v -n -z -4 -6 -N", Flag),
        ],
        reason: "gives a connection to a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "socat",
        operands: HidesIf(&["exec:", "system:", "shell:"]),
        reason: "gives a connection to a program",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "curl",
        options: &[
            (
                "-o --output --dump-header -D --trace --trace-ascii --stderr --cookie-jar",
                Writes,
            ),
            ("-K --config", Hides),
        ],
        reason: "reads options from a file",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "wget",
        options: &[
            ("--use-askpass", Script),
            ("-e --execute --config", Hides),
            (
                "-O --output-document -o --output-file -a --append-output --save-cookies",
                Writes,
            ),
        ],
        reason: "reads options from its settings",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "adb vagrant",
        subcommands: &["shell", "ssh"],
        options: &[
            ("-c --command", Script),
            ("-e -s", Value),
            ("-T -t -x -n", Flag),
        ],
        operands: JoinedScript(0),
        reason: "runs a command on another machine",
    },
    LaunchingProgram {
        names: "openssl",
        options: &[("-engine --engine -provider -provider-path", Hides)],
        reason: "loads code",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "pdsh clush pssh parallel-ssh dsh",
        options: &[
            ("-w -g -h -H -l -x -f -t -p", Value),
            ("-a -i -v -N -b", Flag),
        ],
        operands: JoinedScript(0),
        reason: "runs a command on other machines",
        ..NO_PROGRAM
    },
];

static SSH_SETTINGS: SettingTable = SettingTable {
    known: &[
        ("ProxyCommand", ScriptValue),
        ("LocalCommand", ScriptValue),
        ("RemoteCommand", ScriptValue),
        ("KnownHostsCommand", ScriptValue),
        ("Include", HidesValue),
        ("Match", HidesValue),
        ("PKCS11Provider", HidesValue),
        ("SecurityKeyProvider", HidesValue),
        ("XAuthLocation", HidesValue),
    ],
    other: Free,
};
