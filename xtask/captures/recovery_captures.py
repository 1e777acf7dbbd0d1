"""A host that is killed while calls run and wait, and the next host on the same data directory."""

import a2e_captures
import journal_captures
import record
import stage
from a2a_captures import Dialect
from calls import answer, call, ended, invocation_of, wait_for_stage
from peer import poll

STREAM = {"Accept": "text/event-stream"}
SLOW = {"pattern": "[a-z] [a-z]+[0-9]|needle", "path": "many"}


def capture(group):
    stage.prepare(group.place)
    stage.write_long_search(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    agent = host.agent
    group.save("before/done", call(agent, "echo", {"message": "done"}, "done", {"Idempotency-Key": "done"}))
    running = {
        # A call whose effects nobody vouches for runs alone in its session, so it gets a session of its own.
        "effectful": begin(host.caller(stage.TENANT_TOKEN), "effectful", "demo__nap", {"seconds": 60}, "execute"),
        "waiting": begin(agent, "waiting", "write_file", {"path": "w.txt", "content": "w"}, "await_approval"),
        "decided": begin(agent, "decided", "write_file", {"path": "d.txt", "content": "d"}, "await_approval"),
    }
    dialect = Dialect("1.0", agent)
    message = dialect.message("task", [("write_file", {"path": "t.txt", "content": "t"})])
    task = dialect.ask("send", {"message": message})["body"]["result"]["task"]["id"]
    link = a2e_captures.HttpLink(host.caller(None))
    a2e_captures.ask(link, a2e_captures.handshake(agent.token))
    link.send({"type": "tool/call/req", "id": "over-a2e", "tool_name": "write_file", "timeout": 600,
               "arguments": {"path": "a.txt", "content": "a"}})  # fmt: skip
    poll(lambda: len(host.operator.json("GET", "/approvals")["approvals"]) == 4, "four questions wait")
    # The read begins last: it is the only call that can end by itself before the kill.
    running["read-only"] = begin(agent, "read-only", "grep", SLOW, "execute", "timeout=50")
    group.save("before/approvals", _sorted(host.operator.exchange("GET", "/approvals")))
    host.settle()
    host.kill()
    link.close()
    group.save("killed/rows", record.rows(group.place.data_dir / "journal.db"))
    group.run("killed/verify", "journal", "verify")
    group.run("killed/tail", "journal", "tail", "-n", "30")
    for path in (group.place.workspace / "many").iterdir():
        path.unlink()
    group.place.write("many/0.txt", "needle\n")
    _next_host(group, running, task, link.id)
    journal_captures.save_record(group, "record")


def begin(agent, name, tool, arguments, reached, query=""):
    """Begins a call with a key, and waits until it has reached a stage."""
    query = "background=true" + (f"&{query}" if query else "")
    begun = call(agent, f"{tool}?{query}", arguments, name, {"Idempotency-Key": name})
    wait_for_stage(agent, invocation_of(begun), reached)
    return invocation_of(begun)


def _sorted(exchange):
    exchange["body"]["approvals"].sort(key=lambda one: str(one.get("arguments")))
    return exchange


def _next_host(group, running, task, session):
    host = stage.serve(group.place)
    agent, operator = host.agent, host.operator
    group.save("after/banner", host.banner())
    tenant = host.caller(stage.TENANT_TOKEN)
    group.save("after/effectful", ended(tenant, running["effectful"]))
    group.save("after/read-only", ended(agent, running["read-only"]))
    poll(lambda: len(operator.json("GET", "/approvals")["approvals"]) == 4, "four questions wait again")
    group.save("after/approvals", _sorted(operator.exchange("GET", "/approvals")))
    dialect = Dialect("1.0", agent)
    group.save("after/task", dialect.ask("get", {"id": task}))
    group.save("after/allow", answer(operator, running["waiting"], {"decision": "allow"}))
    group.save("after/waiting", ended(agent, running["waiting"]))
    group.save("after/deny", answer(operator, running["decided"], {"decision": "deny", "feedback": "too late"}))
    group.save("after/decided", ended(agent, running["decided"]))
    for peer, tool, arguments, name in (
        (agent, "echo", {"message": "done"}, "done"),
        (tenant, "demo__nap?background=true", {"seconds": 60}, "effectful"),
        (agent, "write_file?background=true", {"path": "w.txt", "content": "w"}, "waiting"),
    ):
        group.save(f"after/repeat-{name}", call(peer, tool, arguments, name, {"Idempotency-Key": name}))
    _over_protocols(group, host, dialect, task, session)
    stream = agent.follow("/sessions/default/events?from=start")
    stream.until(lambda frame: _ends(frame, running["decided"]))
    stream.close()
    group.save("after/stream", stream.frames)
    host.stop()


def _ends(frame, invocation):
    data = frame.get("data") or {}
    return data.get("toolCallId") == invocation and data.get("type") in ("tool-result", "tool-error")


def _over_protocols(group, host, dialect, task, session):
    """The task of A2A and the session of A2E go on."""
    for question in host.operator.json("GET", "/approvals")["approvals"]:
        answer(host.operator, question["ask_id"], {"decision": "allow"})
        ended(host.operator, question["ask_id"])
    group.save("after/task-end", dialect.ask("get", {"id": task}))
    group.save("after/a2e-session", _resume_a2e(host.caller(None), session))


def _resume_a2e(peer, session):
    """Comes back to an A2E session: its stream, and the call sent again under its id."""
    stream = peer.follow("/stream", {"X-Session-Id": session})
    message = {"type": "tool/call/req", "id": "over-a2e", "tool_name": "write_file", "timeout": 600,
               "arguments": {"path": "a.txt", "content": "a"}}  # fmt: skip
    sent = peer.exchange("POST", "/send", message, {"X-Session-Id": session})
    is_answer = lambda frame: "tool/call/resp" in str(frame.get("data"))
    frames = [frame for frame in stream.until(is_answer) if "data" in frame] if stream.status == 200 else []
    stream.close()
    return {"status": stream.status, "sent": sent, "frames": frames}
