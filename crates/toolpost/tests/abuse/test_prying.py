"""Commands that pry: into the host's environment, memory, sockets and record, and into what lies around."""

import socket
import threading
from pathlib import Path

from abuse_case import AbuseCase
from inside import program, said

EVERYWHERE = r"""
def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 16)

found = []
for folder, _, _ in os.walk("/proc"):
    if folder.count("/") > 3:
        continue
    for name in ("environ", "cmdline", "maps", "mem", "stack", "auxv", "mountinfo"):
        path = folder + "/" + name
        try:
            if word.encode() in read(path):
                found.append(path)
        except (OSError, ValueError):
            pass
said["secret in"] = found
said["variables with it"] = [name for name, value in os.environ.items() if word in value]
said["pids"] = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
mine = "/proc/self/fd/"
said["descriptors"] = {name: os.readlink(mine + name) for name in os.listdir(mine) if os.path.lexists(mine + name)}
"""

MEMORY = r"""
PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_TRACEME = 16, 0x4206, 0
attempt("environ", lambda: open(f"/proc/{host}/environ", "rb").read())
attempt("mem", lambda: open(f"/proc/{host}/mem", "rb").read(1))
attempt("maps", lambda: open(f"/proc/{host}/maps").read())
attempt("root", lambda: os.listdir(f"/proc/{host}/root"))
attempt("cwd", lambda: os.listdir(f"/proc/{host}/cwd"))
attempt("fd", lambda: os.listdir(f"/proc/{host}/fd"))
attempt("parent mem", lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1))
attempt("init mem", lambda: open("/proc/1/mem", "rb").read(1))
attempt("init fd", lambda: [os.readlink("/proc/1/fd/" + name) for name in os.listdir("/proc/1/fd")])
attempt("init root", lambda: os.listdir("/proc/1/root/" + outside))
attempt("ptrace attach", lambda: call("ptrace", ctypes.c_long(PTRACE_ATTACH), ctypes.c_long(host), None, None))
attempt("ptrace seize", lambda: call("ptrace", ctypes.c_long(PTRACE_SEIZE), ctypes.c_long(1), None, None))
attempt("ptrace parent", lambda: call("ptrace", ctypes.c_long(PTRACE_SEIZE), ctypes.c_long(os.getppid()), None, None))
buffer = ctypes.create_string_buffer(16)
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
here = Iovec(ctypes.addressof(buffer), 16)
for name, pid in (("host", host), ("init", 1), ("parent", os.getppid())):
    both = (ctypes.byref(here), 1, ctypes.byref(here), 1, 0)
    attempt("process_vm_readv " + name, lambda: call("process_vm_readv", pid, *both))
    attempt("process_vm_writev " + name, lambda: call("process_vm_writev", pid, *both))
def steal():
    pidfd = syscall(434, host, 0)
    return syscall(438, pidfd, 0, 0)
attempt("pidfd_getfd", steal)
attempt("pidfd_getfd init", lambda: syscall(438, syscall(434, 1, 0), 0, 0))
attempt("kcmp", lambda: syscall(312, 1, host, 0, 0, 0))
attempt("signal the host", lambda: os.kill(host, 0))
attempt("kill the host", lambda: os.kill(host, 9))
attempt("kmsg", lambda: open("/dev/kmsg", "rb").read(1))
attempt("physical memory", lambda: open("/dev/mem", "rb").read(1))
attempt("kcore", lambda: open("/proc/kcore", "rb").read(64))
attempt("open_by_handle_at", lambda: syscall(304, os.open("/", os.O_RDONLY), ctypes.create_string_buffer(64), 0))
"""

FILES = r"""
for path in paths:
    attempt("read " + path, lambda: open(path, "rb").read(64))
    attempt("list " + path, lambda: os.listdir(path))
for folder in folders:
    attempt("write " + folder, lambda: open(folder + "/abuse-was-here", "x").close())
attempt("truncate", lambda: os.truncate(paths[0], 0))
attempt("chmod", lambda: os.chmod(paths[0], 0o777))
attempt("utime", lambda: os.utime(paths[0]))
attempt("rename workspace", lambda: os.rename(workspace, workspace + "-away"))
attempt("rename to the side", lambda: os.rename("plain.txt", workspace + "-neighbour/stolen"))
attempt("link", lambda: os.link(paths[0], "stolen"))
attempt("set xattr", lambda: os.setxattr("plain.txt", "security.capability", b"\x01\0\0\2" + b"\xff" * 16))
"""

SOCKETS = r"""
def connect(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        if kind == socket.SOCK_DGRAM:
            one.send(b"x")
        return "connected"
attempt("tcp host", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)))
attempt("tcp host by name", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("localhost", port)))
attempt("tcp zero", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", port)))
attempt("tcp6", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port)))
attempt("tcp6 mapped", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", port)))
attempt("tcp lan", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, (lan, port)))
attempt("udp", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp_port)))
attempt("udp out", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)))
attempt("udp6 out", lambda: connect(socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 53)))
def ping():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as one:
        return one.sendto(b"\x08\0\0\0\0\0\0\0", ("127.0.0.1", 0))
attempt("icmp", ping)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt("netlink audit", lambda: socket.socket(16, socket.SOCK_RAW, 9))
attempt("netlink devices", lambda: socket.socket(16, socket.SOCK_RAW, 15))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1234)))
attempt("alg", lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0))
attempt("unix outside", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, unix_path))
attempt("unix host", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, host_socket))
attempt("unix abstract", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract))
attempt("io_uring", lambda: syscall(425, 4, ctypes.create_string_buffer(120)))
"""


class Prying(AbuseCase):
    def setUp(self):
        super().setUp()
        self.write("plain.txt", "plain\n")

    def try_inside(self, body, caller=None, **values):
        path = self.write("pry.py", program(body, **values))
        answer = self.succeed("shell", {"command": f"python3 -I {path.name}"}, caller=caller, timeout=40)
        return said(answer)

    def assert_refused(self, told, but=()):
        worked = {
            name: what
            for name, what in told.items()
            if isinstance(what, list) and what[:1] == ["worked"] and name not in but
        }
        self.assertEqual(worked, {})

    def test_the_environment_and_who_is_there(self):
        for caller in (self.http, self.a2e):
            # Over two strings, so that the program's own command line and text are not what is found.
            half = len(self.loot.word) // 2
            told = self.try_inside(
                "word = one + other\n" + EVERYWHERE, caller, one=self.loot.word[:half], other=self.loot.word[half:]
            )
            self.assertEqual(told["secret in"], [])
            self.assertEqual(told["variables with it"], [])
            self.assertLess(len(told["pids"]), 12, "it sees processes of others")
            self.assertNotIn(self.host.pid, told["pids"])
            others = {
                name: to for name, to in told["descriptors"].items() if int(name) > 2 and not to.startswith("/proc/")
            }
            self.assertEqual(others, {}, "descriptors leaked into the command")
            self.assertEqual([to for name, to in told["descriptors"].items() if "socket:" in to and int(name) > 2], [])

    def test_the_environment_as_the_shell_sees_it(self):
        answer = self.succeed("shell", {"command": "env; set; cat /proc/*/environ | tr '\\0' '\\n'"})
        for name in ("HOST_PASSWORD", "PLAIN_NAME", "LD_PRELOAD", "PYTHONPATH"):
            self.assertNotIn(name + "=", answer.text)

    def test_memory_and_descriptors(self):
        self.assert_refused(
            self.try_inside(MEMORY, host=self.host.pid, outside=str(self.loot.folder)), but={"init fd", "init root"}
        )

    def test_files_around(self):
        place = self.place
        paths = [
            str(self.loot.file),
            str(place.folder / ".ssh/id_rsa"),
            str(place.data_dir / "token"),
            str(place.data_dir / "journal.db"),
            str(place.data_dir),
            str(place.folder / "trusted.yaml"),
            "/etc/shadow",
            "/etc/gshadow",
            "/root/.ssh",
            "/root/.bash_history",
            "/var/lib",
            "/sys/kernel/debug",
            f"{place.workspace}-neighbour/secret.txt",
            f"/proc/1/root{self.loot.file}",
            f"/proc/1/cwd/../outside/secret.txt",
            "/dev/vda",
            "/dev/sda",
            "/dev/nvme0n1",
            "/boot",
        ]
        folders = [
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/var",
            "/root",
            "/opt",
            "/home",
            "/sys",
            "/proc",
            "/proc/sys/kernel",
            "/sys/fs/cgroup",
            "/lib",
            "/boot",
            str(place.folder),
            str(self.loot.folder),
            str(place.data_dir),
        ]
        traces = [Path(folder) / "abuse-was-here" for folder in folders]
        self.addCleanup(lambda: [path.unlink(missing_ok=True) for path in traces])
        told = self.try_inside(FILES, paths=paths, folders=folders, workspace=str(place.workspace))
        # A curated root may have empty folders to look at, and folders of its own above the workspace: what was
        # written there must not be in the real ones, which is looked at below.
        worked = {name: what[1] for name, what in told.items() if what[0] == "worked"}
        leaks = {
            name: what
            for name, what in worked.items()
            if not (name.startswith("list ") and what == "[]" or name.startswith("write "))
        }
        self.assertEqual([path for path in traces if path.exists()], [])
        self.assertEqual(leaks, {})

    def test_sockets(self):
        self.accepted = []
        tcp = self.listen(socket.AF_INET, ("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.2)
        self.addCleanup(udp.close)
        unix_path = str(self.place.folder / "service.sock")
        self.listen(socket.AF_UNIX, unix_path)
        abstract = "abuse-" + self.loot.word[-8:]
        self.listen(socket.AF_UNIX, "\0" + abstract)
        values = {
            "port": tcp.getsockname()[1],
            "udp_port": udp.getsockname()[1],
            "unix_path": unix_path,
            "abstract": abstract,
            "lan": self.lan_address(),
            "host_socket": str(self.place.data_dir / "socket"),
        }
        # A datagram to a loopback of its own goes nowhere; that none came is looked at below.
        self.assert_refused(self.try_inside(SOCKETS, **values), but={"udp"})
        values["port"] = self.host.port
        self.assert_refused(self.try_inside(SOCKETS, self.a2e, **values), but={"udp"})
        script = f"""
            (exec 3<>/dev/tcp/127.0.0.1/{self.host.port}) && echo tcp-opened
            (exec 3<>/dev/udp/127.0.0.1/{values['udp_port']} && echo x >&3)
            (echo > /dev/tcp/localhost/{values['port']}) && echo tcp-opened
            true
        """
        self.assertNotIn("opened", self.succeed("shell", {"command": script}).text)
        self.assertEqual(self.accepted, [], "somebody came in")
        with self.assertRaises(TimeoutError):
            udp.recvfrom(10)

    def listen(self, family, address):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()
        self.addCleanup(listener.close)

        def take():
            try:
                while True:
                    one, peer = listener.accept()
                    self.accepted.append((address, peer))
                    one.close()
            except OSError:
                pass  # It was closed.

        threading.Thread(target=take, daemon=True).start()
        return listener

    @staticmethod
    def lan_address():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            try:
                one.connect(("192.0.2.1", 9))
                return one.getsockname()[0]
            except OSError:
                return "127.0.0.2"

    def test_nothing_is_left_for_the_next_command(self):
        secret = "left-" + self.loot.word[-10:]
        places = "/tmp /dev/shm $HOME $TMPDIR /run /var/tmp /"
        first, other = self.new_caller(), self.new_caller("a2e")
        self.call(
            "shell", {"command": f"for d in {places}; do echo x > $d/{secret}; done 2> /dev/null; true"}, caller=first
        )
        for caller in (first, other):
            answer = self.succeed("shell", {"command": f"for d in {places}; do ls -a $d; done"}, caller=caller)
            self.assertNotIn(secret, answer.text)

    def test_what_was_in_force_is_told(self):
        for tool, arguments in (("shell", {"command": "true"}), ("run_code", {"code": "1", "language": "python3"})):
            answer = self.succeed(tool, arguments)
            self.assertIn("sandbox", answer.raw, f"{tool} does not tell what confined it")
            self.assertEqual(answer.raw["sandbox"].get("missing", []), [])

    def test_twin_what_a_command_needs(self):
        script = """
            cat plain.txt; ls / > /dev/null; ls /usr/bin | head -1; cat /etc/passwd | head -1; echo $HOME $PATH $TMPDIR
            echo x > "$HOME/a" && echo y > "$TMPDIR/b" && cat "$HOME/a" "$TMPDIR/b"; id; hostname
            head -c 8 /dev/urandom | wc -c; echo > /dev/null; cat /proc/self/status | head -1
            df /tmp > /dev/null && echo fine
        """
        answer = self.succeed("shell", {"command": script})
        self.assertEqual(answer.exit_code, 0, answer)
        self.assertIn("fine", answer.text)
        told = self.try_inside("""
pair = socket.socketpair(); pair[0].send(b"x")
attempt("socketpair", lambda: pair[1].recv(1))
import subprocess, tempfile, threading, multiprocessing
attempt("subprocess", lambda: subprocess.run(["true"], check=True))
attempt("tempfile", lambda: tempfile.NamedTemporaryFile().write(b"x"))
attempt("thread", lambda: (lambda one: (one.start(), one.join()))(threading.Thread(target=int)))
attempt("lock", lambda: multiprocessing.Lock())
attempt("workspace", lambda: open("made.txt", "w").write("x"))
""")
        self.assertEqual({name for name, what in told.items() if what[0] != "worked"}, set(), told)


class WithNetwork(AbuseCase):
    """Commands that may use the network still may not use the host."""

    config = {"sandbox": {"profile": "network"}}

    def test_the_host_is_behind_its_token(self):
        self.accepted = []
        host_socket = str(self.place.data_dir / "socket")
        script = f"""
            cat {self.place.data_dir}/token; ls {self.place.data_dir}; cat {self.loot.file}
            python3 -I -c 'import socket as s; s.socket(s.AF_UNIX).connect("{host_socket}"); print("REACHED")'
            exec 3<>/dev/tcp/127.0.0.1/{self.host.port}
            printf 'GET /tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3; cat <&3
        """
        answer = self.succeed("shell", {"command": script})
        self.assertNotIn("REACHED", answer.text)
        self.assertIn("401", answer.text, "twin: the network is there, and the host asks for its token")

    def test_signals_and_names_of_the_kernel_s_sockets(self):
        abstract = "abuse-net-" + self.loot.word[-8:]
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + abstract)
        listener.listen()
        self.addCleanup(listener.close)
        path = self.write("pry.py", program(SOCKET_OF_A_NEIGHBOUR, abstract=abstract, host=self.host.pid))
        told = said(self.succeed("shell", {"command": f"python3 -I {path.name}"}))
        self.assertEqual({name: what for name, what in told.items() if what[0] == "worked"}, {})


SOCKET_OF_A_NEIGHBOUR = """
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0" + abstract))
attempt("signal", lambda: os.kill(host, 0))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt("low port", lambda: socket.socket().bind(("127.0.0.1", 80)))
"""


class ReadOnly(AbuseCase):
    config = {"sandbox": {"profile": "read-only"}}

    def test_nothing_is_written(self):
        self.write("plain.txt", "as it was\n")
        script = (
            "echo mine > plain.txt; echo mine > new.txt; rm -f plain.txt; mv plain.txt x; mkdir y; touch plain.txt;"
            " chmod 777 plain.txt; ln -s a b; true"
        )
        self.succeed("shell", {"command": script})
        self.call("run_code", {"code": "open('new.txt', 'w')", "language": "python3"})
        self.assertEqual([path.name for path in self.workspace.iterdir()], ["plain.txt"])
        self.assertEqual((self.workspace / "plain.txt").read_text(), "as it was\n")

    def test_twin_reading_and_temporary_files(self):
        self.write("plain.txt", "as it was\n")
        answer = self.succeed(
            "shell", {"command": "cat plain.txt > /tmp/x && sort /tmp/x | uniq -c && echo y > $HOME/z"}
        )
        self.assertEqual(answer.exit_code, 0, answer)
