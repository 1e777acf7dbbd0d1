"""Modules of a plan through the command line, with the stand-in and with the real package."""

import json
import subprocess
import time

from case import REAL, STAND_IN, Case


def running(words):
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if words in line and "ps -eo" not in line]


class Modules(Case):
    def test_tools_of_a_plan_are_listed_and_called(self):
        for amplifier in (STAND_IN, REAL):
            with self.subTest(amplifier["core"]):
                places = {"config": self.config(amplifier=amplifier), "plan": self.plan(["tool-desk"])}
                listed = self.run_command("tools", **places)
                self.assertEqual(listed.returncode, 0, listed.stderr)
                self.assertIn("read_note", listed.stdout)
                # Only for modules, in no list.
                self.assertNotIn("amplifier.ask", listed.stdout)
                code, written = self.call("write_note", {"file_path": "a", "content": "x"}, **places)
                self.assertEqual((code, written["outcome"]), (0, "succeeded"), written)
                self.assertEqual((self.workspace / "a").read_text(), "x")
                code, failed = self.call("read_note", {"file_path": "none"}, **places)
                self.assertEqual((code, failed["error"]["message"]), (1, "Path not found: none"))
                code, core = self.call("which_core", {}, **places)
                self.assertEqual(core["structured_content"]["real"], amplifier is REAL)

    def test_a_module_that_is_missing_is_told_and_the_others_serve(self):
        places = {"config": self.config(amplifier=STAND_IN), "plan": self.plan(["tool-desk", "tool-raises"])}
        listed = self.run_command("tools", **places)
        self.assertEqual(listed.returncode, 6, listed.stderr)
        self.assertIn("read_note", listed.stdout)
        self.assertIn("tool-raises", listed.stdout + listed.stderr)
        self.assertIn("no key configured", listed.stdout + listed.stderr)
        code, counted = self.call("count_mounts", {}, **places)
        self.assertEqual(counted["structured_content"]["mounts"], 1, "mounted once")

    def test_hooks_of_a_plan_look_at_every_call(self):
        plan = self.plan(["tool-rough"], ["hooks-watch"])
        places = {"config": self.config(amplifier=STAND_IN), "plan": plan}
        code, denied = self.call("nothing", {"wish": "deny"}, **places)
        self.assertEqual((code, denied["error"]["class"]), (3, "hook_blocked"), denied)
        code, changed = self.call("nap", {"wish": "modify"}, **places)
        self.assertEqual((code, changed["content"][0]["text"]), (0, "rested"))

    def test_a_call_that_is_interrupted_leaves_nothing_behind(self):
        places = {"config": self.config(amplifier=STAND_IN), "plan": self.plan(["tool-shell"])}
        arguments = json.dumps({"command": "setsid sleep 48201 & sleep 48201"})
        line = self.command("call", "shell", f"--json={arguments}", "--mode", "bypass", **places)
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            given_up = time.monotonic() + 60
            while len(running("sleep 48201")) < 3:
                self.assertLess(time.monotonic(), given_up, "the processes never came")
                time.sleep(0.02)
            process.terminate()
            process.communicate(timeout=60)
        given_up = time.monotonic() + 10
        while running("sleep 48201") and time.monotonic() < given_up:
            time.sleep(0.02)
        self.assertEqual(running("sleep 48201"), [])
