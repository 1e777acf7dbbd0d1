"""Calls over plain HTTP and the questions they raise, as the captures of several faces need them."""

from peer import poll


def call(peer, tool, arguments, name=None, headers=None):
    """Calls a tool, named with its query; gives the exchange. `name` is the caller's own id of the call."""
    tool, _, query = tool.partition("?")
    sent = dict(headers or {})
    if name:
        sent["Toolpost-Call-Id"] = name
    path = f"/tools/{tool}/call" + (f"?{query}" if query else "")
    return peer.exchange("POST", path, arguments, sent)


def invocation_of(exchange):
    return exchange["body"]["invocation_id"]


def wait_for_stage(peer, invocation, stage):
    """Waits until a call has reached a stage, such as `execute` or `await_approval`."""
    return poll(lambda: peer.json("GET", f"/invocations/{invocation}").get("stage") == stage, f"{invocation} {stage}")


def ended(peer, invocation):
    """The exchange that tells the end of a call."""
    path = f"/invocations/{invocation}"
    poll(lambda: peer.json("GET", path).get("status") == "ended", f"{invocation} ends")
    return peer.exchange("GET", path)


def answer(operator, question, verdict):
    """Answers a question as soon as it is asked; gives the exchange."""
    poll(lambda: "error" not in operator.json("GET", f"/approvals/{question}"), f"{question} is asked")
    return operator.exchange("POST", f"/approvals/{question}", verdict)


def asked(group, host, name, tool, arguments, verdict, peer=None):
    """Captures a call that a person is asked about: the question, the answer and the end."""
    peer, operator = peer or host.agent, host.operator
    begun = call(peer, f"{tool}?background=true", arguments, name.rpartition("/")[2])
    invocation = invocation_of(begun)
    poll(lambda: "error" not in operator.json("GET", f"/approvals/{invocation}"), f"{invocation} is asked")
    group.save(
        name,
        {
            "begun": begun,
            "question": operator.exchange("GET", f"/approvals/{invocation}"),
            "answer": operator.exchange("POST", f"/approvals/{invocation}", verdict),
            "end": ended(peer, invocation),
        },
    )
    return invocation
