"""A2E over HTTP with its event stream, and over pipes: the same conversation on both."""

import journal_captures
import stage
from calls import answer, wait_for_stage
from peer import EventStream
from pipes import PipedHost

CALLS = [
    ("read", "read_file", {"path": "notes.txt"}, {}),
    ("by-id", "files.read_file", {"path": "notes.txt"}, {}),
    ("failed", "read_file", {"path": "missing.txt"}, {}),
    ("denied", "read_file", {"path": "secret.txt"}, {}),
    ("invalid", "read_file", {"path": 7}, {}),
    ("unknown", "no_such_tool", {}, {}),
    ("deferred", "file_info", {"path": "notes.txt"}, {}),
    ("preview", "demo__read_preview", {"path": "large.txt"}, {}),
    ("ref-only", "demo__read_ref", {"path": "large.txt"}, {}),
    ("redacted", "demo__read_redact", {"path": "large.txt"}, {}),
    ("dropped", "demo__read_drop", {"path": "large.txt"}, {}),
    ("empty", "list_directory", {"path": "hollow"}, {}),
    ("hook-withholds", "echo", {"message": "keep this"}, {}),
    ("hook-denies", "echo", {"message": "vote no"}, {}),
    ("secret", "echo", {"message": stage.SECRET}, {}),
    ("server", "demo__add", {"a": 1, "b": 2}, {}),
    ("module", "read_note", {"file_path": "notes.txt"}, {}),
    ("command", "count_words", {"path": "notes.txt"}, {"correlation_id": "mark"}),
    ("collected", "shell", {"command": "sleep 0; echo said"}, {"collect_events": True}),
    ("timed-out", "shell", {"command": "sleep 600"}, {"timeout": 0.7}),
    ("pending", "write_file", {"path": "p.txt", "content": "x"}, {"timeout": 0.3}),
]
BROKEN = {
    "no-type": {"id": "e1"},
    "unknown-type": {"type": "tool/dance", "id": "e2"},
    "no-arguments": {"type": "tool/call/req", "id": "e3", "tool_name": "echo"},
    "no-tool": {"type": "tool/call/req", "id": "e4", "arguments": {}},
    "bad-timeout": {"type": "tool/call/req", "id": "e5", "tool_name": "echo", "arguments": {}, "timeout": -1},
}


def handshake(token="", **fields):
    return {"type": "handshake/req", "id": "h1", "agent_id": "capture", "agent_caps": ["tools"], "auth_token": token} | fields


class HttpLink:
    """A session over HTTP."""

    def __init__(self, peer, headers=None):
        self.peer = peer
        self.id = peer.json("POST", "/session")["session_id"]
        self._header = {"X-Session-Id": self.id}
        self._stream = EventStream(*peer.open("GET", "/stream", None, self._header | (headers or {})))

    def send(self, message):
        return self.peer.exchange("POST", "/send", message, self._header)

    def until(self, condition):
        before = len(self._stream.frames)
        self._stream.until(lambda frame: isinstance(frame.get("data"), dict) and condition(frame["data"]))
        return [frame for frame in self._stream.frames[before:] if "data" in frame]

    def comments(self):
        """The comments of the stream. They come by the clock, so they are kept apart from the messages."""
        return sorted({frame["comment"] for frame in self._stream.frames if "comment" in frame})

    def close(self):
        self._stream.close()


def ask(link, message):
    """Sends a request and reads up to its answer."""
    link.send(message)
    return {"sent": message, "got": link.until(lambda one: is_answer(one, message.get("id", "")))}


def is_answer(message, request):
    return message.get("req_id", "") == request and message["type"] != "tool/event"


def capture(group):
    stage.prepare(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    token = host.agent.token
    stranger = host.caller(None)
    link = HttpLink(stranger)
    group.save("http/before-handshake", ask(link, {"type": "tool/list/req", "id": "l0"}))
    group.save("http/handshake", ask(link, handshake(token)))
    _conversation(group, "http", link)
    _question(group, "http", link, host.operator)
    link.send({"type": "shutdown", "id": "s1", "timeout": 1})
    group.save("http/comments", link.comments())
    group.save("http/refusals", _refusals(stranger))
    for name, fields in {"wrong-token": {"auth_token": "wrong"}, "wrong-version": {"version": "9.0"}}.items():
        refused = HttpLink(stranger)
        group.save(f"http/{name}", ask(refused, handshake(token) | fields))
        refused.close()
    link.close()
    words = ["--connect", f"http://127.0.0.1:{host.port}", "--token-file", str(group.place.data_dir / "token")]
    group.run("client/tools", "tools", "--json", *words)
    group.run("client/call", "call", "read_file", "path=notes.txt", "--json", *words)
    _joined(group)
    host.stop()
    piped = PipedHost(group.place, ["serve", "--stdio", "a2e", *group.place.words])
    group.save("stdio/handshake", ask(piped, handshake()))
    _conversation(group, "stdio", piped)
    group.save("stdio/end", piped.close())
    journal_captures.save_record(group, "record")


def _joined(group):
    """A process that finds a host in its folder and carries the messages of its agent there."""
    piped = PipedHost(group.place, ["serve", "--stdio", "a2e", *group.place.words])
    group.save("joined/handshake", ask(piped, handshake()))
    message = {"type": "tool/call/req", "id": "joined", "tool_name": "read_file", "arguments": {"path": "notes.txt"}}
    group.save("joined/call", ask(piped, message | {"timeout": 30}))
    group.save("joined/end", piped.close())
    other = PipedHost(group.place, ["serve", "--stdio", "a2e", "--mode", "bypass", *group.place.words])
    group.save("joined/other-settings", ask(other, handshake()))
    group.save("joined/other-settings-end", other.close())


def _conversation(group, face, link):
    group.save(f"{face}/ping", ask(link, {"type": "ping", "id": "p1"}))
    group.save(f"{face}/list", ask(link, {"type": "tool/list/req", "id": "l1"}))
    group.save(f"{face}/search", ask(link, {"type": "tool/list/req", "id": "l2", "query": "read file", "limit": 2}))
    for name, tool, arguments, fields in CALLS:
        message = {"type": "tool/call/req", "id": name, "tool_name": tool, "arguments": arguments, "streaming": True}
        group.save(f"{face}/call-{name}", ask(link, message | {"timeout": 30} | fields))
    repeat = {"type": "tool/call/req", "id": "read", "tool_name": "read_file", "arguments": {"path": "notes.txt"}}
    group.save(f"{face}/repeat", ask(link, repeat | {"streaming": True, "timeout": 30}))
    group.save(f"{face}/repeat-other", ask(link, repeat | {"arguments": {"path": "large.txt"}}))
    for name, message in BROKEN.items():
        group.save(f"{face}/broken-{name}", ask(link, message))
    group.save(f"{face}/list-deferred", ask(link, {"type": "tool/list/req", "id": "l3", "include_deferred": True}))
    running = {"type": "tool/call/req", "id": "long", "tool_name": "shell", "arguments": {"command": "sleep 600"}}
    link.send(running | {"background": True})
    begun = link.until(lambda one: is_answer(one, "long"))
    answered = begun[-1]["data"] if face == "http" else begun[-1]
    invocation = answered["data"]["invocation_id"]
    wait_for_stage(group.place.operator, invocation, "execute")
    cancel = {"type": "tool/call/req", "id": "names-an-id-stop", "tool_name": "call_cancel"}
    stopped = ask(link, cancel | {"arguments": {"invocation_id": invocation}})
    result = cancel | {"id": "names-an-id-end", "tool_name": "call_result", "arguments": {"invocation_id": invocation, "wait_seconds": 10}}
    group.save(f"{face}/background", {"begun": begun, "stop": stopped, "end": ask(link, result)})


def _question(group, face, link, operator):
    """A call that waits for a person, over one verdict each."""
    for name, verdict in {
        "allowed": {"decision": "allow"},
        "denied": {"decision": "deny", "feedback": "not today"},
        "edited": {"decision": "allow", "arguments": {"path": "q.txt", "content": "person", "create_directories": True}},
    }.items():
        call = {"type": "tool/call/req", "id": f"q-{name}", "tool_name": "write_file", "streaming": True, "timeout": 60}
        link.send(call | {"arguments": {"path": "q.txt", "content": name}})
        asked = link.until(lambda one: one["type"] == "tool/event" and one["data"].get("permission") == "pending")
        answered = answer(operator, asked[-1]["data"]["data"]["ask_id"], verdict)
        got = link.until(lambda one, request=call["id"]: is_answer(one, request))
        group.save(f"{face}/question-{name}", {"asked": asked, "answer": answered, "got": got})


def _refusals(peer):
    """Requests that no session stands behind."""
    unknown = {"X-Session-Id": "0" * 32}
    return [
        peer.exchange("POST", "/send", {"type": "ping"}),
        peer.exchange("POST", "/send", {"type": "ping"}, unknown),
        peer.exchange("GET", "/stream", None, unknown),
    ]
