"""A2A 0.3 and 1.0 over JSON-RPC, and 1.0 over REST: cards, messages, streams, questions, tasks."""

import json
import re

import journal_captures
import stage
from calls import answer
from peer import EventStream

EXTENSION = "https://mentionable.dev/ns/a2a-tool-events/v0.1"
METHODS = {
    "0.3": {"send": "message/send", "stream": "message/stream", "get": "tasks/get", "cancel": "tasks/cancel",
            "follow": "tasks/resubscribe", "card": "agent/getAuthenticatedExtendedCard"},
    "1.0": {"send": "SendMessage", "stream": "SendStreamingMessage", "get": "GetTask", "cancel": "CancelTask",
            "follow": "SubscribeToTask", "card": "GetExtendedAgentCard"},
}  # fmt: skip
SEVERAL = [("read_file", {"path": "notes.txt"}), ("read_file", {"path": "missing.txt"})]
MESSAGES = [
    ("read", [("read_file", {"path": "notes.txt"})]),
    ("failed", [("read_file", {"path": "missing.txt"})]),
    ("denied", [("read_file", {"path": "secret.txt"})]),
    ("invalid", [("count_words", {"path": 7})]),
    ("unknown", [("no_such_tool", {})]),
    ("preview", [("demo__read_preview", {"path": "large.txt"})]),
    ("server", [("demo__add", {"a": 1.0, "b": 2.0})]),
    ("module", [("read_note", {"file_path": "notes.txt"})]),
    ("secret", [("echo", {"message": stage.SECRET})]),
]


class Dialect:
    """A version of the protocol at `/a2a`."""

    def __init__(self, version, peer):
        self.version, self.peer = version, peer
        self.headers = {"A2A-Version": version}
        self.is_older = version == "0.3"

    def part(self, data):
        return {"kind": "data", "data": data} if self.is_older else {"data": data}

    def message(self, name, calls, **fields):
        parts = [
            self.part({"type": "tool-call", "toolCallId": f"{name}-{number}", "toolName": tool, "input": sent})
            for number, (tool, sent) in enumerate(calls, 1)
        ]
        return self.of_parts(name, parts, **fields)

    def text(self, name, text, **fields):
        part = {"kind": "text", "text": text} if self.is_older else {"text": text}
        return self.of_parts(name, [part], **fields)

    def of_parts(self, name, parts, **fields):
        role = {"kind": "message", "role": "user"} if self.is_older else {"role": "ROLE_USER"}
        return role | {"messageId": f"m-{name}", "contextId": f"capture-{self.version}", "parts": parts} | fields

    def request(self, method, params):
        return {"jsonrpc": "2.0", "id": 1, "method": METHODS[self.version].get(method, method), "params": params}

    def ask(self, method, params, headers=None):
        return self.peer.exchange("POST", "/a2a", self.request(method, params), self.headers | (headers or {}))

    def open_stream(self, message):
        request = self.request("stream", {"message": message})
        return EventStream(*self.peer.open("POST", "/a2a", request, self.headers))


def capture(group):
    stage.prepare(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    group.save("card-stranger", host.caller(None).exchange("GET", "/.well-known/agent-card.json"))
    group.save("card-agent", host.agent.exchange("GET", "/.well-known/agent-card.json"))
    for version in METHODS:
        _dialect(group, host, Dialect(version, host.agent))
    _rest(group, host)
    _refusals(group, host)
    host.stop()
    journal_captures.save_record(group, "record")
    # Calls of one message run side by side and end in any order, so their records are no part of the capture above.
    host = stage.serve(group.place)
    for version in METHODS:
        dialect = Dialect(version, host.agent)
        sent = {"message": dialect.message("several", SEVERAL)}
        group.save(f"{version}/send-several", _ordered(dialect.ask("send", sent)))
    host.stop()


def _dialect(group, host, dialect):
    folder = dialect.version
    group.save(f"{folder}/card", dialect.ask("card", {}))
    for name, calls in MESSAGES:
        group.save(f"{folder}/send-{name}", dialect.ask("send", {"message": dialect.message(name, calls)}))
        streamed = dialect.ask("stream", {"message": dialect.message(f"{name}-s", calls)})
        group.save(f"{folder}/stream-{name}", streamed)
    first = dialect.message("read", MESSAGES[0][1])
    task = _task(dialect.ask("send", {"message": first}))
    group.save(f"{folder}/repeat", task)
    other = dialect.message("read", MESSAGES[2][1])
    group.save(f"{folder}/repeat-other", dialect.ask("send", {"message": other}))
    group.save(f"{folder}/text", dialect.ask("send", {"message": dialect.text("text", "hello?")}))
    group.save(f"{folder}/extension", dialect.ask("send", {"message": first}, {"A2A-Extensions": EXTENSION}))
    group.save(f"{folder}/get", dialect.ask("get", {"id": task["id"]}))
    group.save(f"{folder}/get-no-history", dialect.ask("get", {"id": task["id"], "historyLength": 0}))
    group.save(f"{folder}/get-unknown", dialect.ask("get", {"id": "none"}))
    group.save(f"{folder}/cancel-ended", dialect.ask("cancel", {"id": task["id"]}))
    group.save(f"{folder}/follow-ended", dialect.ask("follow", {"id": task["id"]}))
    more = dialect.text("more", "more", taskId=task["id"])
    group.save(f"{folder}/message-to-ended", dialect.ask("send", {"message": more}))
    _cancel(group, dialect)
    _questions(group, host, dialect)


def _task(exchange):
    result = exchange["body"]["result"]
    return result.get("task", result)


def _ordered(exchange):
    """Sorts by call what calls of one message leave behind in the order of their ends."""
    task = _task(exchange)
    for member in ("artifacts", "history"):
        task[member].sort(key=_place_in_task)
        for one in task[member]:
            if "messageId" in one:
                one["messageId"] = re.sub(r"-\d+$", "-<number>", one["messageId"])
    return exchange


def _place_in_task(one):
    data = next((part["data"] for part in one.get("parts", []) if isinstance(part.get("data"), dict)), {})
    return (one.get("role", "") not in ("user", "ROLE_USER"), data.get("toolCallId") or one.get("artifactId", ""))


def _cancel(group, dialect):
    message = dialect.message("nap", [("shell", {"command": "sleep 600"})])
    stream = dialect.open_stream(message)
    stream.until(lambda frame: "startedAt" in str(frame.get("data")))
    result = stream.frames[0]["data"]["result"]
    task = result.get("task", result)["id"]
    canceled = dialect.ask("cancel", {"id": task})
    stream.until(lambda _: False)
    stream.close()
    group.save(f"{dialect.version}/cancel", {"stream": stream.frames, "cancel": canceled})


def _questions(group, host, dialect):
    for name, verdict in {
        "allowed": {"decision": "allow"},
        "denied": {"decision": "deny", "feedback": "not today"},
        "edited": {"decision": "allow", "arguments": {"path": "q.txt", "content": "person", "create_directories": True}},
    }.items():
        sent = [("write_file", {"path": "q.txt", "content": f"{name} {dialect.version}"})]
        asked = dialect.ask("send", {"message": dialect.message(f"q-{name}", sent)})
        task = _task(asked)
        reply = dialect.text(f"r-{name}", "yes", taskId=task["id"])
        refused = dialect.ask("send", {"message": reply})
        request = dialect.request("follow", {"id": task["id"]})
        stream = EventStream(*dialect.peer.open("POST", "/a2a", request, dialect.headers))
        stream.until(lambda _: True)
        answered = answer(host.operator, task["status"]["message"]["metadata"]["approvalId"], verdict)
        stream.until(lambda _: False)
        stream.close()
        end = dialect.ask("get", {"id": task["id"]})
        told = {"asked": asked, "agent": refused, "answer": answered, "stream": stream.frames, "end": end}
        group.save(f"{dialect.version}/question-{name}", _settled(told))


def _settled(told):
    """Takes out whether the moment between an answer and the end of the call was told.

    A short call may end before the update that says `working` is sent. The update has no text and takes a number.
    """
    told["stream"] = [frame for frame in told["stream"] if not _is_bare_update(frame)]
    number = r'("messageId": "[0-9a-f-]{36})-\d+"'
    return json.loads(re.sub(number, r'\1-<number>"', json.dumps(told)))


def _is_bare_update(frame):
    result = frame["data"]["result"]
    status = result.get("statusUpdate", result).get("status", {})
    return status.get("state") in ("working", "TASK_STATE_WORKING") and "message" not in status


def _rest(group, host):
    agent = host.agent
    dialect = Dialect("1.0", agent)
    message = dialect.message("rest", MESSAGES[0][1])
    sent = agent.exchange("POST", "/a2a/message:send", {"message": message})
    group.save("rest/send", sent)
    streamed = dialect.message("rest-s", MESSAGES[0][1])
    group.save("rest/stream", agent.exchange("POST", "/a2a/message:stream", {"message": streamed}))
    task = sent["body"]["task"]["id"]
    for name, path in {
        "get": f"/a2a/tasks/{task}",
        "get-unknown": "/a2a/tasks/none",
        "list": "/a2a/tasks?contextId=capture-1.0&pageSize=3&historyLength=1&includeArtifacts=true",
        "list-failed": "/a2a/tasks?status=TASK_STATE_FAILED&pageSize=2",
        "list-bad": "/a2a/tasks?pageSize=0",
        "card": "/a2a/extendedAgentCard",
    }.items():
        group.save(f"rest/{name}", agent.exchange("GET", path))
    group.save("rest/cancel-ended", agent.exchange("POST", f"/a2a/tasks/{task}:cancel"))
    group.save("rest/subscribe-ended", agent.exchange("GET", f"/a2a/tasks/{task}:subscribe"))


def _refusals(group, host):
    agent = host.agent
    message = Dialect("1.0", agent).message("x", MESSAGES[0][1])
    for name, body, headers in (
        ("version", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}, {"A2A-Version": "2.0"}),
        ("method", {"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {}}, {"A2A-Version": "0.3"}),
        ("no-message", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}, None),
        ("no-role", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
            "message": {key: one for key, one in message.items() if key != "role"}}}, None),
        ("batch", [{"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}], None),
        ("not-json", "{", {"Content-Type": "application/json"}),
        ("push", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
            "message": message, "configuration": {"taskPushNotificationConfig": {"url": "http://127.0.0.1/"}}}}, None),
    ):  # fmt: skip
        group.save(f"refusals/{name}", agent.exchange("POST", "/a2a", body, headers))
    stranger = host.caller(None)
    group.save("refusals/no-token", stranger.exchange("POST", "/a2a", {"jsonrpc": "2.0", "id": 1, "method": "x"}))
