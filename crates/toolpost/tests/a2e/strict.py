"""Every message a host may send, checked as strictly as the client's validator, and then as the host promises.

The client drops a message with one wrong field and then waits for its full time, so here such a message is a failure:
`read` raises `Rejected`. Nothing is ever repaired or left out.
"""

import json

from shapes import (
    EXACT,
    LENIENT,
    Anything,
    Choice,
    Field,
    Flag,
    ListOf,
    MapOf,
    Number,
    Record,
    Rejected,
    Text,
    Whole,
    shown,
)

CAPABILITIES = (
    "skill",
    "tools",
    "toolkits",
    "env",
    "proc",
    "memory",
    "learning",
    "chains",
    "multi_agent",
    "planning",
    "mcp",
    "test",
)
OUTCOMES = ("succeeded", "partial", "failed", "denied", "rejected", "canceled", "timed_out", "unknown")
DISPOSITIONS = ("inline", "preview", "ref_only", "redacted", "dropped", "empty", "synthetic")
EVENT_KINDS = ("progress", "status", "artifact", "log")
HEX_ID = "[0-9a-f]{32}"

TEXT, WHOLE, NUMBER, FLAG, ANYTHING = Text(), Whole(), Number(), Flag(), Anything()
TEXTS = ListOf(TEXT)
OBJECT = MapOf(ANYTHING)


def _message(**fields):
    """A message: the envelope and its own fields."""
    envelope = {
        "type": Field(TEXT, required=True),
        "id": Field(TEXT, promised=True),
        "version": Field(Choice("1.0", open=True), promised=True),
        "ts": Field(NUMBER),
    }
    return Record(envelope | fields)


def _answer(**fields):
    """A message that belongs to another one. What cannot be ascribed to any has an empty `req_id`, or none."""
    return _message(req_id=Field(TEXT), **fields)


def _event():
    """Events are many, so the host leaves out of their envelope what the client fills in by itself."""
    event = _answer(kind=Field(Choice(*EVENT_KINDS, open=True)), data=Field(OBJECT), seq=Field(WHOLE, promised=True))
    event.fields |= {"id": Field(TEXT), "version": Field(TEXT)}
    return event


PARAMETER = Record()
PARAMETER.fields |= {
    "name": Field(TEXT, required=True),
    "type": Field(TEXT, required=True),
    "description": Field(TEXT, required=True),
    "required": Field(FLAG),
    "enum": Field(TEXTS, nullable=True),
    "properties": Field(MapOf(PARAMETER), nullable=True),
}

TOOL = Record({
    "name": Field(Text("[A-Za-z0-9_.-]{1,64}"), required=True),
    "description": Field(TEXT, required=True),
    "input_parameters": Field(ListOf(PARAMETER)),
    "output_parameters": Field(ListOf(PARAMETER)),
    "streaming": Field(FLAG),
    "idempotent": Field(FLAG),
    "tags": Field(TEXTS),
    "version": Field(TEXT),
    "toolkit": Field(TEXT, nullable=True),
    "defer_loading": Field(FLAG),
})

EVENT = _event()

RESULT = Record({
    "success": Field(FLAG, required=True),
    "tool_name": Field(TEXT, required=True),
    "duration_ms": Field(WHOLE, required=True),
    "data": Field(ANYTHING, nullable=True),
    "summary": Field(ANYTHING, nullable=True),
    "truncated": Field(FLAG, nullable=True),
    "exit_code": Field(WHOLE, nullable=True),
    "error": Field(TEXT, nullable=True),
    "error_code": Field(TEXT, nullable=True),
    "events": Field(ListOf(EVENT)),
    "invocation_id": Field(TEXT, ours=True),
    "outcome": Field(Choice(*OUTCOMES), ours=True),
    "disposition": Field(Choice(*DISPOSITIONS), ours=True),
    "artifacts": Field(ListOf(OBJECT), ours=True),
    "persistence": Field(OBJECT, ours=True),
    "redactions": Field(OBJECT, ours=True),
    "error_class": Field(TEXT, ours=True, nullable=True),
    "hint": Field(TEXT, ours=True, nullable=True),
    "retry_safe": Field(FLAG, ours=True, nullable=True),
    "retry": Field(OBJECT, ours=True),
})

ACCEPTED = Record({
    "capability": Field(Choice(*CAPABILITIES), required=True),
    "enabled": Field(FLAG),
    "metadata": Field(OBJECT),
})

# What the client has a model for. Anything else it reads as a bare envelope, and drops.
KNOWN = {
    "handshake/resp": _answer(
        session_id=Field(Text(f"({HEX_ID})?")),
        accepted_caps=Field(ListOf(ACCEPTED)),
        max_parallel=Field(WHOLE),
        ok=Field(FLAG),
        reason=Field(TEXT),
        host_session_id=Field(Text("a2e-" + HEX_ID), ours=True),
    ),
    "pong": _answer(uptime_seconds=Field(NUMBER)),
    "error": _answer(
        code=Field(TEXT, required=True),
        message=Field(TEXT, promised=True),
        detail=Field(OBJECT),
        retryable=Field(FLAG),
        capability_name=Field(TEXT),
    ),
    "invoke/event": EVENT,
    "tool/list/resp": _answer(tools=Field(ListOf(TOOL))),
    "tool/call/resp": _answer(data=Field(RESULT, required=True), created_at=Field(NUMBER)),
    "tool/event": EVENT,
}
EXTENSIONS = {
    "tool/cancel/resp": _answer(ok=Field(FLAG, required=True), call_id=Field(TEXT, required=True)),
    "tool/list/changed": _message(),
}
EVENT_TYPES = ("invoke/event", "tool/event")


def as_client(message):
    """Raises `Rejected` where the client would drop the message."""
    if not isinstance(message, dict):
        raise Rejected("", f"should be an object, is {shown(message)}")
    shape = KNOWN.get(message.get("type"), _message()) if isinstance(message.get("type"), str) else _message()
    shape.check(message, "", LENIENT)


def as_promised(message):
    """Raises `Rejected` where the message is not what the host says it sends."""
    kind = message.get("type")
    shape = KNOWN.get(kind) or EXTENSIONS.get(kind)
    if shape is None:
        raise Rejected("type", f"is nothing a host sends: {shown(kind)}")
    shape.check(message, "", EXACT)
    if kind == "tool/call/resp":
        _consistent(message["data"])
    if kind in EVENT_TYPES:
        _event_data(message)


def read(text):
    """Turns one message into an object, or raises `Rejected`."""
    if not text.isascii():
        raise Rejected("", f"is not all ASCII: {shown(text)}")
    try:
        message = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        raise Rejected("", f"is not JSON ({error}): {shown(text)}") from error
    as_client(message)
    as_promised(message)
    return message


def _consistent(result):
    """A result is a success or says what went wrong, and never both."""
    if result["success"] and (result.get("error") or result.get("error_code")):
        raise Rejected("data", f"is a success with an error: {shown(result)}")
    if not result["success"] and not (result.get("error") and result.get("error_code")):
        raise Rejected("data", f"is a failure that does not say why: {shown(result)}")
    if result["duration_ms"] < 0:
        raise Rejected("data.duration_ms", "is below zero")


def _event_data(event):
    """An event has a number from 1 on, and what its kind is about."""
    if event["seq"] < 1:
        raise Rejected("seq", f"should count from 1, is {event['seq']}")
    kind, data = event.get("kind", "status"), event.get("data", {})
    share = data.get("pct")
    if kind == "progress" and share is not None:
        WHOLE.check(share, "data.pct", EXACT)
        if not 0 <= share <= 100:
            raise Rejected("data.pct", f"should be within 0 and 100, is {share}")
    wanted = {"status": ("message",), "log": ("level", "message"), "artifact": ("name", "mime", "chunk", "final")}
    for name in wanted.get(kind, ()):
        if name not in data:
            raise Rejected(f"data.{name}", "is missing")


def _no_constant(name):
    raise ValueError(f"the bare word {name}")


def _no_key_twice(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key given twice among {[key for key, _ in pairs]}")
    return found
