"""A home folder of its own with a workspace, terminals and a host."""

import re
import sys
from pathlib import Path

from stage import HOST_TERMINAL
from terminal import StartedCommand, Terminal, wait_until

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What the pages show for the reader's home folder and for the port of the host.
SHOWN_HOME, SHOWN_PORT = "/home/me", 8765
# Other folders of the pages; they are moved beside the home folder.
SHOWN_FOLDERS = ("/srv", "/var/tmp")
HOST_SECONDS = 60
# The terminal of what the page does not show.
STAGEHAND = "stagehand"
CLONE = Path(__file__).resolve().parents[2]
_LISTENING = re.compile(r"listening\s+http://\S+?:(\d+)\n")


class HostNotReady(Exception):
    pass


class Place:
    """Created when the page first needs it; `close` ends all that it started."""

    def __init__(self, stage, folder, binary, has_person, ports):
        self._stage, self._folder, self._binary = stage, folder, binary
        self._has_person, self._ports = has_person, ports
        self.home = folder / "home"
        self.port = None
        self._terminals, self._hosts = {}, {}
        self._begun = set()
        self.home.mkdir(parents=True)

    def begin(self):
        stage = self._stage
        # Real terminals show no meter of curl's for short answers.
        self.write("~/.curlrc", "silent\nshow-error\n")
        for name, text in stage.files.items():
            self.write(name, text)
        if stage.folder is not None:
            (self.home / stage.folder).mkdir(parents=True, exist_ok=True)
        if stage.setup:
            self.prepare(stage.setup)
        if stage.host is not None:
            self.start_host(f"toolpost serve --no-prompt {stage.host}".rstrip(), HOST_TERMINAL)

    def write(self, name, text):
        if name.startswith("~/"):
            path = self.home / name[2:]
        else:
            path = self.home / (self._stage.folder or "") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.as_real(text), encoding="utf-8")

    def terminal(self, name):
        if name not in self._terminals:
            start = CLONE if self._stage.folder is None else self.home / self._stage.folder
            has_person = self._has_person and name == HOST_TERMINAL
            self._terminals[name] = Terminal(self._folder / name, self._environment(), start, has_person)
        terminal = self._terminals[name]
        is_ready = self.port or self._stage.host is None
        if self._stage.prelude and is_ready and name not in self._begun:
            self._begun.add(name)
            _expect_success(self._stage.prelude, *terminal.run(self.as_real(self._stage.prelude)))
        return terminal

    def _environment(self):
        path = f"{self._binary.parent}:{Path(sys.executable).resolve().parent}:{SYSTEM_PATH}"
        return {
            "PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "USER": "me",
            "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_NOSYSTEM": "1", "CLONE": str(CLONE),
        }  # fmt: skip

    def prepare(self, bash, terminal=STAGEHAND):
        """Runs bash that the page does not show; gives its output. In a terminal of the page it may set variables."""
        text = self.as_real(bash)
        if terminal == STAGEHAND:
            text = f"(set -e\n{text}\n)"
        return _expect_success(bash, *self.terminal(terminal).run(text))

    def start_host(self, command, terminal):
        """Starts a host on a free port in place of the one that ran in this terminal."""
        if terminal in self._hosts:
            self._hosts[terminal].interrupt()
        port = "" if "--http" in command else " --http 127.0.0.1:0"
        host = self.terminal(terminal).start(self.as_real(command) + port)
        self._hosts[terminal] = host
        wait_until(lambda: _LISTENING.search(host.unread()) or not host.is_running(), HOST_SECONDS)
        listening = _LISTENING.search(host.unread())
        if listening is None:
            raise HostNotReady(f"`{command}` does not listen:\n{host.unread()}")
        self.port = int(listening[1])
        return host

    def host(self, terminal) -> StartedCommand:
        return self._hosts[terminal]

    def as_real(self, text):
        """A command of the page with the folders and ports of this place."""
        text = text.replace(SHOWN_HOME, str(self.home))
        for name in SHOWN_FOLDERS:
            text = re.sub(rf"(?<![\w.]){name}/", f"{self._folder}{name}/", text)
        if self.port:
            text = re.sub(rf"((?:127\.0\.0\.1|localhost):){SHOWN_PORT}\b", rf"\g<1>{self.port}", text)
        for shown, real in self._ports.items():
            text = re.sub(rf"\b{shown}\b", str(real), text)
        return text

    def as_shown(self, text):
        """An output with the folders and ports of the page."""
        text = text.replace(str(self.home), SHOWN_HOME).replace(str(self.home.resolve()), SHOWN_HOME)
        text = text.replace(f"{self._folder}/", "/").replace(str(self._binary), "toolpost")
        if self.port:
            text = re.sub(rf"((?:127\.0\.0\.1|localhost):){self.port}\b", rf"\g<1>{SHOWN_PORT}", text)
        for shown, real in self._ports.items():
            text = re.sub(rf"\b{real}\b", str(shown), text)
        return text

    def close(self):
        for host in self._hosts.values():
            host.interrupt()
        for terminal in self._terminals.values():
            terminal.close()


def binary_folder(binary, folder):
    """A folder with nothing but the binary, for the front of the path."""
    own = folder / "bin"
    own.mkdir()
    linked = own / "toolpost"
    linked.symlink_to(Path(binary).resolve())
    return linked


def _expect_success(bash, code, output):
    if code:
        raise RuntimeError(f"`{bash}` ended with {code}:\n{output.unread()}")
    return output.unread()
