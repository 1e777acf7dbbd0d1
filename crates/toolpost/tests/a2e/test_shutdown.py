"""Saying good-bye: work may finish, all of it is answered, the stream ends, and the session is over."""

import contextlib
import json
import select
import socket
import struct

from case import FixtureCase, HostCase
from client import call_message, message
from waiting import Stopwatch, until


class GoodBye(HostCase):
    def test_an_idle_client_leaves_at_once(self):
        client = self.connected()
        client.call("echo", {"message": "x"})
        watch = Stopwatch()
        client.disconnect()
        self.assertLess(watch.seconds, 1, "the stock client waits 5 s for a stream that is not closed")
        self.assert_over(self.host, client.session_id)
        self.assertLessEqual(client.transport.opened_streams, 1)

    def test_many_leave_at_once(self):
        for _ in range(20):
            client = self.connected()
            watch = Stopwatch()
            client.disconnect()
            self.assertLess(watch.seconds, 1)

    def test_leaving_without_ever_having_read(self):
        session = self.session()
        session.send(message("shutdown", timeout=10))
        # The answer to the handshake may still be fetched, or the session may be over: it must not go on.
        stream = self.open_stream(session)
        self.assertIn(stream.status, (200, 404))
        if stream.status == 200:
            stream.rest()

    def test_who_left_without_having_read_is_told_that_it_left(self):
        session = self.session()
        session.send(message("shutdown", timeout=0))
        until(lambda: session.post(message("ping")).status != 200, 10, "the session is over")
        self.assertEqual(session.post(message("ping")).status, 404)

    def test_others_stay(self):
        stays, leaves = self.connected(), self.connected()
        leaves.disconnect()
        self.assertTrue(stays.call("echo", {"message": "x"})["success"])

    def test_ill_typed_good_byes_are_told_so(self):
        client = self.connected()
        for timeout in ("soon", None, []):
            with self.subTest(timeout=timeout):
                answer = client.start(message("shutdown", timeout=timeout)).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))
        self.assertTrue(client.call("echo", {"message": "still here"})["success"])


class Draining(FixtureCase):
    def setUp(self):
        super().setUp()
        self.sender = self.session()
        self.stream = self.open_stream(self.sender)

    def ends(self, seconds=15):
        """What comes until the stream ends: answers by the request they belong to."""
        frames = self.stream.rest(seconds)
        self.assert_over(self.host, self.sender.id)
        return {frame.message.get("req_id", ""): frame.message for frame in frames}

    def test_running_work_may_finish(self):
        calls = [self.sender.call("slow", {"seconds": 1}) for _ in range(3)]
        self.sender.send(message("shutdown", timeout=10))
        ends = self.ends()
        for call in calls:
            self.assertTrue(ends[call]["data"]["success"], ends[call])

    def test_what_takes_longer_is_canceled_and_answered(self):
        calls = [self.sender.call("slow", {"seconds": 25}) for _ in range(3)]
        watch = Stopwatch()
        self.sender.send(message("shutdown", timeout=1))
        ends = self.ends()
        self.assertGreaterEqual(watch.seconds, 1)
        for call in calls:
            self.assert_failed(ends[call]["data"], "canceled")

    def test_no_time_at_all(self):
        call = self.sender.call("slow", {"seconds": 25})
        self.sender.send(message("shutdown", timeout=0))
        self.assert_failed(self.ends()[call]["data"], "canceled")

    def test_queued_work_is_answered_too(self):
        calls = [self.sender.call("slow", {"seconds": 20}) for _ in range(60)]
        self.sender.send(message("shutdown", timeout=1))
        ends = self.ends()
        for call in calls:
            self.assert_failed(ends[call]["data"], "canceled")

    def test_nothing_new_begins(self):
        running = self.sender.call("slow", {"seconds": 2})
        self.sender.send(message("shutdown", timeout=10))
        late = self.sender.call("boom", {})
        ends = self.ends()
        self.assertTrue(ends[running]["data"]["success"])
        self.assertEqual((ends[late]["type"], ends[late].get("code")), ("error", "runtime_error"))

    def test_a_stream_that_breaks_loses_no_answer(self):
        slow = self.sender.call("slow", {"seconds": 2})
        quick = self.sender.call("boom", {})
        self.sender.send(message("shutdown", timeout=10))
        # It was given out, so only a reader that comes back can tell that it was lost on the way.
        self.stream.until_answer(quick)
        self.stream.close()
        self.stream = self.open_stream(self.sender)
        ends = self.ends()
        self.assert_failed(ends[quick]["data"], "tool_error")
        self.assertTrue(ends[slow]["data"]["success"])

    def test_calls_without_an_id_are_waited_for(self):
        call = call_message("slow", {"seconds": 1}, timeout=10)
        del call["id"]
        self.sender.send(call)
        self.sender.send(message("shutdown", timeout=10))
        answers = [one for one in self.ends().values() if one["type"] == "tool/call/resp"]
        self.assertEqual([one["data"]["success"] for one in answers], [True])

    def test_posts_that_were_given_up_are_not_waited_for(self):
        done = [call_message("boom", {}) for _ in range(100)]
        for call in done:
            self.sender.send(call)
        for number, call in enumerate(done):
            # Another call under the same id, and one of its own; both by senders that leave in the middle.
            for request in (call | {"arguments": {"other": 1}}, call_message("boom", {})):
                with self.begun_post(request) as sender:
                    # Sometimes while it is read, sometimes while it is handled.
                    select.select([sender], [], [], number % 7 * 0.001)
        watch = Stopwatch()
        self.sender.send(message("shutdown", timeout=1))
        ends = self.ends()
        self.assertLess(watch.seconds, 6, "the session waited for what nobody runs")
        self.assertLessEqual({call["id"] for call in done}, ends.keys())

    @contextlib.contextmanager
    def begun_post(self, request):
        """A POST whose sender is gone, without a farewell, when this is left."""
        body = json.dumps(request).encode()
        head = (f"POST /send HTTP/1.1\r\nHost: localhost\r\nX-Session-Id: {self.sender.id}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n")
        with socket.create_connection(self.host.address) as sender:
            sender.sendall(head.encode() + body)
            yield sender
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def test_a_second_good_bye_does_no_harm(self):
        running = self.sender.call("slow", {"seconds": 1})
        self.sender.send(message("shutdown", timeout=10))
        self.sender.send(message("shutdown", timeout=10))
        self.assertTrue(self.ends()[running]["data"]["success"])

    def test_a_repeat_while_draining_is_passed_over(self):
        client = self.connected()
        call = client.begin("slow", {"seconds": 1}, timeout=10)
        client.post(message("shutdown", timeout=10))
        client.post(call.request)
        self.assertTrue(call.result(15)["success"])
        self.assertEqual(len(client.answers_to(call.id)), 1)
