"""The host is killed in the middle of everything: nothing it started lives on, and the next one tells what became of it."""

import json
import subprocess

import census
from abuse_case import AbuseCase
from callers import A2eCaller, HttpCaller
from host import TOOLPOST, path_of
from test_survivors import DAEMONS, DEAF
from waiting import until

ENDED = ("unknown", "canceled")


class Crash(AbuseCase):
    seconds = 110

    def busy(self, caller, name):
        """A bit of everything under way, some of it on record because it has a key; gives the keys."""
        keys = []
        for number, command in enumerate((DEAF, "\n".join(DAEMONS.values()) + "\nsleep 300", "kill -STOP $$", "yes", "sleep 300 | sleep 300")):
            key = f"{name}-{number}"
            caller.begin("shell", {"command": f"echo > running-{key}; {command}"}, 300, **{"Idempotency-Key": key})
            keys.append((key, "shell", {"command": f"echo > running-{key}; {command}"}))
        for language in ("python", "python3"):
            key = f"{name}-{language}"
            code = {"code": "while True: pass", "language": language}
            caller.begin("run_code", code, 300, **{"Idempotency-Key": key})
            keys.append((key, "run_code", code))
        self.succeed("shell", {"command": f"echo > running-{name}-background; setsid sleep 300 & {DEAF}", "background": True}, caller=caller)
        expected = [f"running-{name}-{number}" for number in range(5)] + [f"running-{name}-background"]
        until(lambda: all((self.workspace / one).exists() for one in expected), 40, "everything runs")
        return keys

    def test_nothing_survives_and_the_next_one_is_clean(self):
        self.meanwhile.end()
        for life in range(2):
            caller = HttpCaller(self.host)
            agent = A2eCaller(self.host)
            over_a2e = agent.begin("shell", {"command": "sleep 300"}, 300)
            keys = self.busy(caller, f"life{life}")
            left = census.processes_of(self.place.folder, self.host.pid)
            self.assertGreater(len(left), 6)
            self.host.kill()
            until(lambda: not census.processes_of(self.place.folder), 20,
                  f"nothing is left of a host that was killed: {census.processes_of(self.place.folder)}", pause=0.1)
            self.assertEqual(census.mounts_of(self.place.folder, None), [])
            self.host.start()
            self.assertIn(self.clean(over_a2e.answer(60)).outcome, ENDED)
            agent.hang_up()
            again = HttpCaller(self.host)
            # The same session, which is on record.
            again.headers["Toolpost-Session"] = caller.session
            for key, tool, arguments in keys:
                answer = self.clean(again.begin(tool, arguments, 300, **{"Idempotency-Key": key}).answer(30))
                self.assertIn(answer.outcome, ENDED, f"{key}: {answer!r}")
            self.assertIn("works", self.succeed("shell", {"command": "echo works"}, caller=again).text)
        self.assertEqual(self.host.stop(), 0)
        self.verify()
        self.host.start()
        type(self)._descriptors = self.host.descriptors()
        type(self)._mounts = census.mount_count(self.host.pid)
        self.meanwhile = type(self.meanwhile)(self.host)

    def verify(self):
        words = [path_of(TOOLPOST), "journal", "verify", "--json", "--workspace", str(self.workspace), "--data-dir", str(self.place.data_dir)]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=60, env=self.place.environment({}))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        report = json.loads(ran.stdout)
        self.assertEqual((report["clean"], report["open_invocations"]), (True, []))

    def test_stopping_in_the_middle_ends_everything(self):
        self.meanwhile.end()
        caller = HttpCaller(self.host)
        self.busy(caller, "stopped")
        self.assertEqual(self.host.stop(), 0)
        until(lambda: not census.processes_of(self.place.folder), 20, "nothing is left", pause=0.1)
        self.verify()
        self.host.start()
        self.meanwhile = type(self.meanwhile)(self.host)
