"""A workspace, a plan, and the binary."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MODULES = pathlib.Path(__file__).parents[3] / "modules" / "tests" / "modules"

STAND_IN = {"core": "stand_in", "install": "offline"}
REAL = {"core": "auto", "install": "offline", "python": sys.executable}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name).resolve()
        self.workspace = self.home / "workspace"
        self.workspace.mkdir()

    def plan(self, tools=(), hooks=(), configs=None):
        """A mount plan; JSON is YAML."""
        entry = lambda name: {"module": name, "source": str(MODULES / name), "config": (configs or {}).get(name, {})}
        plan = {"tools": [entry(name) for name in tools], "hooks": [entry(name) for name in hooks]}
        path = self.home / "plan.yaml"
        path.write_text(json.dumps(plan))
        return path

    def config(self, **settings):
        path = self.home / "toolpost.yaml"
        path.write_text(json.dumps(settings))
        return path

    def command(self, *words, config=None, plan=None):
        line = [os.environ["TOOLPOST_BIN"], *words, "--workspace", str(self.workspace)]
        line += ["--data-dir", str(self.home / "data"), "--cache-dir", str(self.home / "cache")]
        if config is not None:
            line += ["--config", str(config)]
        if plan is not None:
            line += ["--mount-plan", str(plan)]
        return line

    def run_command(self, *words, **places):
        return subprocess.run(self.command(*words, **places), capture_output=True, text=True, timeout=120)

    def call(self, tool, arguments, **places):
        """A call in mode `bypass`: the exit code, and the result as JSON."""
        done = self.run_command("call", tool, f"--json={json.dumps(arguments)}", "--mode", "bypass", **places)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            self.fail(f"{done.returncode}: {done.stdout}\n{done.stderr}")
