"""The host is killed in the middle of everything: nothing lives on, and the next one tells what became of it."""

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

    def busy(self, name):
        """A bit of everything under way, each in a session of its own and on record under a key; gives the calls."""
        calls = []
        commands = (DEAF, "\n".join(DAEMONS.values()) + "\nsleep 300", "kill -STOP $$", "yes", "sleep 300 | sleep 300")
        for number, command in enumerate(commands):
            calls.append((f"{name}-{number}", "shell", {"command": f"echo > running-{name}-{number}; {command}"}))
        for language in ("python", "python3"):
            calls.append((f"{name}-{language}", "run_code", {"code": "while True: pass", "language": language}))
        begun = []
        for key, tool, arguments in calls:
            caller = HttpCaller(self.host)
            caller.begin(tool, arguments, 300, **{"Idempotency-Key": key})
            begun.append((caller.session, key, tool, arguments))
        command = f"echo > running-{name}-background; setsid sleep 300 & {DEAF}"
        self.succeed("shell", {"command": command, "background": True}, caller=HttpCaller(self.host))
        expected = [f"running-{name}-{number}" for number in range(5)] + [f"running-{name}-background"]
        until(lambda: all((self.workspace / one).exists() for one in expected), 40, "everything runs")
        return begun

    def test_nothing_survives_and_the_next_one_is_clean(self):
        self.meanwhile.end()
        for life in range(2):
            agent = A2eCaller(self.host)
            # Not one that only reads: that one would be run again.
            over_a2e = agent.begin("shell", {"command": "sleep 300; touch never"}, 300)
            begun = self.busy(f"life{life}")
            left = census.processes_of(self.place.folder, self.host.pid)
            self.assertGreater(len(left), 6)
            killed = self.host.pid
            self.host.kill()
            until(
                lambda: not census.processes_of(self.place.folder),
                20,
                f"nothing is left of a host that was killed: {census.processes_of(self.place.folder)}",
                pause=0.1,
            )
            self.assertEqual(census.mounts_of(self.place.folder, None), [])
            self.host.start()
            # The dead cannot tidy up; the next one does, before its first command at the latest.
            # The kernel may still be clearing away the namespaces of the dead, and new ones wait for that.
            self.succeed("shell", {"command": "true"}, timeout=90, caller=HttpCaller(self.host))
            until(lambda: not census.cgroups_of(killed), 20, f"groups of the killed one: {census.cgroups_of(killed)}")
            self.assertIn(self.clean(over_a2e.answer(60)).outcome, ENDED)
            agent.hang_up()
            again = HttpCaller(self.host)
            for session, key, tool, arguments in begun:
                headers = {"Idempotency-Key": key, "Toolpost-Session": session}
                answer = self.clean(again.begin(tool, arguments, 300, **headers).answer(30))
                self.assertIn(answer.outcome, ENDED, f"{key}: {answer!r}")
            self.assertIn("works", self.succeed("shell", {"command": "echo works"}, caller=again).text)
        self.assertEqual(self.host.stop(), 0)
        self.verify()
        self.host.start()
        type(self)._descriptors = self.host.descriptors()
        type(self)._mounts = census.mount_count(self.host.pid)
        self.meanwhile = type(self.meanwhile)(self.host)

    def verify(self):
        words = [
            path_of(TOOLPOST),
            "journal",
            "verify",
            "--json",
            "--workspace",
            str(self.workspace),
            "--data-dir",
            str(self.place.data_dir),
        ]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=60, env=self.place.environment({}))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        report = json.loads(ran.stdout)
        self.assertEqual((report["clean"], report["open_invocations"]), (True, []))

    def test_stopping_in_the_middle_ends_everything(self):
        self.meanwhile.end()
        self.busy("stopped")
        self.assertEqual(self.host.stop(), 0)
        until(lambda: not census.processes_of(self.place.folder), 20, "nothing is left", pause=0.1)
        self.verify()
        self.host.start()
        self.meanwhile = type(self.meanwhile)(self.host)
