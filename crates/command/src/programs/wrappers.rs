//! Programs whose only purpose is to start another one. Wrappers that rules look through, such as `timeout` and `sudo`,
//! are in `wrapper::options`.

use super::CommandOptionMeaning::{Command, Ends, Flag, Hides, HidesIf, Script, Value, Writes};
use super::OperandMeaning::{
    CodeFromInput, Command as Words, CommandBehindDashes, Hides as AlwaysHides,
    Script as JoinedScript, Scripts, Subcommand,
};
use super::{LaunchingProgram, NO_PROGRAM};

pub(super) const PROGRAMS: &[LaunchingProgram] = &[
    LaunchingProgram {
        names: "setpriv",
        options: &[
            ("-d --dump", Ends),
            (
                "--clear-groups --keep-groups --init-groups --nnp --no-new-privs --reset-env",
                Flag,
            ),
            (
                "--ambient-caps --bounding-set --inh-caps --groups --rgid --egid --regid --ruid --euid",
                Value,
            ),
            (
                "--reuid --securebits --pdeathsig --ptracer --selinux-label --apparmor-profile",
                Value,
            ),
            ("--landlock-access --landlock-rule --seccomp-filter", Value),
        ],
        operands: Words(0),
        reason: "starts a program with other privileges",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "setarch i386 i486 i586 i686 x86_64 aarch64 arm armv7l ppc ppc32 ppc64 ppc64le s390 s390x \
                sparc sparc32 sparc64 mips mips64 riscv64 uname26",
        options: &[
            (
                "-B -F -I -L -R -S -T -X -Z -3 -v --32bit --fdpic-funcptrs --short-inode",
                Flag,
            ),
            (
                "--addr-compat-layout --addr-no-randomize --whole-seconds --sticky-timeouts",
                Flag,
            ),
            (
                "--read-implies-exec --mmap-page-zero --3gb --4gb --uname-2.6 --verbose --list --show",
                Flag,
            ),
        ],
        operands: Words(0),
        reason: "starts a program under another architecture",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "ld.so",
        options: &[
            (
                "--library-path --inhibit-rpath --audit --argv0 --preload --glibc-hwcaps-prepend",
                Value,
            ),
            ("--glibc-hwcaps-mask", Value),
            ("--inhibit-cache --verify", Flag),
            (
                "--list --list-tunables --list-diagnostics --help --version",
                Ends,
            ),
        ],
        operands: Words(0),
        reason: "loads a program and starts it",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "perf",
        subcommands: &[
            "stat",
            "record",
            "trace",
            "mem record",
            "lock record",
            "kmem record",
            "c2c record",
            "sched record",
            "ftrace",
        ],
        options: &[
            (
                "-e --event -o --output -F --freq -c --count -r --repeat -p --pid -t --tid -C --cpu",
                Value,
            ),
            (
                "-I --interval-print -m --mmap-pages -D --delay --call-graph -G --cgroup -x",
                Value,
            ),
            (
                "-a -g -d -v -q -B -A -i -s -S -z --all-cpus --detailed --verbose --quiet",
                Flag,
            ),
        ],
        operands: Words(0),
        reason: "starts a program and measures it",
    },
    LaunchingProgram {
        names: "rr",
        subcommands: &["record"],
        operands: Words(0),
        reason: "starts a program and records it",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "proxychains proxychains4 torsocks tsocks eatmydata heaptrack ccache sccache distcc icecc \
                scan-build tini dumb-init catatonit cgexec numactl ssh-agent systemd-inhibit dotenv choom cpulimit bear proot \
                bwrap memusage intercept-build chpst softlimit runcon daemonize",
        options: &[
            (
                "-q -s -g -v -c -l -a --quiet --verbose --version --help",
                Flag,
            ),
            (
                "-f -N -C -m -i -n -p -u --who --what --why --mode --cpunodebind --membind --interleave",
                Value,
            ),
            (
                "--dev --proc --tmpfs --mqueue --dir --chdir --unsetenv --hostname --uid --gid --seccomp",
                Value,
            ),
        ],
        operands: Words(0),
        reason: "starts the program after it",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "gosu su-exec setuidgid s6-setuidgid envdir faketime",
        options: &[("-f -v", Flag)],
        operands: Words(1),
        reason: "starts the program after its first operand",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "ip",
        subcommands: &["netns exec", "vrf exec"],
        operands: Words(1),
        reason: "starts a program in another network",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "docker podman nerdctl",
        options: &[
            ("-H --host -c --context --config -l --log-level", Value),
            ("-D --debug --tls", Flag),
        ],
        operands: Subcommand,
        reason: "starts a program in a container",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "docker podman nerdctl",
        subcommands: &[
            "run",
            "exec",
            "create",
            "container run",
            "container exec",
            "compose run",
            "compose exec",
        ],
        options: &[
            (
                "-d -i -t -T -P --detach --interactive --tty --rm --init --privileged --read-only",
                Flag,
            ),
            (
                "--no-deps --build --quiet -q --no-TTY --publish-all --service-ports",
                Flag,
            ),
            (
                "-a -c -e -h -l -m -p -u -v -w --attach --env --env-file --hostname --label --memory --name",
                Value,
            ),
            (
                "--network --net --publish --user --volume --workdir --mount --cpus --gpus --platform",
                Value,
            ),
            (
                "--entrypoint --pull --restart --add-host --cap-add --cap-drop --device --dns --ulimit",
                Value,
            ),
            (
                "--security-opt --shm-size --tmpfs --pid --ipc --uts --cgroupns --runtime --userns --index",
                Value,
            ),
        ],
        operands: Words(1),
        reason: "starts a program in a container",
    },
    LaunchingProgram {
        names: "docker-compose podman-compose",
        subcommands: &["run", "exec"],
        options: &[
            (
                "-d -T -t -i --rm --no-deps --build --service-ports --privileged",
                Flag,
            ),
            (
                "-e -u -w -v -p -l --env --user --workdir --volume --publish --name --entrypoint --index",
                Value,
            ),
        ],
        operands: Words(1),
        reason: "starts a program in a container",
    },
    LaunchingProgram {
        names: "kubectl oc",
        subcommands: &["exec", "run", "debug"],
        operands: CommandBehindDashes,
        reason: "starts a program in a container",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "lxc incus multipass distrobox",
        subcommands: &["exec", "enter"],
        operands: CommandBehindDashes,
        reason: "starts a program in a container",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "watchexec cargo-watch nodemon reflex",
        options: &[
            ("-x --exec -s --shell", Script),
            (
                "-w --watch -e --exts -i --ignore -f --filter -d --debounce --delay -r -g",
                Value,
            ),
            (
                "-c -n -v -q --clear --restart --quiet --verbose --no-vcs-ignore",
                Flag,
            ),
        ],
        operands: Words(0),
        reason: "starts a program when files change",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "hyperfine concurrently",
        options: &[
            ("-p --prepare -c --cleanup -s --setup --conclude", Script),
            ("-S --shell", Hides),
            (
                "-w -r -m -M -n -N --warmup --runs --min-runs --max-runs --export-json --names",
                Value,
            ),
            ("-k --kill-others --raw -g --group", Flag),
        ],
        operands: Scripts,
        reason: "runs each operand as a command",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "xterm uxterm rxvt urxvt konsole alacritty kitty gnome-terminal xfce4-terminal",
        options: &[("-e -x", Command)],
        operands: CommandBehindDashes,
        reason: "starts a program in a terminal",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "sg",
        options: &[("-c", Script)],
        operands: JoinedScript(1),
        reason: "runs a command as another group",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "capsh",
        options: &[("-c", Script)],
        operands: AlwaysHides,
        reason: "starts a shell with other capabilities",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "run-parts crontab ed red m4",
        operands: AlwaysHides,
        reason: "runs commands from its files or its input",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "lldb",
        options: &[("-o -O -s -S -k -K --one-line --source --batch", Hides)],
        reason: "runs commands of the debugger",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "expect",
        options: &[("-c", Hides), ("-f", Value)],
        operands: CodeFromInput,
        reason: "starts programs and talks to them",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "tcpdump",
        options: &[("-z", Script), ("-w", Writes)],
        reason: "starts a program for each file that it has written",
        ..NO_PROGRAM
    },
    LaunchingProgram {
        names: "dc",
        options: &[("-e --expression", HidesIf(&["!"])), ("-f --file", Hides)],
        operands: AlwaysHides,
        reason: "runs commands after a `!`",
        ..NO_PROGRAM
    },
];
