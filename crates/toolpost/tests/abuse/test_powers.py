"""Commands that reach for more than they have: mounts, namespaces, users, devices, the kernel's back doors."""

import os

from abuse_case import AbuseCase
from inside import program, said

# Numbers of system calls differ between machines; names of what is tried do not.
NUMBERS = {
    "x86_64": {
        "clone": 56,
        "keyctl": 250,
        "add_key": 248,
        "bpf": 321,
        "io_uring_setup": 425,
        "perf_event_open": 298,
        "userfaultfd": 323,
        "clone3": 435,
        "mount_setattr": 442,
        "open_tree": 428,
        "fsopen": 430,
        "move_mount": 429,
        "pivot_root": 155,
        "init_module": 175,
        "finit_module": 313,
        "kexec_load": 246,
        "swapon": 167,
        "reboot": 169,
        "acct": 163,
        "setns": 308,
        "quotactl": 179,
        "lookup_dcookie": 212,
        "name_to_handle_at": 303,
        "iopl": 172,
        "syslog": 103,
        "settimeofday": 164,
        "adjtimex": 159,
        "personality": 135,
        "modify_ldt": 154,
        "fanotify_init": 300,
        "memfd_secret": 447,
    },
    "aarch64": {
        "clone": 220,
        "keyctl": 219,
        "add_key": 217,
        "bpf": 280,
        "io_uring_setup": 425,
        "perf_event_open": 241,
        "userfaultfd": 282,
        "clone3": 435,
        "mount_setattr": 442,
        "open_tree": 428,
        "fsopen": 430,
        "move_mount": 429,
        "pivot_root": 41,
        "init_module": 105,
        "finit_module": 273,
        "kexec_load": 104,
        "swapon": 224,
        "reboot": 142,
        "acct": 89,
        "setns": 268,
        "quotactl": 60,
        "name_to_handle_at": 264,
        "syslog": 116,
        "settimeofday": 170,
        "fanotify_init": 262,
        "memfd_secret": 447,
    },
}

BODY = r"""
CLONE = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000}
CLONE |= {"ipc": 0x08000000, "uts": 0x04000000, "cgroup": 0x02000000}
os.makedirs("over", exist_ok=True)
over = os.path.abspath("over").encode()

for name, flag in CLONE.items():
    attempt("unshare " + name, lambda: in_child(lambda: call("unshare", flag)))
attempt("clone new user", lambda: in_child(lambda: syscall(number["clone"], CLONE["user"] | 17, 0, 0, 0, 0)))

def mount_and_back(what, kind, flags):
    call("mount", what, over, kind, flags, None)
    call("umount2", over, 2)
attempt("mount tmpfs", lambda: in_child(lambda: mount_and_back(b"none", b"tmpfs", 0)))
attempt("mount proc", lambda: in_child(lambda: mount_and_back(b"proc", b"proc", 0)))
attempt("bind", lambda: in_child(lambda: mount_and_back(b"/", None, 4096)))

# Only where mounts are its own: in those of the machine, these would do harm.
if os.readlink("/proc/self/ns/mnt") == outer:
    said["shares the mounts of the machine"] = ["worked", ""]
    print("SAID " + json.dumps(said), flush=True)
    sys.exit()
attempt("remount writable", lambda: in_child(lambda: call("mount", None, b"/", None, 32 | 4096, None)))
attempt("remount usr", lambda: in_child(lambda: call("mount", None, b"/usr", None, 32 | 4096, None)))
attempt("umount workspace", lambda: in_child(lambda: call("umount2", os.getcwd().encode(), 2)))
attempt("umount proc", lambda: in_child(lambda: call("umount2", b"/proc", 2)))
attempt("umount git", lambda: in_child(lambda: call("umount2", os.path.abspath(".git").encode(), 2)))
attempt("chroot", lambda: in_child(lambda: os.chroot("over")))
attempt("pivot_root", lambda: in_child(lambda: syscall(number["pivot_root"], over, over)))
attempt("fsopen", lambda: in_child(lambda: syscall(number["fsopen"], b"tmpfs", 0)))
attempt("open_tree clone", lambda: in_child(lambda: syscall(number["open_tree"], -100, b"/", 1)))
nothing = ctypes.create_string_buffer(32)
attempt("mount_setattr", lambda: in_child(lambda: syscall(number["mount_setattr"], -100, b"/", 0, nothing, 32)))

attempt("mknod zero", lambda: os.mknod("zero-dev", 0o020666, os.makedev(1, 5)))
attempt("mknod disk", lambda: os.mknod("disk-dev", 0o060666, os.makedev(254, 0)))
attempt("mknod in tmp", lambda: os.mknod("/tmp/disk-dev", 0o060666, os.makedev(254, 0)))

if os.getuid() != 0:
    attempt("setuid root", lambda: in_child(lambda: os.setuid(0)))
attempt("setuid other", lambda: in_child(lambda: os.setuid(12345)))
attempt("setgroups", lambda: in_child(lambda: os.setgroups([0, 1, 2])))
attempt("chown", lambda: os.chown("plain.txt", 12345, 12345))
attempt("no new privileges is off", lambda: 1 / int(call("prctl", 39, 0, 0, 0, 0) == 0))
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
    attempt("has " + name, lambda: 1 / int(status[name].strip(), 16) if int(status[name].strip(), 16) else 1 / 0)
attempt("seccomp is off", lambda: 1 / int(status["Seccomp"].strip() == "0"))
attempt("keep a capability", lambda: call("prctl", 24, 21, 0, 0, 0))

attempt("keyring", lambda: syscall(number["keyctl"], 0, -3, 0))
attempt("add_key", lambda: syscall(number["add_key"], b"user", b"abuse", b"x", 1, -2))
attempt("bpf", lambda: syscall(number["bpf"], 0, struct.pack("IIII", 2, 4, 4, 1) + b"\0" * 100, 116))
attempt("io_uring", lambda: syscall(number["io_uring_setup"], 4, ctypes.create_string_buffer(120)))
attempt("perf", lambda: syscall(number["perf_event_open"], struct.pack("II", 1, 128) + b"\0" * 120, 0, -1, -1, 0))
attempt("userfaultfd", lambda: syscall(number["userfaultfd"], 0))
attempt("userfaultfd user", lambda: syscall(number["userfaultfd"], 1))
attempt("init_module", lambda: syscall(number["init_module"], b"x", 1, b""))
attempt("fanotify", lambda: syscall(number["fanotify_init"], 0, 0))
attempt("syslog", lambda: syscall(number["syslog"], 3, ctypes.create_string_buffer(64), 64))
attempt("acct", lambda: syscall(number["acct"], b"/no/such/file"))
attempt("set the name", lambda: call("sethostname", socket.gethostname().encode(), len(socket.gethostname())))
attempt("set the time", lambda: syscall(number["settimeofday"], struct.pack("ll", 0, 10**7), None))
attempt("setns", lambda: syscall(number["setns"], os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))
attempt("raise files", lambda: __import__("resource").setrlimit(7, (1 << 20, 1 << 20)))
attempt("core files", lambda: __import__("resource").setrlimit(4, (1 << 20, 1 << 20)))
attempt("raise priority", lambda: os.nice(-5))
attempt("real time", lambda: os.sched_setscheduler(0, 1, os.sched_param(1)))
attempt("tty inject", lambda: __import__("fcntl").ioctl(0, 0x5412, b"x"))
attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
attempt("core_pattern", lambda: open("/proc/sys/kernel/core_pattern", "w"))
def leave_group():
    for top, _, files in os.walk("/sys/fs/cgroup"):
        if "cgroup.procs" in files:
            return open(os.path.join(top, "cgroup.procs"), "w").write(str(os.getpid()))
    raise PermissionError(1, "there is none")
attempt("cgroup escape", leave_group)
attempt("oom score", lambda: open("/proc/self/oom_score_adj", "w").write("-1000"))

def suid():
    import shutil
    shutil.copy("/bin/sh", "sh")
    os.chmod("sh", 0o6755)
    if os.stat("sh").st_mode & 0o6000 == 0:
        raise PermissionError(1, "no")
    return "set"
attempt("suid file", suid)
"""
# A file with such a bit in a folder that is not believed for it does no harm: the host's own user could make it anyway.
HARMLESS = {"suid file", "chown"}


class Powers(AbuseCase):
    @classmethod
    def prepare(cls):
        (cls.workspace / ".git").mkdir()

    def test_none_is_given(self):
        self.write("plain.txt", "x")
        number = NUMBERS[os.uname().machine]
        path = self.write("reach.py", program(BODY, number=number, outer=os.readlink("/proc/self/ns/mnt")))
        for caller in (self.http, self.a2e):
            told = said(self.succeed("shell", {"command": f"python3 -I {path.name}"}, caller=caller, timeout=40))
            self.assertGreater(len(told), 50)
            self.assertEqual(
                {name: what[1] for name, what in told.items() if what[0] == "worked" and name not in HARMLESS}, {}
            )
            # Refused for lack of a right, and not because what was asked for made no sense.
            for name in (
                "bpf",
                "io_uring",
                "keyring",
                "userfaultfd user",
                "mount tmpfs",
                "unshare user",
                "set the time",
                "acct",
            ):
                self.assertIn(told[name][1], ("EPERM", "ENOSYS", "EACCES"), name)
        self.assertFalse((self.workspace / "zero-dev").exists())

    def test_by_the_usual_programs(self):
        # Not in the mounts of the machine itself, where the attempts would do harm.
        outer = os.readlink("/proc/self/ns/mnt")
        script = f"""
            [ "$(readlink /proc/self/ns/mnt)" != "{outer}" ] || {{ echo GOT the mounts of the machine; exit; }}
            unshare -r id; unshare -Urm true && echo GOT unshare
            sudo -n id && echo GOT sudo; su -c id root < /dev/null && echo GOT su
            mount -t tmpfs none /tmp && echo GOT mount; umount /proc && echo GOT umount
            chroot / true && echo GOT chroot; nsenter -t 1 -m true && echo GOT nsenter
            mknod x c 1 5 && echo GOT mknod; dmesg | head -1 | grep . && echo GOT dmesg
            cat /proc/sys/kernel/sysrq > /proc/sys/kernel/sysrq && echo GOT sysrq
            ip link add x type dummy && echo GOT ip
            true
        """
        answer = self.succeed("shell", {"command": script})
        self.assertNotIn("GOT ", answer.text)

    def test_killing_everything_in_sight_kills_only_itself(self):
        # Only where the command sees few processes, which are its own: otherwise it would end the whole machine's.
        script = (
            'if [ "$(ls -d /proc/[0-9]* | wc -l)" -lt 20 ]; then echo going; sleep 100 & kill -9 -1; fi; echo survived'
        )
        answer = self.call("shell", {"command": script})
        self.assertIn("going", answer.text)
        self.assertTrue(self.host.is_alive)

    def test_twin_ordinary_rights(self):
        answer = self.succeed(
            "shell",
            {
                "command": (
                    "touch a && chmod 755 a && mv a b && ln -s b c && cp c d && mkfifo e && rm a b c d e -f && nice -n"
                    " 5 true"
                )
            },
        )
        self.assertEqual(answer.exit_code, 0, answer)
