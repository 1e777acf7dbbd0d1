"""Coming in: who is let in, what is agreed on, and what is answered before that."""

import json

from case import FixtureCase, HostCase, ProcessCase
from client import Refused, message
from waiting import Stopwatch, until

NAMES_OUTSIDE_THE_LIST = ["skills", "learn", "procs", "subagents", "streaming", "", "no such thing", "TOOLS"]


class Accepted(HostCase):
    def test_the_answer_names_the_session_and_the_limits(self):
        client = self.connected()
        answer = client.welcome
        self.assertEqual(answer["session_id"], client.transport.session_id)
        self.assertRegex(answer["session_id"], "^[0-9a-f]{32}$")
        self.assertEqual(answer.get("max_parallel", 4), 16)
        self.assertEqual(answer.get("reason", ""), "")

    def test_the_record_knows_the_session_by_another_name(self):
        answer = self.connected().welcome
        self.assertRegex(answer["host_session_id"], "^a2e-[0-9a-f]{32}$")
        self.assertNotIn(answer["session_id"], answer["host_session_id"])

    def test_tools_are_accepted_once_with_their_metadata(self):
        for asked in (["tools"], ["tools", "tools"], ["tools", *NAMES_OUTSIDE_THE_LIST], ["memory", "tools"]):
            with self.subTest(asked=asked):
                accepted = self.connected(caps=asked).welcome["accepted_caps"]
                enabled = [entry for entry in accepted if entry.get("enabled", True)]
                self.assertEqual([entry["capability"] for entry in enabled], ["tools"])
                metadata = enabled[0]["metadata"]
                self.assertLessEqual({"name", "type", "priority", "exclusive"}, metadata.keys())
                self.assertLessEqual({"tool/cancel", "tool/list/changed"}, set(metadata["extensions"]))

    def test_stock_capabilities_are_accepted_with_nothing(self):
        for asked in (["streaming", "artifacts"], [], NAMES_OUTSIDE_THE_LIST):
            with self.subTest(asked=asked):
                client = self.connected(caps=asked)
                self.assertEqual(client.welcome.get("accepted_caps", []), [])
                self.assertIn("echo", client.list())

    def test_version_under_either_name_or_none(self):
        for fields in ({"version": "1.0"}, {"version": "1.7"}, {"a2e": "1.0"}, {}):
            with self.subTest(fields=fields):
                client = self.connected(connect=False).open()
                shake = message("handshake/req", agent_caps=["tools"], auth_token=self.host.token)
                del shake["version"]
                answer = client.start(shake | fields).answer(10)
                self.assertTrue(answer.get("ok", True), answer)

    def test_unknown_fields_are_passed_over(self):
        answer = self.connected(connect=False).connect(colour="green", nested={"a": [None]}).welcome
        self.assertTrue(answer.get("ok", True))

    def test_a_second_handshake_keeps_the_session(self):
        client = self.connected()
        again = client.shake().answer(10)
        self.assertTrue(again.get("ok", True), again)
        self.assertEqual(again["session_id"], client.session_id)

    def test_surface_and_extensions_come_with_the_handshake(self):
        surface = {"scope": "task", "task": "testing", "skills": [], "model_capabilities": ["vision"]}
        client = self.connected(connect=False).connect(surface=surface, extensions=["tool/list/changed"])
        self.assertIn("echo", client.list())


class BeforeTheHandshake(HostCase):
    def test_only_ping_is_answered(self):
        client = self.connected(connect=False).open()
        self.assertGreaterEqual(client.ping().get("uptime_seconds", 0), 0)
        for request in (
            message("tool/list/req"),
            message("tool/call/req", tool_name="echo", arguments={"message": "x"}),
            message("tool/cancel/req", call_id="x"),
        ):
            with self.subTest(type=request["type"]):
                answer = client.start(request).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "unauthorized"))

    def test_a_handshake_after_refused_requests_still_works(self):
        client = self.connected(connect=False).open()
        self.assertEqual(client.start(message("tool/list/req")).wait(10)["code"], "unauthorized")
        answer = client.shake().answer(10)
        self.assertTrue(answer.get("ok", True), answer)
        self.assertIn("echo", client.list())

    def test_ill_typed_handshakes_are_told_so(self):
        client = self.connected(connect=False).open()
        for fields in ({"agent_caps": "tools"}, {"agent_caps": [5]}, {"auth_token": 5}, {"agent_id": {}}):
            with self.subTest(fields=fields):
                answer = client.shake(**fields).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))

    def test_a_handshake_over_64_kib_is_answered_with_the_limit(self):
        client = self.connected(connect=False).open()
        for surface in ({"task": "x" * 70_000}, {"skills": [f"skill-{n}" for n in range(8_000)]}):
            answer = client.shake(surface=surface).wait(10)
            self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))
            self.assertIn("may be 65536 bytes long", json.dumps(answer))


class Turned(HostCase):
    """Turned away: the reason is delivered first, then the session is over."""

    def check(self, reason, token=None, **fields):
        client = self.connected(connect=False, token=token)
        watch = Stopwatch()
        with self.assertRaises(Refused) as caught:
            client.connect(**fields)
        self.assertLess(watch.seconds, 10, "the stock client waits 30 s")
        self.assertEqual(caught.exception.reason.split(":")[0], reason)
        # The stock client leaves its stream open and opens it again at once: the host ends it, and then refuses.
        until(lambda: client.transport.refused_streams, 10, "the stream is refused")
        self.assertLessEqual(client.transport.opened_streams, 2, "the client was made to spin")
        self.assert_over(self.host, client.transport.session_id)

    def test_wrong_tokens(self):
        for token in ("wrong", "", " ", "x" * 5000, self.host.token + "x", self.host.token[:-1], "\u00e9\u2028"):
            with self.subTest(token=token[:20]):
                self.check("auth_failed", token=token)

    def test_a_missing_token_is_refused_with_what_to_send(self):
        client = self.connected(connect=False, token="")
        with self.assertRaises(Refused) as caught:
            client.connect()
        self.assertIn("`auth_token` in `handshake/req`", caught.exception.reason)

    def test_another_major_version(self):
        for fields in ({"version": "2.0"}, {"version": "0.9"}):
            with self.subTest(fields=fields):
                self.check("version_mismatch", **fields)

    def test_the_reason_waits_for_a_stream_that_comes_late(self):
        session = self.new_session(self.host, token="wrong")
        stream = self.open_stream(session)
        self.assertEqual(stream.status, 200)
        frames = stream.rest()
        self.assertEqual([frame.message.get("reason") for frame in frames], ["auth_failed"])
        self.assert_over(self.host, session.id)


class TurnedLater(FixtureCase):
    """A handshake that goes wrong in a session that goes well: only that handshake is refused."""

    def test_the_session_and_its_calls_go_on(self):
        for reason, fields in (
            ("auth_failed", {"auth_token": "wrong"}),
            ("auth_failed", {"auth_token": ""}),
            ("version_mismatch", {"version": "2.0"}),
        ):
            with self.subTest(reason=reason):
                client = self.connected()
                running = client.begin("slow", {"seconds": 0.7}, timeout=10)
                answer = client.shake(**fields).answer(10)
                self.assertEqual((answer["ok"], answer["reason"].split(":")[0]), (False, reason))
                self.assertIsNone(running.received, "the call ended too early to tell anything")
                self.assert_failed(client.call("boom", {}, timeout=10), "tool_error")
                self.assertTrue(running.result(15)["success"])
                self.assertEqual(client.transport.opened_streams, 1)
                self.assertEqual(client.transport.retries, [])


class OpenDoor(ProcessCase):
    def test_without_a_token_everybody_on_this_machine_comes_in(self):
        host = self.new_host("--no-token")
        for token in ("", "anything"):
            with self.subTest(token=token):
                self.assertIn("echo", self.new_client(host, token=token).list())

    def test_a_token_of_ones_own(self):
        host = self.new_host(token="a-token-of-my-own")
        self.assertIn("echo", self.new_client(host, token="a-token-of-my-own").list())
        with self.assertRaises(Refused):
            self.new_client(host, token="another-token-entirely")

    def test_max_parallel_is_the_limit_of_the_session(self):
        host = self.new_host(config="limits: { session_concurrency: 3 }\n")
        self.assertEqual(self.new_client(host).welcome["max_parallel"], 3)

    def test_tools_may_be_tied_to_negotiation(self):
        host = self.new_host(config="a2e: { require_negotiated: true }\n")
        self.assertIn("echo", self.new_client(host).list())
        client = self.new_client(host, caps=["streaming"])
        self.assertEqual(client.start(message("tool/list/req")).wait(10).get("code"), "capability_missing")
