"""What the cases share: a host with things to steal around it, callers, somebody else meanwhile, and a reckoning.

After every case: the host lives, others were served all the while, nothing outside of the workspace has changed, no
answer held a secret, and no process of the case is left. After every class: memory, descriptors, mounts and control
groups of the host are as before, and it ends as it should.
"""

import json
import os
import secrets
import signal
import unittest
from pathlib import Path

import census
from callers import DEADLINE, GRACE, A2eCaller, HttpCaller
from case import TestTookTooLong
from host import TOOLPOST, Host, Place, path_of
from meanwhile import Meanwhile
from waiting import TooLate, until

SETTLE = 20
MOST_MEMORY = 600 << 20
MORE_DESCRIPTORS = 24
# Workers of the host that wait for the next call: they are its own, and end with it.
RESIDENT_WORKERS = 4
CLEANUP_SECONDS = 30

# Small enough that a case that is contained ends soon, and one that is not does no harm.
CONFIG = {
    "mode": "bypass",
    # Nobody is there to answer.
    "approvals": {"timeout": "20ms"},
    "sandbox": {"memory": "256MiB", "processes": 64, "tmp": "64MiB", "file_size": "96MiB"},
}


class Abused(Host):
    """A host that outlives what is done to it, with a secret in its environment."""

    def __init__(self, place, config, environment):
        path = place.folder / "trusted.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(config))
        super().__init__(TOOLPOST, place, ["--config", str(path)], environment)

    @property
    def pid(self):
        return self.process.pid


class Loot:
    """What a case might steal or break: files around the workspace that nothing may read or change."""

    def __init__(self, place):
        self.word = "loot-" + secrets.token_hex(12)
        self.place = place
        self.folder = place.folder / "outside"
        self.file = self.folder / "secret.txt"
        for path in (self.file, self.folder / "deep" / "secret.txt", place.folder / ".ssh" / "id_rsa"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.word + "\n")
            path.chmod(0o644)
        # A neighbour whose name begins as the workspace's does.
        neighbour = place.folder / "workspace-neighbour"
        neighbour.mkdir()
        (neighbour / "secret.txt").write_text(self.word + "\n")
        self._before = self._look()

    def _look(self):
        found = {}
        for top in (self.folder, self.place.folder / ".ssh", self.place.folder / "workspace-neighbour"):
            for path in sorted(top.rglob("*")):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else None
                found[str(path)] = (status.st_mode, status.st_nlink, content)
        return found

    def changes(self):
        now = self._look()
        return sorted(path for path in self._before.keys() | now.keys() if self._before.get(path) != now.get(path))


class AbuseCase(unittest.TestCase):
    """Cases that share a host."""

    config = {}
    environment = {}
    seconds = 60
    maxDiff = None

    @classmethod
    def prepare(cls):
        """For what must be there before the host starts."""

    @classmethod
    def whole_config(cls):
        return {**CONFIG, **cls.config}

    @classmethod
    def setUpClass(cls):
        if not path_of(TOOLPOST):
            raise unittest.SkipTest(f"{TOOLPOST} is not set")
        cls.place = Place()
        cls.addClassCleanup(cls.place.remove)
        cls.workspace = cls.place.workspace
        cls.loot = Loot(cls.place)
        cls.prepare()
        environment = {"HOST_PASSWORD": cls.loot.word, "PLAIN_NAME": cls.loot.word} | cls.environment
        cls.host = Abused(cls.place, cls.whole_config(), environment)
        cls.addClassCleanup(cls.host.kill)
        cls.host.start()
        cls._warm_up()
        cls._descriptors = cls.host.descriptors()
        cls._mounts = census.mount_count(cls.host.pid)

    @classmethod
    def _warm_up(cls):
        """One call of each kind, so that what is made once is not taken for a leak."""
        caller = HttpCaller(cls.host)
        calls = {"echo": {"message": "x"}, "shell": {"command": "true"}, "run_code": {"code": "1"}}
        for tool, arguments in calls.items():
            caller.call(tool, arguments)
        caller.close()

    @classmethod
    def tearDownClass(cls):
        host, folder = cls.host, cls.place.folder
        until(
            lambda: host.descriptors() <= cls._descriptors + MORE_DESCRIPTORS,
            SETTLE,
            f"descriptors are as before: {cls._descriptors}, now {host.descriptors()}",
        )
        memory = host.resident_bytes()
        assert memory < MOST_MEMORY, f"the host holds {memory >> 20} MiB"
        assert census.mount_count(host.pid) == cls._mounts, "the host has other mounts than before"
        pid = host.pid
        code = host.stop()
        assert code == 0, f"the host ended with {code}: {''.join(host.last_words)}"
        until(
            lambda: not census.processes_of(folder),
            SETTLE,
            f"nothing is left of the host: {census.processes_of(folder)}",
        )
        assert not census.mounts_of(folder, None), census.mounts_of(folder, None)
        until(lambda: not census.cgroups_of(pid), SETTLE, f"its control groups are gone: {census.cgroups_of(pid)}")

    # Each case.

    def run(self, result=None):
        def ring(*_):
            raise TestTookTooLong(f"over {self.seconds} s")

        before = signal.signal(signal.SIGALRM, ring)
        # It rings again for a clean-up that hangs too.
        signal.setitimer(signal.ITIMER_REAL, self.seconds, CLEANUP_SECONDS)
        try:
            return super().run(result)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def setUp(self):
        self._callers = []
        self.addCleanup(self._reckon)
        self.meanwhile = Meanwhile(self.host).start()

    def _reckon(self):
        for caller in self._callers:
            caller.close()
        self.assertTrue(self.host.is_alive, "the host died: " + "".join(self.host.last_words))
        self.meanwhile.end()
        self.assertEqual(self.loot.changes(), [], "something outside of the workspace was changed")
        self.assert_nothing_runs()

    def new_caller(self, face="http"):
        caller = HttpCaller(self.host) if face == "http" else A2eCaller(self.host)
        self._callers.append(caller)
        return caller

    def forget(self, caller):
        """For a caller that the case itself has ended."""
        self._callers.remove(caller)

    @property
    def http(self):
        return self._first("http")

    @property
    def a2e(self):
        return self._first("a2e")

    def _first(self, face):
        for caller in self._callers:
            if caller.face == face:
                return caller
        return self.new_caller(face)

    # What is asserted again and again.

    def call(self, tool, arguments, timeout=DEADLINE, caller=None):
        """A call, whose answer must hold no secret."""
        return self.clean((caller or self.http).call(tool, arguments, timeout))

    def clean(self, answer):
        told = answer.everything
        self.assertNotIn(self.loot.word, told, "the answer holds a secret")
        self.assertNotIn(self.host.token, told, "the answer holds the host's token")
        return answer

    def many(self, calls, timeout=DEADLINE, caller=None, at_once=12):
        """Calls side by side; gives their answers in order."""
        caller, calls, answers = caller or self.http, list(calls), []
        for start in range(0, len(calls), at_once):
            batch = [caller.begin(tool, arguments, timeout) for tool, arguments in calls[start : start + at_once]]
            answers += [self.clean(one.answer(timeout + GRACE)) for one in batch]
        return answers

    def apart(self, calls, timeout=DEADLINE, face="http"):
        """Calls side by side, each in a session of its own: commands of one session run one after the other."""
        running = [self.new_caller(face).begin(tool, arguments, timeout) for tool, arguments in calls]
        return [self.clean(one.answer(timeout + GRACE)) for one in running]

    def succeed(self, tool, arguments, timeout=DEADLINE, caller=None):
        """A call that must work: the twins."""
        answer = self.call(tool, arguments, timeout, caller)
        self.assertTrue(answer.ok, answer)
        return answer

    def refuse(self, tool, arguments, timeout=DEADLINE, caller=None, classes=None):
        """A call that must not work, and says why."""
        answer = self.call(tool, arguments, timeout, caller)
        self.assertFalse(answer.ok, f"{tool} {arguments!r} worked: {answer!r}")
        self.assertTrue(answer.message, answer)
        if classes:
            self.assertIn(answer.error_class, classes, answer)
        return answer

    def strays(self):
        """Processes of the host, but for a few workers that wait for the next program."""
        found = census.processes_of(self.place.folder, self.host.pid)
        waiting = [pid for pid, line in found.items() if "__code-worker" in line][:RESIDENT_WORKERS]
        return {pid: line for pid, line in found.items() if pid not in waiting}

    def assert_nothing_runs(self, seconds=SETTLE):
        try:
            until(lambda: not self.strays(), seconds, "all processes are gone", pause=0.1)
        except TooLate:
            self.fail(f"processes are left: {self.strays()}")

    # What cases put into the workspace.

    def write(self, name, content):
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return path

    def folder(self, name=None):
        """A folder of this case alone, in the workspace."""
        path = self.workspace / (name or f"case-{secrets.token_hex(4)}")
        path.mkdir(parents=True)
        return path

    def name(self, path):
        """A path as a caller writes it."""
        return str(Path(path).relative_to(self.workspace))


def is_root():
    return os.geteuid() == 0
