"""The record of a host: raw rows of the database, every command and format that reads it, and its replay."""

import json
import shutil
import sqlite3
import sys

import record
import stage
from calls import call, invocation_of
from pipes import PipedHost
from place import Host

FORMATS = ("agent-tool", "jsonl", "a2e-audit")


def save_record(group, name):
    """Captures the raw rows and the exports of a place whose host has ended."""
    group.save(f"{name}/rows", record.rows(group.place.data_dir / "journal.db"))
    for form in FORMATS:
        group.run(f"{name}/export-{form}", "journal", "export", "--format", form)
    group.run(f"{name}/verify", "journal", "verify")
    group.run(f"{name}/verify-json", "journal", "verify", "--json")


def capture(group):
    group.run("empty/tail", "journal", "tail")
    group.run("empty/verify", "journal", "verify")
    stage.prepare(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    agent = host.agent
    made = {
        name: invocation_of(call(agent, tool, sent, name))
        for name, tool, sent in (
            ("read", "read_file?correlation_id=mark-1", {"path": "notes.txt"}),
            ("failed", "read_file", {"path": "missing.txt"}),
            ("denied", "read_file", {"path": "secret.txt"}),
            ("shell", "shell", {"command": "sleep 0; echo said"}),
            ("nested", "run_code", {"code": 'print(read_file("notes.txt"))'}),
            ("preview", "demo__read_preview", {"path": "large.txt"}),
            ("module", "read_note", {"file_path": "notes.txt"}),
            ("withheld", "echo", {"message": "keep this"}),
            ("delegated", "write_file", {"path": "desk/a.txt", "content": "x"}),
            ("unknown", "no_such_tool", {"a": 1}),
        )
    }
    for name, invocation in made.items():
        group.run(f"show/{name}", "journal", "show", invocation)
        group.run(f"show/{name}-json", "journal", "show", invocation, "--json")
        group.run(f"show/{name}-explain", "explain", invocation)
        group.run(f"show/{name}-explain-json", "explain", invocation, "--json")
        group.run(f"export/call-{name}", "journal", "export", "--format", "agent-tool", "--call", invocation)
    group.run("show/absent", "journal", "show", "01a1e2c0-1117-7159-9d5f-d91434b86c3e")
    _find(group)
    _replay_while_served(group)
    host.stop()
    save_record(group, "record")
    group.run("seal", "journal", "seal")
    head = group.place.run("journal", "seal").stdout.strip()
    group.run("verify-head", "journal", "verify", "--head", head)
    group.run("verify-other-head", "journal", "verify", "--head", head[:-4] + ("0000" if head[-4:] != "0000" else "1111"))
    group.run("prune-dry", "journal", "prune", "--before", "90d", "--dry-run")
    for name, words in {
        "session": ["--session", "default:agent:agent"],
        "since": ["--since", "1h", "--format", "agent-tool"],
        "until": ["--until", "30d"],
        "bad-session": ["--session", "none"],
        "into-file": ["-o", str(group.place.folder / "export.jsonl")],
    }.items():
        group.run(f"export/{name}", "journal", "export", *words)
    _replay(group)
    _recorded_agent(group)
    _damage(group)


def _find(group):
    for name, words in {
        "all": [],
        "json": ["--json"],
        "tool": ["--tool", "files.*"],
        "outcome": ["--outcome", "failed"],
        "correlation": ["--correlation", "mark-1"],
        "principal": ["--principal", "agent", "-n", "2"],
        "session": ["--session", "default:agent:agent", "-n", "3"],
        "none": ["--tool", "zebra"],
        "bad-outcome": ["--outcome", "odd"],
        "since": ["--since", "1h", "-n", "2"],
        "until": ["--until", "30d"],
        "bad-since": ["--since", "soon"],
    }.items():
        group.run(f"search/{name}", "journal", "search", *words)
        if name != "all":
            group.run(f"tail/{name}", "journal", "tail", *words)
    group.run("search/text", "journal", "search", "--text", "two three")
    group.run("tail/newest", "journal", "tail", "-n", "5")


def _replay_while_served(group):
    group.run("replay/save", "journal", "replay", "last", "--save", str(group.place.folder / "session.json"))
    group.save("replay/cassette", json.loads((group.place.folder / "session.json").read_text()))
    group.run("replay/save-unknown", "journal", "replay", "none", "--save", str(group.place.folder / "none.json"))


def _replay(group):
    """Serves the recorded session: the same calls, one with other arguments, one twice, and over pipes."""
    cassette = str(group.place.folder / "session.json")
    for match in ("strict", "ordered"):
        words = ["journal", "replay", cassette, "--match", match, "--http", "127.0.0.1:0", "--no-token"]
        words += ["--json", "--complete"] if match == "ordered" else []
        host = Host(group.place, words)
        group.place.hosts.append(host)
        host.start()
        peer = host.caller(None)
        group.save(f"replay/{match}-tools", peer.exchange("GET", "/tools"))
        for name, tool, sent in (
            ("read", "read_file", {"path": "notes.txt"}),
            ("read-again", "read_file", {"path": "notes.txt"}),
            ("denied", "read_file", {"path": "secret.txt"}),
            ("other", "read_file", {"path": "other.txt"}),
            ("unknown", "no_such_tool", {"a": 1}),
        ):
            group.save(f"replay/{match}-{name}", call(peer, tool, sent))
        group.save(f"replay/{match}-end", host.ended())
    piped = PipedHost(group.place, ["journal", "replay", cassette, "--stdio", "a2e"])
    piped.send({"type": "handshake/req", "id": "h", "agent_caps": ["tools"]})
    piped.send({"type": "tool/call/req", "id": "c", "tool_name": "read_file", "arguments": {"path": "notes.txt"}})
    piped.until(lambda one: one.get("req_id") == "c")
    group.save("replay/stdio", {"messages": piped.messages, "end": piped.close()})


AGENT = """\
import json, os, urllib.request
def call(tool, **arguments):
    headers = {"Authorization": "Bearer " + os.environ["TOOLPOST_TOKEN"], "Content-Type": "application/json"}
    url = os.environ["TOOLPOST_URL"] + "/tools/" + tool + "/call"
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(arguments).encode(), headers)))
print(call("read_file", path="notes.txt")["outcome"], call("echo", message="hello")["outcome"])
raise SystemExit(7)
"""


def _recorded_agent(group):
    """`capture` with an agent that makes two calls, and the cassette it leaves."""
    agent, cassette = group.place.write("../agent.py", AGENT), group.place.folder / "captured.json"
    words = ["capture", "-o", str(cassette), *group.place.words, "--", sys.executable, str(agent)]
    group.run("capture/run", *words)
    group.save("capture/cassette", json.loads(cassette.read_text()))


def _damage(group):
    """What `verify` says of a journal whose rows were changed behind its back."""
    folder = group.place.folder / "damaged"
    shutil.copytree(group.place.data_dir, folder, ignore=shutil.ignore_patterns("socket", "*lock"))
    database = sqlite3.connect(folder / "journal.db")
    for trigger in ("record_is_not_changed", "record_is_not_deleted"):
        database.execute(f"DROP TRIGGER {trigger}")
    database.execute("UPDATE record SET body = replace(body, 'notes', 'other') WHERE seq = 5")
    database.execute("DELETE FROM record WHERE seq = 7")
    database.commit()
    database.close()
    group.run("damaged/verify", "journal", "verify", "--journal", str(folder))
    group.run("damaged/verify-json", "journal", "verify", "--json", "--journal", str(folder))
