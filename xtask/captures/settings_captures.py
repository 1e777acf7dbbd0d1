"""Hosts with other settings: questions that expire, limits that are met, servers that fail or change, an audit file."""

import json
import shutil
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import a2e_captures
import journal_captures
import stage
from calls import call, ended, invocation_of, wait_for_stage
from peer import poll

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf50"
    "0f0003860180c5a0a2730000000049454e44ae426082"
)
SERVER = "mcp:\n  approval_wait: 1s\n  servers:\n    demo: { command: python3, args: [./mcp_server.py] }\n"
TOKENS = stage.CONFIG[stage.CONFIG.index("tokens:") : stage.CONFIG.index("include:")]
SHORT_QUESTIONS = "approvals: { timeout: 2s }\n" + TOKENS
NARROW = f"""\
rules:
  - allow shell(seq *)
  - allow shell(sleep *)
  - allow demo.*
  - allow http_request
  - allow fetch_page
approvals: {{ waiting: 4 }}
http: {{ body_limit: 16KiB, patience: 200ms }}
limits:
  inline_chars: 2000
  artifact: 20KiB
  argument_bytes: 2KiB
  deadline: 5m
  queue: 4
# Without any hook it depends on the clock whether a short call over A2E has a record before its end.
hooks:
  - {{ name: quiet, event: before, tools: apply_patch, command: [sh, ./quiet.sh] }}
tools:
  shell: {{ ceiling: 3s }}
a2e: {{ host_id: capture-host, audit: {{ path: ./audit/audit.jsonl }} }}
a2a: {{ enabled: false }}
sources:
  demo: {{ profile: mcp-fetch, concurrency: 1 }}
{SERVER}    absent: {{ command: ./no-such-program }}
{TOKENS}"""
FORGETFUL = "limits: { session_idle: 1s }\n"


class Site:
    """A web server on loopback with one page of each kind."""

    PAGES = {
        "/json": (200, "application/json", b'{"a":1,"b":[true,null]}'),
        "/text": (200, "text/plain; charset=utf-8", b"a text\n"),
        "/bytes": (200, "application/octet-stream", bytes(range(256))),
        "/empty": (204, None, b""),
        "/page": (200, "text/html", b"<html><title>Page</title><main><h1>Head</h1><p>Words.</p></main></html>"),
    }

    def __init__(self):
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self):
        pages = self.PAGES

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                status, media, body = pages.get(self.path, (404, "text/plain", b"no such page"))
                self.send_response_only(status)
                if media:
                    self.send_header("Content-Type", media)
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def capture(group):
    shutil.copy(stage.FIXTURES / "mcp_server.py", group.place.folder / "mcp_server.py")
    group.place.write("notes.txt", "one two three\n")
    group.place.write("../quiet.sh", "true\n")
    _expired(group)
    _narrow(group)
    _changed_server(group)
    _modes(group)
    _shutdown(group)
    journal_captures.save_record(group, "record")
    _pruned(group)


def _expired(group):
    """Questions that nobody answers: of a call that waits, and over a kill of the host."""
    group.place.configure(SHORT_QUESTIONS)
    host = group.place.serve()
    group.keep_token()
    stream = host.operator.follow("/approvals")
    begun = call(host.agent, "write_file?background=true", {"path": "e.txt", "content": "e"}, "expires")
    group.save("expired/end", ended(host.agent, invocation_of(begun)))
    stream.until(lambda frame: frame.get("event") == "withdrawn")
    stream.close()
    group.save("expired/stream", stream.frames)
    late = host.operator.exchange("POST", f"/approvals/{invocation_of(begun)}", {"decision": "allow"})
    group.save("expired/late-answer", late)
    key = {"Idempotency-Key": "dies"}
    begun = call(host.agent, "write_file?background=true", {"path": "d.txt", "content": "d"}, "dies", key)
    wait_for_stage(host.agent, invocation_of(begun), "await_approval")
    host.settle()
    host.kill()
    time.sleep(2.1)
    host = group.place.serve()
    group.save("expired/after-a-kill", ended(host.agent, invocation_of(begun)))
    host.stop()


def _narrow(group):
    """Limits that calls meet, kinds of content, a profile, and a server that cannot be started."""
    site = Site()
    group.place.configure(NARROW + f"network: {{ private: ['{site.url}/'] }}\n")
    host = group.place.serve()
    agent, operator = host.agent, host.operator
    states = lambda: {one["name"]: one["state"] for one in operator.json("GET", "/sources")["sources"]}
    poll(lambda: states()["demo"] == "ready" and states()["absent"] not in ("idle", "starting"), "the servers were tried")
    _content(group, agent, site.url)
    for name, tool, sent in (
        ("arguments-too-large", "echo", {"message": "x" * 3000}),
        ("body-too-large", "echo", {"message": "x" * 20000}),
        ("result-too-large-to-keep", "demo__read_preview", {"path": "large.txt"}),
        ("result-too-large-to-show", "demo__read_preview", {"path": "long.txt"}),
        ("ceiling", "shell?timeout=30", {"command": "sleep 60"}),
    ):
        exchange = call(agent, tool, sent, name)
        exchange["request"].pop("body")
        group.save(f"narrow/{name}", exchange)
    group.save("narrow/explain-ceiling", agent.exchange("POST", "/tools/shell/explain?timeout=30", {"command": "sleep 60"}))
    group.save("narrow/profile-tool", operator.exchange("GET", "/tools/demo.fetch"))
    group.save("narrow/profile-explain", agent.exchange("POST", "/tools/demo.fetch/explain", {"url": "http://127.0.0.1/"}))
    group.save("narrow/health", operator.exchange("GET", "/health"))
    group.save("narrow/a2a-off", agent.exchange("GET", "/.well-known/agent-card.json"))
    group.run_configured("narrow/doctor", "doctor")
    group.run_configured("narrow/tools", "tools")
    _full(group, host)
    _audit(group, host)
    host.stop()
    site.close()
    # Times differ, and so do the sizes that count their digits: the audit file is read as lines of JSON.
    lines = (group.place.folder / "audit" / "audit.jsonl").read_text().splitlines()
    group.save("narrow/audit-file", [json.loads(line) for line in lines])


def _content(group, agent, site):
    group.place.write("picture.png", "").write_bytes(PICTURE)
    group.place.write("bytes.bin", "").write_bytes(bytes(range(256)) * 8)
    group.place.write("empty.txt", "")
    for name, count in (("large.txt", 3000), ("long.txt", 300)):
        group.place.write(name, "".join(f"line {number}\n" for number in range(count)))
    for name in ("picture.png", "bytes.bin", "empty.txt"):
        group.save(f"content/{name}", call(agent, "read_file", {"path": name}, name))
    for kind in ("image", "resource", "json", "several", "nothing"):
        group.save(f"content/server-{kind}", call(agent, "demo__give", {"kind": kind}, kind))
    group.save("content/server-refuses", call(agent, "demo__refuse", {}, "refuse"))
    group.save("content/server-dies", call(agent, "demo__die", {}, "die"))
    group.save("content/server-after-death", call(agent, "demo__add", {"a": 1, "b": 2}, "after-death"))
    for path in ("json", "text", "bytes", "empty", "missing"):
        group.save(f"content/http-{path}", call(agent, "http_request", {"url": f"{site}/{path}"}, path))
    group.save("content/page", call(agent, "fetch_page", {"url": f"{site}/page"}, "page"))
    group.save("content/network-denied", call(agent, "http_request", {"url": "http://127.0.0.1:9/"}, "private"))


def _full(group, host):
    """One call that runs, one that waits behind it, one that finds no room, and one that cannot wait."""
    tenant = host.caller(stage.TENANT_TOKEN)
    begun = call(tenant, "demo__nap?background=true", {"seconds": 600}, "runs")
    wait_for_stage(tenant, invocation_of(begun), "execute")
    impatient = call(tenant, "demo__nap?patience=0.1", {"seconds": 600}, "impatient")
    queued = call(tenant, "demo__nap?background=true", {"seconds": 600}, "queued")
    wait_for_stage(tenant, invocation_of(queued), "admit")
    second = call(tenant, "demo__nap?background=true", {"seconds": 600}, "queued-too")
    wait_for_stage(tenant, invocation_of(second), "admit")
    refused = call(tenant, "demo__nap", {"seconds": 600}, "refused")
    told = tenant.exchange("GET", f"/invocations/{invocation_of(queued)}")
    explained = tenant.exchange("POST", "/tools/demo__nap/explain", {"seconds": 600})
    health = host.operator.exchange("GET", "/health")
    ends = []
    for one in (second, queued, begun):
        tenant.exchange("POST", f"/invocations/{invocation_of(one)}/cancel")
        ends.append(ended(tenant, invocation_of(one)))
    group.save("narrow/full", {"impatient": impatient, "refused": refused, "told": told, "explained": explained})
    group.save("narrow/full-health", health)
    group.save("narrow/full-ends", ends)
    questions = []
    for one in "ab":
        questions.append(call(tenant, "write_file?background=true", {"path": f"{one}.txt", "content": ""}, f"q{one}"))
        # One after another, so that their records do not change places.
        wait_for_stage(tenant, invocation_of(questions[-1]), "await_approval")
    group.save("narrow/too-many-questions", call(tenant, "write_file", {"path": "c.txt", "content": ""}, "qc"))
    for one in questions:
        host.operator.exchange("POST", f"/approvals/{invocation_of(one)}", {"decision": "deny"})
        ended(tenant, invocation_of(one))


def _audit(group, host):
    link = a2e_captures.HttpLink(host.caller(None))
    group.save("narrow/a2e-handshake", a2e_captures.ask(link, a2e_captures.handshake(host.agent.token)))
    a2e_captures.ask(link, {"type": "tool/list/req", "id": "l1", "query": "echo"})
    for name, tool, sent in (("a1", "echo", {"message": "x"}), ("a2", "read_file", {"path": "none"}), ("a3", "none", {})):
        message = {"type": "tool/call/req", "id": name, "tool_name": tool, "arguments": sent, "timeout": 30}
        a2e_captures.ask(link, message)
    link.send({"type": "shutdown", "id": "s1", "timeout": 1})
    link.close()


def _changed_server(group):
    """A server whose definitions changed is kept back until somebody accepts them."""
    group.place.configure("rules: [allow demo.*]\n" + SERVER)
    program = group.place.folder / "mcp_server.py"
    program.write_text(program.read_text().replace('f"The tool {name}."', 'f"Another tool {name}."'))
    host = group.place.serve()
    group.save("changed/found-by-call", call(host.agent, "demo__add", {"a": 1, "b": 2}, "finds"))
    poll(lambda: host.operator.json("GET", "/health")["sources"]["quarantined"], "the definitions are kept back")
    group.save("changed/sources", host.operator.exchange("GET", "/sources"))
    group.save("changed/call", call(host.agent, "demo__add", {"a": 1, "b": 2}, "kept-back"))
    group.run_configured("changed/show", "tools", "accept", "--show")
    group.run_configured("changed/show-json", "tools", "accept", "--json", "--show")
    group.run_configured("changed/accept-one", "tools", "accept", "demo.add", "--yes")
    group.run_configured("changed/accept-all", "tools", "accept", "--all", "--yes")
    group.save("changed/call-after", call(host.agent, "demo__add", {"a": 1, "b": 2}, "accepted"))
    host.stop()


def _modes(group):
    """What the modes make of the same calls."""
    group.place.configure("rules: []\n")
    for mode in ("plan", "default", "edits", "sandboxed", "never-ask", "bypass"):
        for name, words in {
            "write": ["write_file", f"path={mode}.txt", "content=x"],
            "execute": ["shell", "command=touch made.txt"],
            "network": ["http_request", "url=http://127.0.0.1:9/"],
        }.items():
            group.run_configured(f"modes/{mode}-{name}", "explain", *words, "--mode", mode, "--json")
        group.run_configured(f"modes/{mode}-call", "call", "write_file", f"path={mode}.txt", "content=x", "--mode", mode, "--no-prompt")


def _shutdown(group):
    """A call that runs while its host is told to stop, twice."""
    group.place.configure("rules: [allow shell]\n")
    host = group.place.serve()
    begun = call(host.agent, "shell?background=true", {"command": "touch made; sleep 600"}, "shut", {"Idempotency-Key": "shut"})
    wait_for_stage(host.agent, invocation_of(begun), "execute")
    host.process.send_signal(signal.SIGTERM)
    poll(lambda: host.operator.json("GET", "/health")["status"] == "shutting_down", "it shuts down")
    refused = call(host.agent, "echo", {"message": "x"}, "late")
    host.process.send_signal(signal.SIGTERM)
    code = host.process.wait(30)
    host.kill()  # it has ended; this reads the rest of what it printed
    group.save("shutdown/refused", refused)
    group.save("shutdown/log", f"exit code {code}\n{host.log()}")
    host = group.place.serve()
    group.save("shutdown/end", ended(host.agent, invocation_of(begun)))
    host.stop()


def _pruned(group):
    """The oldest records and kept results are removed."""
    group.place.configure(FORGETFUL)
    time.sleep(1.2)
    group.run_configured("pruned/dry-run", "journal", "prune", "--before", "1s", "--dry-run")
    group.run_configured("pruned/prune", "journal", "prune", "--before", "1s", "--json")
    group.run_configured("pruned/artifacts", "artifacts", "prune", "--before", "1s")
    group.run_configured("pruned/artifacts-again", "artifacts", "prune", "--json")
    group.run_configured("pruned/tail", "journal", "tail")
    journal_captures.save_record(group, "pruned/record")
