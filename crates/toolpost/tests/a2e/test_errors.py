"""What is not a proper message is answered on the stream, never by silence and never by an HTTP error."""

import json

import wire
from case import HostCase
from client import message

MEGABYTE = 1 << 20


def call(**fields):
    request = {"type": "tool/call/req", "id": "e", "tool_name": "echo", "arguments": {"message": "x"}} | fields
    return {key: value for key, value in request.items() if value is not ...}


class OnTheStream(HostCase):
    def setUp(self):
        super().setUp()
        self.sender = self.session()
        self.stream = self.open_stream(self.sender)
        self.assertEqual(self.stream.next().message["type"], "handshake/resp")

    def answers(self, body):
        """What comes for a body, up to the answer to a ping after it."""
        self.sender.send(body)
        return [frame.message for frame in self.stream.until_answer(self.sender.ping())[:-1]]

    def check(self, body, code, request_id=""):
        with self.subTest(body=str(body)[:80]):
            answers = self.answers(body)
            self.assertEqual(
                [(one["type"], one.get("code"), one.get("req_id", "")) for one in answers],
                [("error", code, request_id)],
            )
            self.assertTrue(answers[0]["message"])
            return answers[0]

    def test_what_is_no_json(self):
        for body in (
            b"{",
            b"not json",
            b'{"type":"ping","id":"a"',
            b'{"type":"ping","id":"a"} trailing',
            b"{'type':'ping'}",
            b'{"type":"ping","id":"a","ts":NaN}',
            b'{"type":"ping","id":"a","ts":-Infinity}',
            b'{"type":"ping","id":"a"}\n{"type":"ping","id":"b"}',
            b'{"type":"ping",}',
        ):
            # A beginning that tells the id is enough for an answer that finds its caller.
            self.check(body, "parse_error", "a" if b'"id":"a"' in body else "")

    def test_what_is_no_utf_8(self):
        for body in (b"\xff\xfe", b'{"type":"ping","id":"\xe9"}', b'{"type":"ping","id":"\xed\xa0\x80"}'):
            self.check(body, "parse_error")

    def test_what_is_no_utf_8_behind_an_id(self):
        self.check(b'{"type":"tool/call/req","id":"u","arguments":{"a":"\xff"}}', "parse_error", "u")

    def test_ids_that_are_somebody_elses(self):
        """Only the message's own id is its id."""
        for body in (
            b'{"type":"tool/call/req","arguments":{"id":"inner"},"x":NaN}',
            b'{"type":"tool/call/req","note":"\\"id\\":\\"text\\"","x":NaN}',
            b'[{"id":"inner"},NaN]',
            b'{"id":5,"x":NaN}',
            b'{"id":"' + b"i" * 5000 + b'","x":NaN}',
        ):
            self.check(body, "parse_error")

    def test_what_is_too_deep(self):
        for depth in (200, 100_000):
            self.check(b"[" * depth + b"]" * depth, "parse_error")
            nested = b'{"a":' * depth + b"1" + b"}" * depth
            self.check(b'{"type":"tool/call/req","id":"deep","arguments":' + nested + b"}", "parse_error", "deep")

    def test_json_that_is_no_object(self):
        for body in (b"[]", b"5", b"null", b"true", b'"ping"', b'[{"type":"ping","id":"a"}]'):
            self.check(body, "invalid_message")

    def test_types_nobody_handles(self):
        self.check({"id": "a"}, "invalid_message", "a")
        for kind in (
            "",
            "no/such/type",
            "PING",
            "pong",
            "error",
            "invoke/event",
            "handshake/resp",
            "tool/list/resp",
            "tool/call/resp",
            "tool/event",
            "tool/cancel/resp",
        ):
            self.check(message(kind, id="a", code="x", data={}), "invalid_message", "a")

    def test_types_that_are_no_text(self):
        for kind in (5, None, [], {}):
            self.check({"type": kind, "id": "a"}, "invalid_message", "a")

    def test_ids_that_are_no_text(self):
        for request_id in (5, None, [], {}, True, 1.5):
            for kind in ("ping", "tool/list/req", "tool/call/req"):
                self.check(call(type=kind, id=request_id), "invalid_message")

    def test_fields_of_the_wrong_kind(self):
        for fields in (
            {"arguments": ...},
            {"arguments": None},
            {"arguments": []},
            {"arguments": "{}"},
            {"arguments": 5},
            {"tool_name": 5},
            {"tool_name": None},
            {"timeout": "soon"},
            {"streaming": "perhaps"},
            {"streaming": None},
            {"session_id": 5},
            {"correlation_id": {}},
        ):
            error = self.check(call(**fields), "schema_violation", "e")
            if error:
                self.assertIn(*fields, error["detail"]["field"])

    def test_ids_come_back_as_they_were(self):
        for request_id in ("x", "\u00e9\u2028\U0001f600", "a b\tc\n", "i" * 200, '"}', "\x00"):
            self.check(message("no/such/type", id=request_id), "invalid_message", request_id)

    def test_an_empty_body_is_passed_over(self):
        self.assertEqual(self.answers(b""), [])

    def test_a_body_that_is_too_large(self):
        padding = "x" * (5 * MEGABYTE)
        self.check(json.dumps(call(arguments={"message": padding})), "message_too_large", "e")
        self.check(b"x" * (9 * MEGABYTE), "message_too_large")

    def test_a_body_within_the_limit_is_taken(self):
        self.sender.send(call(arguments={"message": "x" * (3 * MEGABYTE)}))
        self.assertEqual(self.stream.answer("e")["type"], "tool/call/resp")

    def test_one_bad_message_does_not_stop_the_good_ones(self):
        for number in range(20):
            self.sender.send(b"{")
            self.sender.call("echo", {"message": str(number)})
        kinds = []
        while len(kinds) < 40:
            kinds.append(self.stream.next().message["type"])
        self.assertEqual((kinds.count("error"), kinds.count("tool/call/resp")), (20, 20))


class OverHttp(HostCase):
    def check(self, expected, method, path, headers=None, body=None):
        with self.subTest(method=method, path=path, headers=headers):
            response = wire.request(self.host.address, method, path, body, headers)
            self.assertEqual(response.status, expected)
            return response

    def test_the_session_is_named_by_a_header(self):
        for method, path in (("POST", "/send"), ("GET", "/stream")):
            self.assertIn("detail", self.check(400, method, path).json)
            for name in ("0" * 32, "nobody", "x" * 3000):
                self.assertIn("detail", self.check(404, method, path, {"X-Session-Id": name}).json)

    def test_a_good_post_is_answered_at_once(self):
        response = self.session().post(message("ping"))
        self.assertEqual((response.status, response.json), (200, {"ok": True}))

    def test_health_needs_no_token(self):
        self.assertEqual(self.check(200, "GET", "/health").json["status"], "ok")

    def test_wrong_methods(self):
        for method, path in (("GET", "/session"), ("GET", "/send"), ("POST", "/stream"), ("DELETE", "/session")):
            response = wire.request(self.host.address, method, path)
            self.assertIn(response.status, (401, 404, 405), (method, path))

    def test_pages_of_strangers_are_kept_out(self):
        session = self.session()
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            for method, path in (("POST", "/session"), ("POST", "/send"), ("GET", "/stream")):
                response = self.check(403, method, path, headers | session.header)
                self.assertNotIn(b"session_id", response.body)

    def test_the_other_routes_still_want_the_token(self):
        session = self.session()
        self.check(401, "GET", "/tools")
        self.check(401, "GET", "/tools", session.header)
        self.check(401, "GET", "/tools", {"Authorization": f"Bearer {session.id}"})
