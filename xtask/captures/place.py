"""The folder of a capture run, the binary as a command in it, and hosts that the binary serves there.

The folder has the same path in every run. Digests that cover paths, such as those of surfaces and of calls, can then
be compared between runs instead of being replaced. A lock allows one run at a time.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import record
from peer import Peer, poll

_LISTENING = re.compile(r"listening\s+http://\S+?:(\d+)")
COMMAND_SECONDS = 60
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Ground:
    """The folder that holds the binary and one place for each group of captures."""

    def __init__(self, *binaries):
        self.folder = Path(tempfile.gettempdir()).resolve() / f"toolpost-captures-{os.getuid()}"
        self._lock = open(f"{self.folder}.lock", "w", encoding="utf-8")  # noqa: SIM115 (held until the end)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"another capture runs in {self.folder}")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.binaries = []
        for number, binary in enumerate(binaries):
            # Help texts and `connect` print the program's name and path, so every binary gets the same ones.
            folder = self.folder / ("bin" if number == 0 else f"bin-{number}")
            folder.mkdir(parents=True)
            self.binaries.append(folder / "toolpost")
            try:
                os.link(Path(binary).resolve(), self.binaries[-1])
            except OSError:
                shutil.copy2(binary, self.binaries[-1])

    def place(self, name):
        return Place(self.folder / name, self.binaries[0])

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


class Place:
    """A workspace, a home and a state folder, and the binary run in them."""

    def __init__(self, folder, binary):
        self.folder, self.binary = folder, binary
        self.workspace, self.home = folder / "workspace", folder / "home"
        self.words = []
        self.variables = {}
        self.hosts = []
        for one in (self.workspace, self.home):
            one.mkdir(parents=True, exist_ok=True)

    def write(self, name, text):
        """Writes a file of the workspace; `../name` is beside it."""
        path = Path(os.path.normpath(self.workspace / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def configure(self, text):
        """Writes a trusted configuration beside the workspace, for every later command."""
        self.words = ["--config", str(self.write("../trusted.yaml", text))]

    def environment(self):
        path = f"{SYSTEM_PATH}:{Path(sys.executable).resolve().parent}"
        fixed = {"PATH": path, "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")}
        fixed |= {"XDG_CACHE_HOME": str(self.home / "cache"), "NO_COLOR": "1", "LANG": "C.UTF-8", "TZ": "UTC"}
        return fixed | self.variables

    def popen(self, words, **options):
        return subprocess.Popen(
            [str(self.binary), *words], cwd=self.workspace, env=self.environment(), **options
        )

    def run(self, *words, stdin=None, cwd=None):
        """Runs a command of the binary; gives what a capture of it holds."""
        ran = subprocess.run(
            [str(self.binary), *words],
            cwd=cwd or self.workspace,
            env=self.environment(),
            input=(stdin or "").encode(),
            capture_output=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return Ran(words, ran.returncode, ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace"))

    def begin(self, *words):
        """Begins a command whose output is read while it runs."""
        return RunningCommand(self, words)

    def run_configured(self, *words, **options):
        """The same with the trusted configuration, which is named behind the words of the command."""
        return self.run(*words, *self.words, **options)

    @property
    def data_dir(self):
        [found] = (self.home / "state" / "toolpost").iterdir()
        return found

    @property
    def operator(self):
        """Whoever may open the unix socket of the host that runs here."""
        return Peer(socket_path=self.data_dir / "socket")

    def serve(self, *words):
        host = Host(self, ["serve", "--http", "127.0.0.1:0", "--no-prompt", *self.words, *words])
        self.hosts.append(host)
        return host.start()

    def close(self):
        for host in self.hosts:
            host.kill()


class Ran:
    """A command that has ended."""

    def __init__(self, words, code, stdout, stderr):
        self.words, self.code, self.stdout, self.stderr = words, code, stdout, stderr

    def json_values(self):
        """The shape of an output that is JSON, and its values; of any other output nothing."""
        lines = self.stdout.splitlines()
        if not self.stdout.startswith(("{", "[")):
            return "", []
        try:
            if all(line.startswith(("{", "[")) for line in lines):
                return f"{len(lines)} lines of JSON, indented here", [json.loads(line) for line in lines]
            return "one JSON text of several lines, indented here", [json.loads(self.stdout)]
        except ValueError:
            return "", []


class RunningCommand:
    """A command that runs beside others."""

    def __init__(self, place, words):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._words, self._lines = words, []
        self.process = place.popen(words, **pipes)
        place.hosts.append(self)

    def read_until(self, condition):
        """Reads lines of the output up to the first that meets a condition."""
        for raw in self.process.stdout:
            self._lines.append(raw.decode(errors="replace"))
            if condition(self._lines[-1]):
                return

    def ended(self):
        rest, errors = self.process.communicate(timeout=COMMAND_SECONDS)
        stdout = "".join(self._lines) + rest.decode(errors="replace")
        return Ran(self._words, self.process.returncode, stdout, errors.decode(errors="replace"))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Host:
    """A served host: its process, what it printed, and callers of it."""

    def __init__(self, place, words):
        self.place, self.words = place, words
        self.process, self.port, self._reader, self._printer = None, None, None, None
        self.stderr, self.stdout = [], []

    def start(self):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = self.place.popen(self.words, **pipes)
        self._printer = threading.Thread(target=self._read_data, daemon=True)
        self._printer.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        poll(lambda: self.port or self.process.poll() is not None, "the host listens")
        if self.port is None:
            self._reader.join(5)
            raise RuntimeError("the host ended:\n" + "".join(self.stderr))
        return self

    def _read(self):
        with self.process.stderr as lines:
            for raw in lines:
                line = raw.decode(errors="replace")
                self.stderr.append(line)
                found = _LISTENING.search(line)
                if found and self.port is None:
                    self.port = int(found[1])

    def _read_data(self):
        with self.process.stdout as lines:
            self.stdout.extend(line.decode(errors="replace") for line in lines)

    @property
    def agent(self):
        return Peer(self.port, (self.place.data_dir / "token").read_text().strip())

    def caller(self, token):
        return Peer(self.port, token)

    @property
    def operator(self):
        return self.place.operator

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._join()

    def _join(self):
        for reader in (self._reader, self._printer):
            reader.join(5)

    def settle(self):
        """Waits until the host has written what it writes when it is idle."""
        state = self.place.home / "state" / "toolpost"
        if state.exists():
            record.settle(self.place.data_dir / "journal.db")

    def stop(self):
        self.settle()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self._join()
        return code

    def log(self):
        return "".join(self.stderr)

    def banner(self):
        """What `serve` prints at its start. It ends with a blank line behind an example."""
        poll(lambda: "try it:" in self.log() and self.log().endswith("\n\n"), "the banner is printed")
        return self.log()

    def ended(self):
        """Stops the host; gives its exit code and everything it printed, as a capture holds it."""
        code = self.stop()
        return Ran(self.words, code, "".join(self.stdout), self.log())
