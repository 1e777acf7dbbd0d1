"""Plain HTTP: every route, refusals, event streams of a call and of a session, the AI SDK's streams, repeats."""

import journal_captures
import stage
from calls import answer, call, ended, invocation_of, wait_for_stage

FORMATS = ("toolpost", "openai", "anthropic", "gemini", "mcp", "a2e")
STREAM = {"Accept": "text/event-stream"}
READ = {"path": "notes.txt"}


def capture(group):
    stage.prepare(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    _routes(group, host)
    _refusals(group, host)
    _calls(group, host)
    _repeats(group, host)
    _session_streams(group, host)
    _beside_a_host(group, host)
    _watched(group, host)
    group.save("refused-requests", host.operator.exchange("GET", "/host")["body"].get("refused_requests"))
    group.save("stopped", f"exit code {host.stop()}\n{host.log()}")
    journal_captures.save_record(group, "record")


def _routes(group, host):
    agent, operator = host.agent, host.operator
    for name, path in {
        "health": "/health",
        "host": "/host",
        "tool": "/tools/read_file",
        "tool-by-id": "/tools/files.read_file",
        "tool-of-server": "/tools/demo__add",
        "tool-unknown": "/tools/none",
        "openapi": "/openapi.json",
        "approvals": "/approvals",
        "rules": "/rules",
        "sources": "/sources",
        "live-page": "/live",
        "card": "/.well-known/agent-card.json",
        "tools-hidden": "/tools?hidden=true&query=zzz",
        "tools-query": "/tools?query=read%20file&limit=3",
        "tools-filtered": "/tools?kind=file&tags=read",
        "tools-bad-query": "/tools?colour=red",
        "tools-bad-format": "/tools?format=xml",
        "no-route": "/nothing",
    }.items():
        group.save(f"routes/{name}-operator", operator.exchange("GET", path))
        group.save(f"routes/{name}-agent", agent.exchange("GET", path))
    for form in FORMATS:
        group.save(f"routes/tools-{form}", agent.exchange("GET", f"/tools?format={form}"))
    for name, tool, arguments in (
        ("read", "read_file", READ),
        ("write", "write_file", {"path": "x", "content": "y"}),
        ("denied", "read_file", {"path": "secret.txt"}),
        ("server", "demo__add", {"a": 1}),
        ("invalid", "read_file", {}),
        ("unknown", "none", {}),
    ):
        group.save(f"explain/{name}", agent.exchange("POST", f"/tools/{tool}/explain", arguments))


def _refusals(group, host):
    agent, stranger = host.agent, host.caller(None)
    tool = "/tools/echo/call"
    body = {"message": "x"}
    for name, peer, method, path, sent, headers in (
        ("no-token", stranger, "GET", "/tools", None, None),
        ("wrong-token", host.caller("wrong"), "GET", "/tools", None, None),
        ("health-without-token", stranger, "GET", "/health", None, None),
        ("foreign-host", agent, "GET", "/tools", None, {"Host": "evil.example"}),
        ("foreign-origin", agent, "GET", "/tools", None, {"Origin": "http://evil.example"}),
        ("method", agent, "PUT", "/tools", None, None),
        ("not-json", agent, "POST", tool, "message=x", {"Content-Type": "text/plain"}),
        ("broken-json", agent, "POST", tool, "{", {"Content-Type": "application/json"}),
        ("not-an-object", agent, "POST", tool, [1], None),
        ("twice-a-key", agent, "POST", tool, '{"message":"a","message":"b"}', {"Content-Type": "application/json"}),
        ("bad-timeout", agent, "POST", tool + "?timeout=soon", body, None),
        ("bad-patience", agent, "POST", tool + "?patience=-1", body, None),
        ("bad-batch", agent, "POST", tool + "?batch=1", body, None),
        ("bad-key", agent, "POST", tool, body, {"Idempotency-Key": ""}),
        ("bad-call-id", agent, "POST", tool, body, {"Toolpost-Call-Id": "a b"}),
        ("unknown-session", agent, "POST", tool, body, {"Toolpost-Session": "none"}),
        ("bad-invocation", agent, "GET", "/invocations/none", None, None),
        ("unknown-invocation", agent, "GET", "/invocations/01a1e2c0-1117-7159-9d5f-d91434b86c3e", None, None),
        ("bad-wait", agent, "GET", "/invocations/01a1e2c0-1117-7159-9d5f-d91434b86c3e?wait=x", None, None),
        ("bad-surface", agent, "POST", "/sessions", {"scope": "odd"}, None),
        ("unknown-approval", host.operator, "POST", "/approvals/01a1e2c0-1117-7159-9d5f-d91434b86c3e",
         {"decision": "allow"}, None),
        ("bad-verdict", host.operator, "POST", "/approvals/01a1e2c0-1117-7159-9d5f-d91434b86c3e",
         {"decision": "maybe"}, None),
        ("agent-decides", agent, "POST", "/approvals/x", {"decision": "allow"}, None),
        ("unknown-rule", host.operator, "DELETE", "/rules/none", None, None),
        ("unknown-source", host.operator, "POST", "/sources/none/accept", None, None),
        ("default-session", agent, "DELETE", "/sessions/default:agent:agent", None, None),
    ):  # fmt: skip
        group.save(f"refusals/{name}", peer.exchange(method, path, sent, headers))


def _calls(group, host):
    agent = host.agent
    group.save("calls/read", call(agent, "read_file", READ))
    group.save("calls/by-id", call(agent, "files.read_file", READ))
    group.save("calls/no-body", agent.exchange("POST", "/tools/list_directory/call"))
    for name, tool, arguments in (
        ("read", "read_file", READ),
        ("shell", "shell", {"command": "sleep 0; echo said"}),
        ("failed", "read_file", {"path": "missing.txt"}),
        ("denied", "read_file", {"path": "secret.txt"}),
        ("module", "read_note", {"file_path": "notes.txt"}),
        ("progress", "echo", {"message": "x"}),
    ):
        group.save(f"calls/stream-{name}", call(agent, tool, arguments, headers=STREAM))
    begun = call(agent, "shell?background=true", {"command": "sleep 0.2; echo late"})
    group.save("calls/background", {"begun": begun, "end": ended(agent, invocation_of(begun))})
    begun = call(agent, "shell?background=true", {"command": "sleep 30"})
    wait_for_stage(agent, invocation_of(begun), "execute")
    told = agent.exchange("GET", f"/invocations/{invocation_of(begun)}?wait=0")
    tool_told = call(agent, "call_result", {"invocation_id": invocation_of(begun)})
    canceled = call(agent, "call_cancel", {"invocation_id": invocation_of(begun)})
    end = ended(agent, invocation_of(begun))
    group.save("calls/in-the-middle", {"told": told, "tool": tool_told, "cancel": canceled, "end": end})


def _repeats(group, host):
    agent = host.agent
    key = {"Idempotency-Key": "k1"}
    first = call(agent, "echo", {"message": "one"}, headers=key)
    again = call(agent, "echo", {"message": "one"}, headers=key)
    group.save("repeats/same", {"first": first, "again": again, "equal": first["body"] == again["body"]})
    group.save("repeats/other-call", call(agent, "echo", {"message": "two"}, headers=key))
    denied = {"Idempotency-Key": "k2"}
    group.save("repeats/denied", call(agent, "read_file", {"path": "secret.txt"}, headers=denied))
    group.save("repeats/denied-again", call(agent, "read_file", {"path": "secret.txt"}, headers=denied))
    group.save("repeats/stream", call(agent, "echo", {"message": "one"}, headers=key | STREAM))


def _session_streams(group, host):
    """One session followed in every vocabulary at once; each call is read to its end before the next one begins."""
    agent, operator = host.agent, host.operator
    opened = agent.exchange("POST", "/sessions", {"task": "review", "model_capabilities": ["vision"]})
    session = opened["body"]["session_id"]
    group.save("sessions/opened", opened)
    group.save("sessions/told", agent.exchange("GET", f"/sessions/{session}"))
    group.save("sessions/tools-of-session", operator.exchange("GET", "/tools", None, {"Toolpost-Session": session}))
    header = {"Toolpost-Session": session}
    vocabularies = {"tool-events": "", "ai-sdk-5": "?vocabulary=ai-sdk"}
    vocabularies |= {f"ai-sdk-{version}": f"?vocabulary=ai-sdk&version={version}" for version in (6, 7)}
    streams = {name: agent.follow(f"/sessions/{session}/events{query}") for name, query in vocabularies.items()}
    streams["all-sessions"] = operator.follow("/events")
    for tool, arguments in (
        ("read_file", READ),
        ("read_file", {"path": "missing.txt"}),
        ("read_file", {"path": "secret.txt"}),
        ("no_such_tool", {}),
        ("read_note", {"file_path": "notes.txt"}),
        ("demo__read_preview", {"path": "large.txt"}),
    ):
        call(agent, tool, arguments, headers=header)
        _read_ends(streams)
    for content, verdict in (("a", {"decision": "allow"}), ("b", {"decision": "deny", "feedback": "no"})):
        begun = call(agent, "write_file?background=true", {"path": "s.txt", "content": content}, headers=header)
        _read_until(streams, ("asked", "tool-approval-request"), skip=("ai-sdk-5",))
        answer(operator, invocation_of(begun), verdict)
        _read_ends(streams)
        ended(agent, invocation_of(begun))
    group.save("sessions/closed", agent.exchange("DELETE", f"/sessions/{session}"))
    for name, stream in streams.items():
        if name != "all-sessions":
            stream.until(lambda frame: False)
        stream.close()
        headers = {key.lower(): value for key, value in stream.headers.items() if key.lower() != "date"}
        group.save(f"sessions/stream-{name}", {"status": stream.status, "headers": headers, "events": stream.frames})
    group.save("sessions/after-close", agent.exchange("GET", f"/sessions/{session}"))


def _read_ends(streams):
    ends = ("tool-result", "tool-error", "tool-output-available", "tool-output-error", "tool-output-denied")
    _read_until(streams, ends)


def _read_until(streams, words, skip=()):
    """Reads every stream up to a frame whose type or state is one of the words."""
    for name, stream in streams.items():
        if name not in skip:
            stream.until(lambda frame: _word_of(frame) in words)


def _word_of(frame):
    data = frame.get("data")
    return (data.get("state") or data.get("type")) if isinstance(data, dict) else None


def _beside_a_host(group, host):
    """Commands that find the running host by themselves."""
    group.save("resumed-default", _resume(host))
    for name, words in {
        "tools": ["tools", "--json", "--limit", "2"],
        "call": ["call", "read_file", "path=notes.txt"],
        "call-json": ["call", "read_file", "path=notes.txt", "--json"],
        "call-other-flags": ["call", "echo", "message=x", "--mode", "bypass"],
        "call-unknown": ["call", "none"],
        "call-pending": ["call", "write_file", "path=cli.txt", "content=x", "--no-prompt"],
        "approvals": ["approvals"],
        "explain": ["explain", "write_file", "path=x", "content=y"],
        "doctor": ["doctor"],
        "doctor-json": ["doctor", "--json"],
        "connect": ["connect", "codex"],
        "serve-twice": ["serve", "--http", "127.0.0.1:0"],
        "modules": ["modules", "list"],
    }.items():
        group.run_configured(f"beside/{name}", *words)


def _watched(group, host):
    """`watch` on a session that is closed while it is watched, as lines and as JSON."""
    session = host.agent.json("POST", "/sessions", {})["session_id"]
    for tool, arguments in (("read_file", READ), ("read_file", {"path": "missing.txt"})):
        call(host.agent, tool, arguments, headers={"Toolpost-Session": session})
    url = f"http://127.0.0.1:{host.port}/sessions/{session}/events"
    group.place.variables["TOOLPOST_TOKEN"] = host.agent.token
    words = ["watch", url, "--from", "start", "--once"]
    watchers = {name: group.place.begin(*words, *more) for name, more in (("lines", []), ("json", ["--json"]))}
    for watcher in watchers.values():
        watcher.read_until(lambda line: "missing.txt" in line and ("failed" in line or "error" in line))
    host.agent.exchange("DELETE", f"/sessions/{session}")
    for name, watcher in watchers.items():
        group.save(f"watch/{name}", watcher.ended())
    del group.place.variables["TOOLPOST_TOKEN"]


def _resume(host):
    """The default session from its start, read up to the call that was made last."""
    last = host.agent.json("POST", "/tools/echo/call", {"message": "the last one"})["invocation_id"]
    stream = host.agent.follow("/sessions/default/events?from=start")
    is_last = lambda frame: _word_of(frame) == "tool-result" and frame["data"]["toolCallId"] == last
    frames = stream.until(is_last)
    stream.close()
    return frames
