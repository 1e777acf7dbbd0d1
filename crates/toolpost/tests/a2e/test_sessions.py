"""Sessions: how they begin, stay apart, come to an end, and come back after a restart."""

import time

import wire
from case import FixtureCase, HostCase, ProcessCase
from client import Refused, call_message, message
from host import FIXTURE
from waiting import until

ANONYMOUS_LIMIT = 256


def is_known(host, session_id):
    """Whether the host still takes messages for the session. An empty body is passed over."""
    response = wire.request(host.address, "POST", "/send", b"", {"X-Session-Id": session_id})
    return response.status == 200


class Beginning(HostCase):
    def test_ids_are_long_and_never_the_same(self):
        ids = [wire.request(self.host.address, "POST", "/session").json["session_id"] for _ in range(50)]
        self.assertEqual(len(set(ids)), 50)
        for session_id in ids:
            self.assertRegex(session_id, "^[0-9a-f]{32}$")

    def test_a_body_that_nobody_asked_for_does_no_harm(self):
        response = wire.request(self.host.address, "POST", "/session", b"{}", {"Content-Type": "application/json"})
        self.assertEqual(response.status, 200)

    def test_sessions_stay_apart(self):
        clients = [self.connected() for _ in range(4)]
        calls = [client.start(call_message("echo", {"message": f"of {number}"}, id="the same id"))
                 for number, client in enumerate(clients)]
        for number, call in enumerate(calls):
            self.assertEqual(call.result(10)["data"]["text"], f"of {number}")
        for client in clients:
            client.ping()
            self.assertEqual(client.stray, [])


class Limits(ProcessCase):
    def test_nameless_sessions_are_few_and_the_oldest_go_first(self):
        host = self.new_host()
        client = self.new_client(host)
        nameless = [wire.Session(host.address) for _ in range(ANONYMOUS_LIMIT + 50)]
        for session in nameless:
            self.addCleanup(session.close)
        self.assertFalse(is_known(host, nameless[0].id), "the oldest is still there")
        self.assertTrue(is_known(host, nameless[-1].id), "the newest is gone")
        known = sum(is_known(host, session.id) for session in nameless)
        self.assertLessEqual(known, ANONYMOUS_LIMIT)
        self.assertTrue(client.call("echo", {"message": "still here"})["success"])

    def test_at_the_limit_everybody_is_answered_and_nobody_is_robbed(self):
        host = self.new_host(config="limits: { sessions: 4 }\n")
        inside, refused = [], 0
        for _ in range(8):
            client = self.new_client(host, connect=False)
            try:
                inside.append(client.connect())
            except Refused as refusal:
                self.assertEqual(refusal.reason, "server_error")
                refused += 1
            except ConnectionError:
                refused += 1  # POST /session itself said no.
        self.assertTrue(inside)
        # A session that somebody reads is not idle. The earliest must have survived those that came later.
        self.assertTrue(inside[0].call("echo", {"message": "still here"})["success"])
        self.assertLessEqual(len(inside), 4, "the limit does not bite")
        self.assertEqual(len(inside) + refused, 8)

    def test_who_has_not_opened_a_stream_yet_is_not_robbed_either(self):
        host = self.new_host(config="limits: { sessions: 3 }\n")
        early = self.new_session(host)
        reasons = []
        for _ in range(5):
            stream = self.open_stream(self.new_session(host))
            reasons.append(stream.next().message.get("reason", ""))
        self.assertEqual(reasons, ["", "", "server_error", "server_error", "server_error"])
        stream = self.open_stream(early)
        welcome = stream.next().message
        self.assertEqual((welcome["type"], welcome.get("ok", True)), ("handshake/resp", True))
        self.assertTrue(stream.answer(early.call("echo", {"message": "still here"}))["data"]["success"])

    def test_a_place_that_was_left_is_free_again(self):
        host = self.new_host(config="limits: { sessions: 4 }\n")
        for _ in range(12):
            client = self.new_client(host)
            client.call("echo", {"message": "hello"})
            client.disconnect()

    def test_an_idle_session_expires(self):
        host = self.new_host(config="limits: { session_idle: 1s }\n")
        client = self.new_client(host)
        session_id = client.session_id
        client.transport.abandon()
        # Each look may count as a sign of life, so they are further apart than what the session may idle.
        until(lambda: not is_known(host, session_id), 25, "the session expires", pause=4)
        self.assert_over(host, session_id)

    def test_a_session_that_is_read_does_not_expire(self):
        host = self.new_host(config="limits: { session_idle: 1s }\n")
        client = self.new_client(host)
        end = time.monotonic() + 4
        until(lambda: time.monotonic() > end, 10, "time passes", pause=0.5)
        self.assertTrue(client.call("echo", {"message": "still here"})["success"])


class Restarts(ProcessCase):
    """The port, the data directory and the sessions' ids stay."""

    program = FIXTURE

    def restart(self, host, how):
        how()
        host.start()

    def test_the_session_comes_back_with_its_answers(self):
        host = self.new_host()
        client = self.new_client(host)
        done = [client.begin("boom", {}, timeout=10) for _ in range(5)]
        for call in done:
            call.result(10)
        self.restart(host, host.kill)
        client.until(lambda: all(len(client.answers_to(call.id)) > 1 for call in done), 20, "the answers again")
        for call in done:
            self.assertEqual({one.text for one in client.answers_to(call.id)}, {call.received.text})
        self.assert_failed(client.call("boom", {}, timeout=10), "tool_error")

    def test_a_call_that_was_running_gets_its_end(self):
        host = self.new_host()
        client = self.new_client(host)
        open_calls = [client.begin("slow", {"seconds": 4}, timeout=20) for _ in range(3)]
        client.ping()
        self.restart(host, host.kill)
        for call in open_calls:
            result = call.result(25)
            # One that may be repeated without harm may have been run again.
            if not result["success"]:
                self.assertIn(result.get("outcome"), ("canceled", "unknown"), result)
        self.assertFalse(client.transport.dead)

    def test_a_session_that_nobody_read_comes_back_too(self):
        host = self.new_host()
        session = self.new_session(host)
        calls = {session.call("slow", {"seconds": 3}) for _ in range(3)}
        host.kill()
        session.close()
        host.start()
        stream = self.open_stream(session)
        self.assertEqual(stream.status, 200)
        while calls:
            calls.discard(stream.next(15).message.get("req_id"))

    def test_a_reader_that_says_where_it_was_gets_the_rest(self):
        host = self.new_host()
        session = self.new_session(host)
        stream = self.open_stream(session)
        calls = [session.call("boom", {}) for _ in range(3)]
        left = set(calls)
        while left:
            left.discard(stream.next().message["req_id"])
        host.kill()
        session.close()
        host.start()
        stream = self.open_stream(session)
        told = [stream.next() for _ in calls]
        self.assertEqual({frame.message["req_id"] for frame in told}, set(calls))
        self.assertEqual(len({frame.id for frame in told}), len(calls))
        for seen in range(len(told)):
            with self.subTest(seen=seen):
                again = self.open_stream(session, told[seen].id)
                frames = again.until_answer(session.ping())
                answers = [frame for frame in frames if frame.message["type"] == "tool/call/resp"]
                self.assertEqual([frame.text for frame in answers], [frame.text for frame in told[seen + 1 :]])
                again.close()

    def test_a_host_that_is_told_to_stop_answers_first(self):
        host = self.new_host()
        session = self.new_session(host)
        stream = self.open_stream(session)
        call = session.call("slow", {"seconds": 1})
        host.process.terminate()
        self.assertEqual(stream.answer(call, 20)["type"], "tool/call/resp")
        stream.rest()
        self.assertEqual(host.process.wait(15), 0)
        host.start()
        again = self.open_stream(session)
        self.assertEqual(again.answer(call)["type"], "tool/call/resp")

    def test_a_session_that_said_goodbye_stays_away(self):
        host = self.new_host()
        client = self.new_client(host)
        client.disconnect()
        self.restart(host, host.kill)
        self.assert_over(host, client.session_id)

    def test_ids_of_sessions_are_not_in_the_record(self):
        host = self.new_host()
        client = self.new_client(host)
        client.call("boom", {}, timeout=10)
        host.stop()
        for path in host.place.data_dir.iterdir():
            if path.is_file():
                self.assertNotIn(client.session_id.encode(), path.read_bytes(), path.name)


class Strangers(FixtureCase):
    def test_the_id_of_the_record_opens_nothing(self):
        client = self.connected()
        self.assert_over(self.host, client.welcome["host_session_id"])
        client.start(message("ping")).answer(5)
