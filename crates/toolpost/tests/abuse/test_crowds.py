"""Callers that ask for too much at once, while others work."""

import http.client
import time

from abuse_case import AbuseCase
from callers import GRACE
from client import call_message, message
from waiting import until


class Crowds(AbuseCase):
    seconds = 110

    def test_a_thousand_slow_shells_of_one_session(self):
        crowd, other = self.new_caller("a2e"), self.new_caller("http")
        running = [crowd.begin("shell", {"command": "sleep 30"}, 8) for _ in range(1_000)]
        worked = 0
        end = time.monotonic() + 6
        while time.monotonic() < end:
            begun = time.monotonic()
            self.assertIn("mine", self.succeed("shell", {"command": "echo mine"}, caller=other).text)
            self.assertLess(time.monotonic() - begun, 10, "another session waits for the crowd")
            worked += 1
        self.assertGreater(worked, 0)
        outcomes = {}
        for one in running:
            outcome = self.clean(one.answer(60)).outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        self.assertEqual(sum(outcomes.values()), 1_000, outcomes)
        self.assertLessEqual(set(outcomes), {"timed_out", "rejected", "canceled"}, outcomes)
        self.assert_nothing_runs()

    def test_a_storm_of_cancels(self):
        caller = self.new_caller("a2e")
        running = []
        for number in range(60):
            one = caller.begin("shell", {"command": "sleep 30 & setsid sleep 30 & sleep 30"}, 40)
            running.append(one)
            if number % 3:
                one.cancel()
        for one in running:
            one.cancel()
            one.cancel()
        for one in running:
            self.assertIn(self.clean(one.answer(60)).outcome, ("canceled", "rejected", "succeeded"))
        for _ in range(200):
            caller.client.post(message("tool/cancel/req", call_id="no-such-call"))
        # The kernel takes its time to clear away so many network namespaces, and lets no new one begin meanwhile.
        self.succeed("shell", {"command": "echo still here"}, 90, caller=caller)
        self.assert_nothing_runs()

    def test_sessions_that_come_and_go(self):
        """Calls that are on their way when their session ends: none may begin, or go on, after it."""
        for _ in range(20):
            caller = self.new_caller()
            one = caller.begin("shell", {"command": "setsid sleep 3000 & sleep 3000"}, 60)
            background = caller.begin("shell", {"command": "sleep 3000", "background": True}, 60)
            caller.close()
            self.forget(caller)
            for running in (one, background):
                self.clean(running.answer(20))
        self.assert_nothing_runs()

    def test_giant_arguments(self):
        cases = {
            "shell": {"command": "echo " + "x" * (1 << 20)},
            "run_code": {"code": "'" + "x" * (1 << 20) + "'"},
            "write_file": {"path": "big.txt", "content": "x" * (1 << 20)},
            "grep": {"pattern": "x" * (1 << 20)},
            "edit_file": {"path": "big.txt", "old_string": "x" * (1 << 20), "new_string": "y"},
            "http_request": {"url": "http://" + "x" * (1 << 20)},
        }
        for tool, arguments in cases.items():
            self.call(tool, arguments)
        for size in (9 << 20, 32 << 20):
            try:
                answer = self.http.begin("shell", b'{"command":"' + b"x" * size + b'"}').answer(GRACE)
                self.assertFalse(answer.ok)
            except (OSError, http.client.HTTPException):
                pass  # It may close the door while we still talk.
        for body in (
            b'{"command":' * 100_000,
            b"[" * 1_000_000,
            b'{"command":"a","command":"id"}',
            b"\xff\xfe",
            b"",
            b"null",
            b'{"command":"\\ud800"}',
        ):
            answer = self.http.begin("shell", body).answer(GRACE)
            self.assertFalse(answer.ok, answer)
        many = {"command": "true", "environment": {f"N{number}": "v" for number in range(5_000)}}
        self.call("shell", many)
        for name in (
            "LD_PRELOAD",
            "BASH_ENV",
            "ENV",
            "PATH=x",
            "",
            "A\0B",
            "BASH_FUNC_ls%%",
            "GIT_SSH_COMMAND",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "API_TOKEN",
        ):
            answer = self.call("shell", {"command": "ls", "environment": {name: "() { echo INJECTED; }"}})
            self.assertNotIn("INJECTED", answer.text)
            if name != "PATH=x":
                self.assertFalse(answer.ok, f"{name} was taken")

    def test_commands_made_for_parsers(self):
        for command in (
            "(" * 70,
            "$(" * 20_000,
            "{ " * 50_000,
            "case a in a)" * 30,
            "`" * 10_001,
            "<<" * 1_000,
            "\0",
            "a\0b",
            "\r\n",
            "é" * 100_000,
            "if " * 10_000,
            "x=" + "${x" * 5_000,
            "'" * 9_999,
        ):
            answer = self.call("shell", {"command": command}, timeout=5)
            self.assertIn(answer.outcome, ("succeeded", "failed", "timed_out"), answer)

    def test_twin_many_quick_ones(self):
        answers = self.many((("shell", {"command": f"echo number {number}"}) for number in range(40)), at_once=8)
        for number, answer in enumerate(answers):
            self.assertIn(f"number {number}", answer.text)


class Repeats(AbuseCase):
    def test_the_same_id_again_and_again_runs_once(self):
        caller = self.new_caller("a2e")
        call = call_message(
            "shell", {"command": "echo x >> once.txt; sleep 0.3; echo done"}, session_id=caller.client.session_id
        )
        pending = caller.client.start(call)
        for _ in range(50):
            caller.client.post(call)
        self.assertTrue(pending.result(30)["success"])
        self.assertEqual((self.workspace / "once.txt").read_text(), "x\n")
        until(lambda: caller.client.answers_to(pending.id), 10, "an answer")

    def test_twin_two_ids_run_twice(self):
        for _ in range(2):
            self.succeed("shell", {"command": "echo x >> twice.txt"})
        self.assertEqual((self.workspace / "twice.txt").read_text(), "x\nx\n")
