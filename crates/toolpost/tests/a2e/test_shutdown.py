"""Saying good-bye: work may finish, all of it is answered, the stream ends, and the session is over."""

from case import FixtureCase, HostCase
from client import message
from waiting import Stopwatch


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
