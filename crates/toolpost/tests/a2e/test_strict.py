"""The measuring rod itself: messages that must pass, messages that must not, the reader of events. Needs no host."""

import json
import unittest

import strict
from sse import PIECE, SseReader, charset_of
from strict import Rejected

ENVELOPE = {"id": "a", "version": "1.0", "ts": 1.5}
RESULT = {"success": True, "tool_name": "echo", "duration_ms": 3}
FAILURE = {"success": False, "tool_name": "echo", "duration_ms": 3, "error": "no", "error_code": "tool_error"}
PARAMETER = {"name": "p", "type": "string", "description": ""}
TOOL = {"name": "t", "description": ""}
EVENT = {"type": "tool/event", "req_id": "r", "kind": "status", "data": {"message": "m"}, "seq": 1}
HEX = "0123456789abcdef" * 2


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


def call(**result):
    return {"type": "tool/call/resp", **ENVELOPE, "req_id": "r", "data": RESULT | result}


def tools(**tool):
    return {"type": "tool/list/resp", **ENVELOPE, "req_id": "r", "tools": [TOOL, TOOL | tool]}


def parameter(**fields):
    return tools(input_parameters=[PARAMETER | fields])


def shake(**fields):
    return {"type": "handshake/resp", **ENVELOPE, "req_id": "r", "session_id": HEX} | fields


def pong(**fields):
    return {"type": "pong", **ENVELOPE, "req_id": "r"} | fields


def error(**fields):
    return {"type": "error", **ENVELOPE, "code": "parse_error", "message": "m"} | fields


def event(**fields):
    return EVENT | fields


# What the client takes: (message, is it also what the host promises).
TAKEN = [
    (pong(), True),
    (pong(uptime_seconds=1), True),
    (pong(uptime_seconds=0.25, ts=17), True),
    (pong(uptime_seconds="1.5"), False),
    (pong(ts="17"), False),
    (pong(ts=True), False),
    (pong(unknown=[None, {"deep": 1}]), True),
    (pong(version="1.7"), False),
    ({"type": "pong"}, False),
    ({"type": "something/new", "id": "x"}, False),
    (shake(), True),
    (shake(accepted_caps=[], max_parallel=16, ok=True, reason=""), True),
    (shake(accepted_caps=[{"capability": "tools", "metadata": {"priority": 0}}]), True),
    (shake(host_session_id="a2e-" + HEX), True),
    (shake(host_session_id=5), False),
    (shake(max_parallel=4.0), False),
    (shake(max_parallel="4"), False),
    (shake(max_parallel=" 4.0 "), False),
    (shake(ok="yes"), False),
    (shake(ok=1), False),
    (shake(session_id="short"), False),
    (error(), True),
    (error(req_id="r", detail={"field": "arguments"}, retryable=False, capability_name=""), True),
    (error(retryable="off"), False),
    (event(), True),
    (event(id="e", version="1.0", ts=1), True),
    (event(seq=2.0), False),
    (event(seq=0), False),
    (event(kind="progress", data={"pct": 50, "message": "half"}), True),
    (event(kind="progress", data={"pct": 50.5}), False),
    (event(kind="progress", data={"pct": 101}), False),
    (event(kind="log", data={"message": "no level"}), False),
    (event(kind="gossip", data={}), False),
    (call(), True),
    (call(data=None, summary=None, truncated=None, exit_code=None, error=None, error_code=None), True),
    (call(data={"text": "x"}, summary="s", truncated=True, exit_code=0), True),
    (call(data=[1, 2.5, "x", None]), True),
    (call(outcome="succeeded", invocation_id=HEX, retry_safe=True), True),
    (call(outcome="fine"), False),
    (call(disposition="empty", redactions={"github": 1}, artifacts=[{"id": "art_x_1"}]), True),
    (call(disposition="gone"), False),
    (call(duration_ms=3.0), False),
    (call(duration_ms="3"), False),
    (call(duration_ms=-1), False),
    (call(success="true"), False),
    (call(events=[EVENT]), True),
    (call(error="no", error_code="tool_error"), False),
    (call(**FAILURE), True),
    (call(success=False), False),
    (tools(), True),
    (tools(toolkit=None, tags=["a"], version="2.0.0", streaming=False, idempotent=True, defer_loading=True), True),
    (tools(streaming="no"), False),
    (tools(input_schema={"type": ["string", "null"]}), True),
    (parameter(), True),
    (parameter(enum=None, properties=None, required=True), True),
    (parameter(enum=["1", "2"]), True),
    (parameter(type="object", properties={"inner": PARAMETER}), True),
    (parameter(items={"type": "string"}, default=5), True),
    ({"type": "tool/cancel/resp", **ENVELOPE, "req_id": "r", "ok": True, "call_id": "c"}, True),
    ({"type": "tool/cancel/resp", **ENVELOPE, "req_id": "r"}, False),
    ({"type": "tool/list/changed", **ENVELOPE}, True),
]

# What the client drops: (message, where it stumbles).
DROPPED = [
    ({}, "type"),
    ({"type": None}, "type"),
    ({"type": 5}, "type"),
    (pong(id=5), "id"),
    (pong(id=None), "id"),
    (pong(version=1.0), "version"),
    (pong(ts=None), "ts"),
    (pong(ts="2026-01-01T00:00:00Z"), "ts"),
    (pong(req_id=7), "req_id"),
    (pong(req_id=None), "req_id"),
    (pong(uptime_seconds=""), "uptime_seconds"),
    ({"type": "something/new", "id": 5}, "id"),
    (shake(max_parallel=4.5), "max_parallel"),
    (shake(max_parallel="four"), "max_parallel"),
    (shake(max_parallel=None), "max_parallel"),
    (shake(ok=None), "ok"),
    (shake(ok=2), "ok"),
    (shake(reason=None), "reason"),
    (shake(accepted_caps=None), "accepted_caps"),
    (shake(accepted_caps={}), "accepted_caps"),
    (shake(accepted_caps=["tools"]), "accepted_caps[0]"),
    (shake(accepted_caps=[{"enabled": True}]), "accepted_caps[0].capability"),
    *[(shake(accepted_caps=[{"capability": name}]), "accepted_caps[0].capability")
      for name in ("skills", "learn", "procs", "subagents", "streaming", "Tools", "", None, 5)],
    (shake(accepted_caps=[{"capability": "tools", "metadata": None}]), "accepted_caps[0].metadata"),
    (error(code=None), "code"),
    ({"type": "error", **ENVELOPE, "message": "m"}, "code"),
    (error(message=None), "message"),
    (error(detail=None), "detail"),
    (error(detail=[]), "detail"),
    (error(retryable=None), "retryable"),
    (event(seq=1.5), "seq"),
    (event(seq=None), "seq"),
    (event(data=[]), "data"),
    (event(data=None), "data"),
    (event(data="m"), "data"),
    (event(kind=None), "kind"),
    ({"type": "tool/call/resp", **ENVELOPE, "req_id": "r"}, "data"),
    ({"type": "tool/call/resp", **ENVELOPE, "req_id": "r", "data": None}, "data"),
    *[({"type": "tool/call/resp", "data": without(RESULT, name)}, f"data.{name}") for name in RESULT],
    (call(duration_ms=12.5), "data.duration_ms"),
    (call(duration_ms=None), "data.duration_ms"),
    (call(duration_ms=1e30), "data.duration_ms"),
    (call(success=None), "data.success"),
    (call(tool_name=None), "data.tool_name"),
    (call(exit_code=0.5), "data.exit_code"),
    (call(error={"message": "no"}), "data.error"),
    (call(error_code=5), "data.error_code"),
    (call(truncated="perhaps"), "data.truncated"),
    (call(events=None), "data.events"),
    (call(events=[{"kind": "status"}]), "data.events[0].type"),
    (call(events=[EVENT, EVENT | {"seq": 0.5}]), "data.events[1].seq"),
    (call() | {"created_at": "2026-01-01"}, "created_at"),
    (tools() | {"tools": None}, "tools"),
    (tools(name=None), "tools[1].name"),
    (tools(description=None), "tools[1].description"),
    (tools(tags=None), "tools[1].tags"),
    (tools(tags=["a", 5]), "tools[1].tags[1]"),
    (tools(input_parameters=None), "tools[1].input_parameters"),
    (tools(input_parameters={}), "tools[1].input_parameters"),
    (tools(output_parameters=None), "tools[1].output_parameters"),
    (tools(streaming=None), "tools[1].streaming"),
    (tools(version=1), "tools[1].version"),
    (tools(toolkit=5), "tools[1].toolkit"),
    (parameter(type=["string", "null"]), "tools[1].input_parameters[0].type"),
    (parameter(type=None), "tools[1].input_parameters[0].type"),
    (parameter(description=None), "tools[1].input_parameters[0].description"),
    (tools(input_parameters=[{"name": "p", "type": "string"}]), "tools[1].input_parameters[0].description"),
    (parameter(required=None), "tools[1].input_parameters[0].required"),
    (parameter(enum=[1, 2]), "tools[1].input_parameters[0].enum[0]"),
    (parameter(enum=["1", None]), "tools[1].input_parameters[0].enum[1]"),
    (parameter(properties=[PARAMETER]), "tools[1].input_parameters[0].properties"),
    (parameter(properties={"inner": {"name": "inner"}}), "tools[1].input_parameters[0].properties.inner.type"),
]

BAD_TEXTS = [
    "",
    "{",
    "[]",
    "null",
    "5",
    '{"type":"pong"} {"type":"pong"}',
    '{"type":"pong","id":"a","version":"1.0","uptime_seconds":NaN}',
    '{"type":"pong","id":"a","version":"1.0","uptime_seconds":Infinity}',
    '{"type":"pong","id":"a","id":"b","version":"1.0"}',
    '{"type":"pong","id":"\u00e9","version":"1.0"}',
    '{"type":"pong","id":"\u2028","version":"1.0"}',
]


class Messages(unittest.TestCase):
    def test_what_the_client_takes_is_taken(self):
        for message, promised in TAKEN:
            with self.subTest(message=message):
                strict.as_client(message)
                if promised:
                    self.assertEqual(strict.read(json.dumps(message)), message)
                else:
                    self.assertRaises(Rejected, strict.read, json.dumps(message))

    def test_what_the_client_drops_is_a_failure_that_says_where(self):
        for message, place in DROPPED:
            with self.subTest(message=message):
                with self.assertRaises(Rejected) as caught:
                    strict.as_client(message)
                self.assertEqual(caught.exception.place, place)
                self.assertRaises(Rejected, strict.read, json.dumps(message))

    def test_texts_that_are_no_messages(self):
        for text in BAD_TEXTS:
            with self.subTest(text=text):
                self.assertRaises(Rejected, strict.read, text)

    def test_line_breaks_between_tokens_are_part_of_json(self):
        self.assertEqual(strict.read(json.dumps(pong(), indent=0)), pong())


def feed(raw, size=PIECE, content_type="text/event-stream; charset=utf-8"):
    reader = SseReader(content_type)
    return [text for start in range(0, len(raw), size) for text in reader.feed(raw[start : start + size])]


class Events(unittest.TestCase):
    def check(self, raw, expected):
        """The same, however the bytes are cut."""
        for size in (1, 2, 3, 7, PIECE):
            with self.subTest(size=size):
                self.assertEqual(feed(raw, size), expected)

    def test_frames(self):
        self.check(b"data: one\n\ndata: two\n\n", ["one", "two"])
        self.check(b"data:{\ndata: 1}\n\n", ["{\n1}"])
        self.check(b": comment\n\nid: e-1\nevent: x\nretry: 5\ndata: one\n\n", ["one"])
        self.check(b"data: whole\n\ndata: unfinished\n", ["whole"])
        self.check(b"\n\n\n: nothing\n\n", [])
        self.check("data: \u00e9\u2603\n\n".encode(), ["\u00e9\u2603"])
        self.check(b"data: " + b"x" * 5000 + b"\n\n", ["x" * 5000])

    def test_carriage_returns_within_one_piece(self):
        self.assertEqual(feed(b"data: one\r\n\r\ndata: two\r\n\r\n"), ["one", "two"])

    def test_characters_that_cut_a_message_in_two(self):
        for character in "\v\f\x1c\x1d\x1e\u0085\u2028\u2029":
            with self.subTest(character=ascii(character)):
                self.assertEqual(feed(f"data: one{character}two\n\n".encode()), ["one"])

    def test_without_a_charset_it_is_latin(self):
        self.assertEqual(feed("data: \u00e9\n\n".encode(), content_type="text/event-stream"), ["\u00c3\u00a9"])
        for header, charset in [
            ("text/event-stream; charset=utf-8", "utf-8"),
            ('text/event-stream;Charset="UTF-8"', "UTF-8"),
            ("text/event-stream", "ISO-8859-1"),
            ("text/event-stream; x=y", "ISO-8859-1"),
        ]:
            self.assertEqual(charset_of(header), charset)


if __name__ == "__main__":
    unittest.main()
