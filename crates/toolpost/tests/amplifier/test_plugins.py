"""A plugin of an A2E host, served to an A2E client."""

import json
import shutil
import subprocess
import time

from case import MODULES, STAND_IN, Case


class Plugins(Case):
    def test_a_plugin_serves_its_tools(self):
        shutil.copytree(MODULES / "a2e-plugin" / "notes_plugin", self.home / "notes_plugin")
        host = self.home / "host.yaml"
        plugin = {"name": "notes", "type": "tools", "cls": "notes_plugin.NotesPlugin", "metadata": {"prefix": "> "}}
        host.write_text(json.dumps({"plugins": [plugin], "transport": {"type": "subprocess", "config": {}}}))
        line = self.command("serve", "--stdio", "a2e", "--a2e-config", str(host), "--mode", "bypass")
        line += ["--config", str(self.config(amplifier=STAND_IN))]
        process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)

        def ask(**message):
            whole = {"version": "1.0", "ts": time.time(), **message}
            process.stdin.write(json.dumps(whole) + "\n")
            process.stdin.flush()
            while True:
                said = json.loads(process.stdout.readline())
                if said.get("req_id") == message["id"] and not said["type"].endswith("/event"):
                    return said

        ask(type="handshake/req", id="1", agent_id="t", agent_caps=["tools"])
        tools = ask(type="tool/list/req", id="2")["tools"]
        self.assertIn("say", [tool["name"] for tool in tools])
        said = ask(type="tool/call/req", id="3", tool_name="say", arguments={"text": "hello"})
        self.assertEqual(said["data"].get("data"), {"said": "> hello"}, said)
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()
