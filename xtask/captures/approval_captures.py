"""Questions and answers: over HTTP with and without a key, on the command line, edited, remembered, withdrawn."""

import journal_captures
import stage
from calls import asked, call, ended, invocation_of
from peer import poll


def write(name):
    return {"path": f"{name}.txt", "content": name}


def capture(group):
    stage.prepare(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    agent, operator = host.agent, host.operator
    stream = operator.follow("/approvals")
    group.save("nothing-waits", operator.exchange("GET", "/approvals"))
    edited = write("edited") | {"content": "by the operator", "create_directories": True}
    asked(group, host, "edited", "write_file", write("edited"), {"decision": "allow", "arguments": edited})
    group.save("edited-file", (group.place.workspace / "edited.txt").read_text())
    _bad_answers(group, host)
    _parked(group, host)
    _granted(group, host)
    _remembered(group, host)
    _command_line(group, host)
    _script(group, host)
    _withdrawn(group, host)
    stream.until(lambda frame: frame.get("event") == "withdrawn")
    stream.close()
    group.save("stream", _by_question(stream.frames))
    host.stop()
    journal_captures.save_record(group, "record")


def begin(host, name, arguments=None, query="background=true", tool="write_file"):
    """Begins a call that waits for a person; gives its id, which is also the question's."""
    invocation = invocation_of(call(host.agent, f"{tool}?{query}", arguments or write(name), name))
    is_asked = lambda: "error" not in host.operator.json("GET", f"/approvals/{invocation}")
    poll(is_asked, f"{name} is asked")
    return invocation


def _by_question(frames):
    """Events in the order of their questions: an answer and a question that follows from it are told side by side."""
    question = lambda frame: frame["data"].get("ask_id") if isinstance(frame.get("data"), dict) else None
    order = {}
    for frame in frames:
        order.setdefault(question(frame), len(order))
    return sorted(frames, key=lambda frame: order[question(frame)])


def _bad_answers(group, host):
    question = begin(host, "bad-answers")
    path = f"/approvals/{question}"
    olga = host.caller(stage.OPERATOR_TOKEN)
    for name, peer, verdict in (
        ("agent", host.agent, {"decision": "allow"}),
        ("no-decision", olga, {}),
        ("unknown-decision", olga, {"decision": "maybe"}),
        ("unknown-member", olga, {"decision": "allow", "colour": "red"}),
        ("bad-arguments", olga, {"decision": "allow", "arguments": {"path": 7}}),
        ("bad-rule", olga, {"decision": "allow", "scope": "remember", "rule": 99}),
        ("taken", olga, {"decision": "deny", "feedback": "no thanks"}),
        ("taken-again", host.operator, {"decision": "allow"}),
    ):
        group.save(f"answers/{name}", peer.exchange("POST", path, verdict))
    group.save("answers/end", ended(host.agent, question))


def _parked(group, host):
    """With a key: 202, the question stays, the call runs after the answer, a repeat gets its end."""
    for name, verdict in (("allow", {"decision": "allow"}), ("deny", {"decision": "deny", "feedback": "no"})):
        headers = {"Idempotency-Key": f"parked-{name}"}
        tool, sent = "write_file?patience=0.2", write(f"parked-{name}")
        first = call(host.agent, tool, sent, headers=headers)
        again = call(host.agent, tool, sent, headers=headers)
        streamed = call(host.agent, tool, sent, headers=headers | {"Accept": "text/event-stream"})
        question = host.operator.exchange("POST", f"/approvals/{invocation_of(first)}", verdict)
        end = ended(host.agent, invocation_of(first))
        repeat = call(host.agent, tool, sent, headers=headers)
        told = {"first": first, "again": again, "stream": streamed, "answer": question, "end": end, "repeat": repeat}
        group.save(f"parked/{name}", told)


def _granted(group, host):
    """Without a key: `approval_pending`; a later yes is kept for one such call."""
    tool, sent = "write_file?patience=0.2", write("granted")
    first = call(host.agent, tool, sent)
    question = first["body"]["error"]["details"]["ask_id"]
    told = {"pending": first, "question": host.operator.exchange("GET", f"/approvals/{question}")}
    told["answer"] = host.operator.exchange("POST", f"/approvals/{question}", {"decision": "allow"})
    told["granted"] = call(host.agent, tool, sent)
    told["asked-again"] = call(host.agent, tool, sent)
    group.save("granted", told)


def _remembered(group, host):
    """A yes for the session and a remembered one: the rule, the call it lets pass, and its end."""
    for scope in ("session", "remember"):
        verdict = {"decision": "allow", "scope": scope}
        asked(group, host, f"{scope}/asked", "write_file", write(scope), verdict)
        group.save(f"{scope}/rules", host.operator.exchange("GET", "/rules"))
        group.save(f"{scope}/lets-pass", call(host.agent, "write_file?patience=0.2", write(scope)))
    group.run("remember/rules", "approvals", "rules")
    group.run("remember/rules-json", "approvals", "rules", "--json")
    rules = host.operator.json("GET", "/rules")
    [rule] = [one for one in rules["rules"] if "expires_at" in one or "until" in one] or rules["rules"][:1]
    group.save("remember/explain", host.agent.exchange("POST", "/tools/write_file/explain", write("remember")))
    identity = rule.get("id") or rule.get("rule_id") or rule.get("ask_id")
    group.run("remember/forget", "approvals", "forget", identity)
    group.save("remember/rules-after", host.operator.exchange("GET", "/rules"))


def _command_line(group, host):
    for name, words in {
        "allow": ["allow"],
        "deny": ["deny", "--feedback", "use another name"],
        "edit": ["allow", "--arguments", '{"path":"cli-edit.txt","content":"changed","create_directories":true}'],
        "remember": ["allow", "--remember", "--for", "7d"],
        "bad-edit": ["allow", "--arguments", '{"path":7}'],
    }.items():
        question = begin(host, f"cli-{name}")
        group.run(f"command-line/{name}-list", "approvals")
        group.run(f"command-line/{name}-list-json", "approvals", "--json")
        group.run(f"command-line/{name}-show", "approvals", "show", question)
        group.run(f"command-line/{name}", "approvals", words[0], question, *words[1:])
        if name == "bad-edit":
            group.run("command-line/deny-json", "approvals", "deny", question, "--json")
        group.save(f"command-line/{name}-end", ended(host.agent, question))
    group.run("command-line/unknown", "approvals", "allow", "ffffffff")


def _script(group, host):
    """A yes is for the script as it was: a changed file asks again."""
    group.place.write("build.sh", "echo one\n")
    question = begin(host, "script", {"command": "sh build.sh"}, tool="shell")
    group.save("script/question", host.operator.exchange("GET", f"/approvals/{question}"))
    group.place.write("build.sh", "echo two, changed\n")
    group.save("script/answer", host.operator.exchange("POST", f"/approvals/{question}", {"decision": "allow"}))
    waiting = lambda: host.operator.json("GET", "/approvals")["approvals"]
    of_script = lambda: [one for one in waiting() if one["ask_id"] != question and one["tool"] == "shell"]
    [new] = poll(of_script, "the changed script is asked about")
    group.save("script/asked-again", new)
    group.save("script/deny", host.operator.exchange("POST", f"/approvals/{new['ask_id']}", {"decision": "deny"}))
    group.save("script/end", ended(host.agent, question))


def _withdrawn(group, host):
    question = begin(host, "withdrawn")
    canceled = host.agent.exchange("POST", f"/invocations/{question}/cancel")
    end = ended(host.agent, question)
    late = host.operator.exchange("POST", f"/approvals/{question}", {"decision": "allow"})
    group.save("withdrawn", {"cancel": canceled, "end": end, "late": late})
