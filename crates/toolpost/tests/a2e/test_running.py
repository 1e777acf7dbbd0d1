"""Calls while they run: deadlines, events, cancellation, and several at once."""

from case import FixtureCase
from client import CALL_GRACE, message
from waiting import Stopwatch


class Deadlines(FixtureCase):
    def test_the_answer_comes_at_the_deadline(self):
        client = self.connected()
        for timeout in (1, 0.5):
            with self.subTest(timeout=timeout):
                watch = Stopwatch()
                result = client.begin("slow", {"seconds": 25}, timeout=timeout).result(timeout + CALL_GRACE)
                self.assert_failed(result, "timeout")
                self.assertEqual(result.get("outcome", "timed_out"), "timed_out")
                self.assertGreaterEqual(watch.seconds, timeout)

    def test_work_within_its_deadline_ends_well(self):
        self.assertTrue(self.connected().call("slow", {"seconds": 0.2}, timeout=10)["success"])


class Events(FixtureCase):
    def setUp(self):
        super().setUp()
        self.client = self.connected()

    def test_events_come_before_the_answer_and_are_numbered(self):
        pending = self.client.begin("chatty", {"events": 20}, timeout=10)
        self.assertTrue(pending.result(15)["success"])
        self.assertTrue(pending.events)
        numbers = [event["seq"] for event in pending.events]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreaterEqual(numbers[0], 1)
        self.assertLessEqual({event.get("kind", "status") for event in pending.events}, {"progress", "status", "log"})

    def test_a_reader_that_keeps_up_misses_nothing(self):
        pending = self.client.begin("chatty", {"events": 20, "pause_ms": 10}, timeout=10)
        pending.result(15)
        self.assertEqual([event["seq"] for event in pending.events], list(range(1, len(pending.events) + 1)))
        self.assertGreaterEqual(len(pending.events), 20)

    def test_events_of_calls_at_the_same_time_are_kept_apart(self):
        alone = self.client.begin("chatty", {"events": 10, "pause_ms": 5}, timeout=10)
        alone.result(15)
        calls = [self.client.begin("chatty", {"events": 10, "pause_ms": 5}, timeout=10) for _ in range(8)]
        for call in calls:
            self.assertTrue(call.result(15)["success"])
            self.assertEqual([event["seq"] for event in call.events], [event["seq"] for event in alone.events])

    def test_no_events_come_after_the_answer(self):
        call = self.client.begin("chatty", {"events": 50}, timeout=10)
        call.result(15)
        self.client.ping()
        self.assertEqual([one for one in self.client.stray if one.is_event], [])

    def test_without_streaming_there_are_none(self):
        call = self.client.begin("chatty", {"events": 20}, streaming=False, timeout=10)
        result = call.result(15)
        self.client.ping()
        self.assertEqual(call.events, [])
        self.assertEqual([one for one in self.client.log if one.is_event], [])
        self.assertNotIn("events", result)

    def test_events_can_be_collected_into_the_answer(self):
        for streaming in (False, True):
            with self.subTest(streaming=streaming):
                fields = {"streaming": streaming, "collect_events": True, "timeout": 10}
                call = self.client.begin("chatty", {"events": 20, "pause_ms": 2}, **fields)
                collected = call.result(15)["events"]
                self.assertGreaterEqual(len(collected), 20)
                self.assertEqual([event["seq"] for event in collected], list(range(1, len(collected) + 1)))
                self.assertEqual(bool(call.events), streaming)

    def test_the_collection_is_bounded(self):
        fields = {"streaming": False, "collect_events": True, "timeout": 20}
        collected = self.client.begin("chatty", {"events": 3000}, **fields).result(25)["events"]
        self.assertTrue(0 < len(collected) <= 1000, len(collected))


class Cancellation(FixtureCase):
    def setUp(self):
        super().setUp()
        self.client = self.connected()

    def cancel(self, call_id):
        return self.client.start(message("tool/cancel/req", call_id=call_id)).answer(10)

    def test_a_canceled_call_gets_its_one_answer(self):
        call = self.client.begin("slow", {"seconds": 25})
        answer = self.cancel(call.id)
        self.assertEqual((answer["type"], answer["ok"], answer["call_id"]), ("tool/cancel/resp", True, call.id))
        result = call.result(10)
        self.assert_failed(result, "canceled")
        self.client.ping()
        self.assertEqual(len(self.client.answers_to(call.id)), 1)

    def test_what_is_over_or_never_was_cannot_be_canceled(self):
        over = self.client.begin("boom", {})
        over.result(10)
        for call_id in (over.id, "never was", ""):
            with self.subTest(call_id=call_id):
                self.assertIs(self.cancel(call_id)["ok"], False)

    def test_nobody_cancels_the_calls_of_another_session(self):
        other = self.connected()
        call = other.begin("slow", {"seconds": 1}, timeout=10)
        self.assertIs(self.cancel(call.id)["ok"], False)
        self.assertTrue(call.result(15)["success"])

    def test_ill_typed_requests_are_told_so(self):
        for fields in ({}, {"call_id": 5}, {"call_id": None}):
            with self.subTest(**fields):
                answer = self.client.start(message("tool/cancel/req", **fields)).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))


class SideBySide(FixtureCase):
    def test_slow_calls_hold_up_nobody(self):
        client = self.connected()
        slow = [client.begin("slow", {"seconds": 2}, timeout=10) for _ in range(4)]
        client.ping()
        self.assert_failed(client.call("boom", {}, timeout=10), "tool_error")
        client.list()
        self.assertEqual([call.received for call in slow], [None] * 4, "quick requests waited for slow ones")
        for call in slow:
            self.assertTrue(call.result(15)["success"])

    def test_calls_of_one_session_run_at_the_same_time(self):
        client = self.connected()
        watch = Stopwatch()
        slow = [client.begin("slow", {"seconds": 2}, timeout=20) for _ in range(8)]
        for call in slow:
            self.assertTrue(call.result(25)["success"])
        self.assertLess(watch.seconds, 12, "eight calls of two seconds each ran one after another")
