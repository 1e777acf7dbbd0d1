"""The programs under test, as processes: the real binary, and a host of test tools that behave badly on purpose.

A host has a workspace and a data directory of its own in a temporary folder. It listens on loopback, on a port that
it keeps over restarts. Whatever is started here is ended here, by its own handle.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path

from waiting import TooLate, until

TOOLPOST, FIXTURE = "TOOLPOST_BIN", "TOOLPOST_A2E_FIXTURE"
START_PATIENCE, STOP_PATIENCE = 60, 30
_LISTENING = re.compile(r"listening\s+http://(\S+):(\d+)")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def path_of(program):
    """Where a program is, by the environment variable that is its name here. None where it is not set."""
    path = os.environ.get(program)
    return str(Path(path).resolve()) if path else None


class Place:
    """A folder with a workspace, a data directory and a home in it, for one host after another."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="a2e-suite-"))
        self.workspace = self.folder / "workspace"
        self.data_dir = self.folder / "data"
        self.workspace.mkdir()
        self.data_dir.mkdir(mode=0o700)

    def write(self, name, text):
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name):
        return (self.workspace / name).read_text(encoding="utf-8")

    @property
    def token(self):
        return (self.data_dir / "token").read_text().strip()

    def environment(self, extra):
        home = str(self.folder)
        return os.environ | {"HOME": home, "XDG_STATE_HOME": home, "NO_COLOR": "1"} | extra

    def config(self, text):
        """Writes a trusted configuration and gives the words that name it."""
        path = self.folder / "trusted.yaml"
        path.write_text(text)
        return ["--config", str(path)]

    def token_file(self, token):
        """Writes a token into a file and gives the words that name it."""
        path = self.folder / "given-token"
        path.write_text(token)
        return ["--token-file", str(path)]

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def command(program, place, face, arguments):
    """The command line of either program; `face` is the words that choose HTTP or stdio."""
    words = [path_of(program)]
    if program == TOOLPOST:
        words += ["serve", "--workspace", str(place.workspace)]
    return words + ["--data-dir", str(place.data_dir), *face, *arguments]


class Host:
    """A host that listens on HTTP."""

    stdout = subprocess.DEVNULL

    def __init__(self, program, place, arguments=(), environment=None):
        self.program = program
        self.place = place
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.port = 0
        self.process = None
        self.last_words = None

    def words(self, face):
        """Its command line."""
        return command(self.program, self.place, face, self.arguments)

    def start(self):
        """Starts it, and waits until it listens."""
        face = ["--http", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(
            self.words(face),
            cwd=self.place.workspace,
            env=self.place.environment(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=self.stdout,
            stderr=subprocess.PIPE,
        )
        self.last_words = deque(maxlen=200)
        listening = threading.Event()
        reader = threading.Thread(target=self._read_stderr, args=(self.process.stderr, listening), daemon=True)
        reader.start()
        try:
            until(lambda: listening.is_set() or self.process.poll() is not None, START_PATIENCE, "the host listens")
            if not listening.is_set():
                reader.join(1)
                raise AssertionError(f"the host ended with {self.process.returncode}:\n{''.join(self.last_words)}")
        except BaseException:
            self.kill()
            raise
        return self

    def _read_stderr(self, stderr, listening):
        with stderr:
            for line in stderr:
                text = _COLOR.sub("", line.decode(errors="replace"))
                self.last_words.append(text)
                found = _LISTENING.search(text)
                if found and not listening.is_set():
                    self.port = int(found[2])
                    listening.set()

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def token(self):
        return self.place.token

    @property
    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """As a power cut would, as far as a process can see one."""
        if self.is_alive:
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self):
        """As a service manager would; gives the exit code."""
        if self.is_alive:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TooLate(f"the host did not end within {STOP_PATIENCE} s of a signal") from None

    def resident_bytes(self):
        """Memory that is really held."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))


def start_on_stdio(program, place, arguments=(), environment=None):
    """A host as a child on three pipes, as the stock client starts it. Nobody reads its stderr."""
    face = ["--stdio", "a2e"] if program == TOOLPOST else ["--stdio"]
    return subprocess.Popen(
        command(program, place, face, arguments),
        cwd=place.workspace,
        env=place.environment(environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
