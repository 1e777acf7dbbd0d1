"""A recorded session, served again: every answer is the same to the byte, apart from ids and times."""

import json
import re
import subprocess
import sys

from case import ProcessCase
from client import Client, message
from host import path_of, TOOLPOST
from over_stdio import StdioTransport
from replaying import NotAsRecorded, ReplayHost, replaying, words

CONFIG = """\
limits: { inline_chars: 2000 }
tools:
  list_directory: { deferred: true }
  echo: { name: say, defaults: { message: nothing to say } }
"""
POLICY = ("--mode", "edits", "--deny", "fs.write(kept/**)", "--deny", "http_request")

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEX = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
TIME = re.compile(r'"(ts|created_at|duration_ms)":[0-9.eE+-]+')
HARD = "\u00e9\u4f60 \U0001f600 \u2028 \v\x00\x7f \"\\ data: x\n\n"


def masked(text):
    """A message without its ids and times."""
    return TIME.sub(r'"\1":T', HEX.sub("ID", UUID.sub("ID", text)))


def data_of(text):
    """What an answer to a call holds."""
    return json.loads(text).get("data", {})


# Tool, arguments, what else the request says, and how the call must have ended.
CALLS = [
    ("say", {"message": "hello"}, {}, "succeeded"),
    ("say", {"message": HARD}, {}, "succeeded"),
    ("say", {"message": ""}, {}, "succeeded"),
    ("say", {}, {}, "succeeded"),
    ("say", {"message": 5}, {}, "invalid_arguments"),
    ("say", {"message": "x", "extra": 1.5}, {}, "invalid_arguments"),
    ("host.echo", {"message": "by its id"}, {}, "succeeded"),
    ("no_such_tool", {"q": "x"}, {}, "unknown_tool"),
    ("list_directory", {}, {}, "schema_not_loaded"),
    ("write_file", {"path": "notes.txt", "content": "one\ntwo\n"}, {}, "succeeded"),
    ("read_file", {"path": "notes.txt"}, {}, "succeeded"),
    ("read_file", {"path": "missing.txt"}, {}, "execution_failed"),
    ("read_file", {"path": "../../etc/passwd"}, {}, "sandbox_violation"),
    ("write_file", {"path": "kept/a.txt", "content": "x"}, {}, "permission_denied"),
    ("http_request", {"url": "http://127.0.0.1:1/"}, {}, "policy_blocked"),
    ("say", {"message": "long " * 2000}, {}, "succeeded"),
    ("glob", {"pattern": "*.nothing"}, {}, "succeeded"),
    ("shell", {"command": "rm -rf build"}, {"timeout": 1}, "approval_pending"),
    ("edit_file", {"path": "notes.txt", "old_string": "one", "new_string": "three"}, {}, "succeeded"),
    ("say", {"message": "hello"}, {}, "succeeded"),
]
# Those that come after them.
MORE_CALLS = 4


class Recorded(ProcessCase):
    maxDiff = None

    def record(self):
        """A session with calls of every kind of end; gives its place, its id and its answers."""
        place = self.new_place()
        host = self.new_host(*POLICY, place=place, config=CONFIG)
        client = self.new_client(host)
        answers = self.talk(client)
        for (tool, _, _, expected), answer in zip(CALLS, answers, strict=False):
            data = data_of(answer)
            if expected:
                self.assertEqual(data.get("error_class", data["outcome"]), expected, (tool, data))
        self.assertEqual(host.stop(), 0)
        return place, client.welcome["host_session_id"], answers

    def talk(self, client):
        """The whole conversation; gives the answers as they came."""
        answers = []

        def ask(request):
            pending = client.start(request)
            pending.wait(20)
            answers.append(pending.received.text)
            return pending.received.message

        def call(number, tool, arguments, **fields):
            fields = {"id": f"r-{number}", "correlation_id": "c", "session_id": "", "streaming": False} | fields
            return ask(message("tool/call/req", tool_name=tool, arguments=arguments, **({"timeout": 60} | fields)))

        for number, (tool, arguments, fields, _) in enumerate(CALLS):
            call(number, tool, arguments, **fields)
        ask(message("tool/list/req", id="list"))
        ask(message("tool/list/req", id="search", query="directory", include_deferred=True))
        call("found", "list_directory", {})
        # What was kept of a large result is named by the call that gave it.
        kept = next(data["artifacts"][0]["id"] for data in map(data_of, answers) if data.get("artifacts"))
        call("kept", "read_result", {"ref": kept, "byte_offset": 5000, "limit": 1})
        # An id of the first answer goes into the second call. Whether the first says that the call goes on or how it
        # ended is a matter of moments, in every host.
        begun = call("behind", "say", {"message": "in the background"}, background=True)["data"]["invocation_id"]
        answers.pop()
        call("asked", "call_result", {"invocation_id": begun, "wait_seconds": 5})
        return answers

    def replay(self, place, what, *arguments):
        host = ReplayHost(place, what, arguments)
        self.addCleanup(host.kill)
        return host.start()

    def assert_same(self, answers, recorded):
        self.assertEqual(len(answers), len(recorded))
        for answer, before in zip(answers, recorded, strict=True):
            self.assertEqual(masked(answer), masked(before))


class Replays(Recorded):
    def test_every_answer_is_the_recorded_one_to_the_byte(self):
        place, session, recorded = self.record()
        for matching in ("strict", "ordered"):
            with self.subTest(matching=matching):
                host = self.replay(place, session, "--match", matching)
                self.assert_same(self.talk(self.new_client(host)), recorded)
                code, report = host.finish()
                self.assertEqual((code, report["refused"], report["left"]), (0, 0, []), report)
                self.assertEqual(report["answered"], len(CALLS) + MORE_CALLS)

    def test_the_same_over_stdio_from_a_file(self):
        place, session, recorded = self.record()
        file = place.folder / "session.json"
        where = ["--workspace", str(place.workspace), "--data-dir", str(place.data_dir)]
        subprocess.run(words(session, *where, "--save", file), check=True, capture_output=True, timeout=20)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
        process = subprocess.Popen(words(file, "--stdio", "a2e"), env=place.environment({}), **pipes)
        transport = StdioTransport(process)
        client = Client(transport, "", ("tools",))
        self.addCleanup(transport.abandon)
        # A stream of events has line breaks in long messages, and pipes have none.
        on_one_line = lambda texts: [json.dumps(json.loads(text), separators=(",", ":")) for text in texts]
        self.assert_same(on_one_line(self.talk(client.connect())), on_one_line(recorded))

    def test_nothing_is_touched(self):
        place, session, recorded = self.record()
        (place.workspace / "notes.txt").write_text("mine\n")
        host = self.replay(place, session)
        self.assert_same(self.talk(self.new_client(host)), recorded)
        self.assertEqual(place.read("notes.txt"), "mine\n")

    def test_a_call_that_was_not_recorded_says_what_is_different(self):
        place, session, _ = self.record()
        host = self.replay(place, session)
        client = self.new_client(host)
        result = client.call("write_file", {"path": "other.txt", "content": "one\ntwo\n"})
        self.assertFalse(result["success"])
        self.assertIn('- /path: "notes.txt"\n+ /path: "other.txt"', result["error"])
        self.assertFalse((place.workspace / "other.txt").exists())
        code, report = host.finish()
        self.assertEqual((code, report["answered"], report["refused"]), (1, 0, 1))
        self.assertEqual(len(report["left"]), len(CALLS) + MORE_CALLS)

    def test_a_session_that_is_not_there_is_named_with_those_that_are(self):
        place, session, _ = self.record()
        where = ["--workspace", str(place.workspace), "--data-dir", str(place.data_dir)]
        ended = subprocess.run(words("nobody", *where), capture_output=True, text=True, timeout=20)
        self.assertEqual(ended.returncode, 2)
        self.assertIn(session, ended.stderr)


AGENT = """
import json, os, sys, urllib.request
def call(tool, arguments):
    request = urllib.request.Request(os.environ["TOOLPOST_URL"] + "/tools/" + tool + "/call", json.dumps(arguments).encode())
    request.add_header("Authorization", "Bearer " + os.environ["TOOLPOST_TOKEN"])
    request.add_header("Content-Type", "application/json")
    return json.load(urllib.request.urlopen(request))
call("write_file", {"path": "made.txt", "content": "by the agent"})
print(call("read_file", {"path": "made.txt"})["content"][0]["text"])
sys.exit(7)
"""


class Captures(ProcessCase):
    def capture(self, place, *command):
        file = place.folder / "cassette.json"
        where = ["--workspace", str(place.workspace), "--data-dir", str(place.data_dir), "--mode", "edits"]
        line = [path_of(TOOLPOST), "capture", "-o", str(file), *where, "--", *command]
        return file, subprocess.run(line, env=place.environment({}), capture_output=True, text=True, timeout=25)

    def test_an_agent_is_recorded_and_replayed(self):
        place = self.new_place()
        file, ended = self.capture(place, sys.executable, "-c", AGENT)
        self.assertEqual(ended.returncode, 7, ended.stderr)
        self.assertIn("by the agent", ended.stdout)
        self.assertEqual(place.read("made.txt"), "by the agent")
        self.assertEqual([call["tool"] for call in json.loads(file.read_text())["calls"]], ["write_file", "read_file"])
        with replaying(file) as client:
            self.assertTrue(client.call("write_file", {"path": "made.txt", "content": "by the agent"})["success"])
            self.assertIn("by the agent", client.call("read_file", {"path": "made.txt"})["data"]["text"])

    def test_a_call_that_is_missing_fails_the_test(self):
        place = self.new_place()
        file, _ = self.capture(place, sys.executable, "-c", AGENT)
        with self.assertRaises(NotAsRecorded) as caught:
            with replaying(file) as client:
                client.call("read_file", {"path": "made.txt"})
        self.assertIn("write_file", str(caught.exception))

    def test_a_command_that_cannot_be_started_leaves_no_file(self):
        place = self.new_place()
        file, ended = self.capture(place, "/nowhere/at/all")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("/nowhere/at/all", ended.stderr)
        self.assertFalse(file.exists())
