"""Under load and under attack: bursts, crowds, floods, readers that stall, and hosts that are killed."""

import threading

import wire
from case import FixtureCase, HostCase, ProcessCase
from client import call_message, message
from waiting import until

MEGABYTE = 1 << 20


class Crew:
    """Threads that are waited for, and whose failures are the test's."""

    def __init__(self, case):
        self._case = case
        self._threads = []
        self._failures = []

    def start(self, work, *arguments):
        def guarded():
            try:
                work(*arguments)
            except BaseException as failure:  # Handed to the test below, whatever it is.
                self._failures.append(failure)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self._threads.append(thread)

    def join(self, seconds):
        for thread in self._threads:
            thread.join(seconds)
            self._case.assertFalse(thread.is_alive(), "a thread hangs")
        if self._failures:
            raise self._failures[0]


class Bursts(HostCase):
    def burst(self, client, count):
        calls = [client.begin("echo", {"message": str(number)}) for number in range(count)]
        for number, call in enumerate(calls):
            self.assertEqual(call.result(25)["data"]["text"], str(number))
        client.ping()
        self.assertEqual([len(client.answers_to(call.id)) for call in calls], [1] * count)
        self.assertEqual(client.stray, [])

    def test_five_hundred_calls_of_one_client(self):
        self.burst(self.connected(), 500)

    def test_several_clients_at_once(self):
        crew = Crew(self)
        for client in [self.connected() for _ in range(8)]:
            crew.start(self.burst, client, 60)
        crew.join(25)

    def test_several_callers_on_one_client(self):
        client = self.connected()

        def work(name):
            for number in range(20):
                text = f"{name}-{number}"
                self.assertEqual(client.call("echo", {"message": text}, timeout=15)["data"]["text"], text)

        crew = Crew(self)
        for name in range(16):
            crew.start(work, name)
        crew.join(25)

    def test_more_than_fits_is_answered_too(self):
        client = self.connected()
        calls = [client.begin("echo", {"message": "x"}) for _ in range(1500)]
        for call in calls:
            answer = call.wait(25)
            if answer["type"] == "tool/call/resp" and not answer["data"]["success"]:
                self.assertEqual(answer["data"]["error_code"], "queued")


class Floods(HostCase):
    def flood(self, bodies, count):
        """Sends garbage as fast as it goes. The host may slow it down, but must not break."""
        session = self.session()
        for number in range(count):
            status = session.post(bodies[number % len(bodies)]).status
            self.assertIn(status, (200, 404, 429))

    def test_garbage_does_not_disturb_others(self):
        client = self.connected()
        bodies = [b"{", b"\xff", b"[]", b"[" * 5000, b'{"type":"nope","id":"a"}', b'{"type":"tool/call/req"}']
        crew = Crew(self)
        for _ in range(4):
            crew.start(self.flood, bodies, 500)
        for number in range(50):
            self.assertEqual(client.call("echo", {"message": str(number)}, timeout=5)["data"]["text"], str(number))
        crew.join(25)

    def test_garbage_nobody_reads_is_not_kept(self):
        before = self.host.resident_bytes()
        crew = Crew(self)
        for _ in range(4):
            crew.start(self.flood, [b'{"type":"nope","id":"' + b"i" * 4000 + b'"}'], 2500)
        crew.join(25)
        grown = self.host.resident_bytes() - before
        self.assertLess(grown, 150 * MEGABYTE, "40 MB of garbage were kept, and more than once")

    def test_sessions_that_come_and_go_leave_nothing_behind(self):
        def visit():
            client = self.connected()
            client.call("echo", {"message": "hello"}, timeout=10)
            client.disconnect()

        for _ in range(5):
            visit()
        descriptors, threads = self.host.descriptors(), self.host.threads()
        for _ in range(100):
            visit()
        until(lambda: self.host.descriptors() <= descriptors + 10, 10, "the descriptors are given back")
        self.assertLessEqual(self.host.threads(), threads + 20)

    def test_connections_that_break_off_leave_nothing_behind(self):
        descriptors = self.host.descriptors()
        session = self.session()
        for _ in range(100):
            stream = session.stream()
            stream.close()
        until(lambda: self.host.descriptors() <= descriptors + 10, 10, "the descriptors are given back")
        self.assertEqual(wire.request(self.host.address, "GET", "/health").status, 200)


class StalledReaders(FixtureCase):
    def test_undelivered_answers_are_bounded_and_none_is_lost(self):
        session = self.session()
        stream = self.open_stream(session, receive_buffer=4096)
        stream.next()
        before = self.host.resident_bytes()
        accepted, slowed_down = [], 0
        for _ in range(400):
            request = call_message("big", {"chars": 100_000}, timeout=30)
            status = session.post(request).status
            self.assertIn(status, (200, 429))
            if status == 200:
                accepted.append(request["id"])
            else:
                slowed_down += 1
        grown = self.host.resident_bytes() - before
        self.assertLess(grown, 200 * MEGABYTE, "40 MB of answers were kept for a reader that does not read")
        answers = {}
        while len(answers) < len(accepted):
            answer = stream.next(20).message
            if answer["type"] in ("tool/call/resp", "error"):
                answers[answer["req_id"]] = answer
        self.assertEqual(set(answers), set(accepted))
        refused = [one["code"] for one in answers.values() if one["type"] == "error"]
        self.assertLessEqual(set(refused), {"slow_reader"})
        self.assertTrue(refused or slowed_down, "the bound does not bite")
        again = session.call("big", {"chars": 10})
        self.assertTrue(stream.answer(again)["data"]["success"], "it was not forgiven")

    def test_calls_without_an_id_are_bounded_too(self):
        session = self.session()
        before = self.host.resident_bytes()
        request = call_message("big", {"chars": 300_000}, timeout=30)
        del request["id"]
        for _ in range(300):
            session.send(request)
        self.assertLess(self.host.resident_bytes() - before, 80 * MEGABYTE, "90 MB of answers were kept")
        stream = self.open_stream(session)
        kinds = []
        while len(kinds) < 300:
            answer = stream.next(20).message
            if answer["type"] != "handshake/resp":
                kinds.append(answer.get("code", answer["type"]))
        self.assertEqual(set(kinds), {"tool/call/resp", "slow_reader"})

    def test_a_list_behind_unread_answers_is_refused_on_the_stream(self):
        session = self.session()
        # Far more than may wait, as the last of them may still run.
        for _ in range(150):
            session.call("big", {"chars": 300_000}, timeout=30)
        refused = session.send(message("tool/list/req", id="behind"))
        stream = self.open_stream(session)
        answer = stream.answer(refused, 20)
        self.assertEqual((answer["type"], answer.get("code")), ("error", "slow_reader"))
        # Everything before it has been read by now.
        self.assertEqual(stream.answer(session.send(message("tool/list/req")))["type"], "tool/list/resp")

    def test_large_words_of_small_requests_are_bounded_too(self):
        words = "w" * (4 * MEGABYTE - 4096)
        for make in (
            lambda: message("tool/cancel/req", call_id=words),
            lambda: message("tool/list/req", query=words),
            lambda: call_message(words, {}),
        ):
            with self.subTest(type=make()["type"]):
                session = self.session()
                before = self.host.resident_bytes()
                for _ in range(15):
                    self.assertIn(session.post(make()).status, (200, 429))
                self.assertLess(self.host.resident_bytes() - before, 40 * MEGABYTE)

    def test_events_are_dropped_before_answers(self):
        client = self.connected(receive_buffer=4096)
        client.transport.stop_reading()
        before = self.host.resident_bytes()
        call = client.begin("chatty", {"events": 50_000}, timeout=20)
        other = client.begin("boom", {}, timeout=20)
        self.assertLess(self.host.resident_bytes() - before, 100 * MEGABYTE)
        # The call ends while nobody reads; another client can tell when that is.
        witness = self.connected()
        self.assertTrue(witness.call("chatty", {"events": 50_000}, streaming=False, timeout=20)["success"])
        client.transport.go_on_reading()
        self.assertTrue(call.result(20)["success"])
        self.assert_failed(other.result(10), "tool_error")
        numbers = [event["seq"] for event in call.events]
        self.assertEqual(numbers, sorted(set(numbers)), "events came twice or out of order")

    def test_a_stalled_reader_holds_up_nobody_else(self):
        stalled, lively = self.connected(receive_buffer=4096), self.connected()
        stalled.transport.stop_reading()
        calls = [stalled.begin("big", {"chars": 100_000}, timeout=20) for _ in range(30)]
        for _ in range(20):
            self.assert_failed(lively.call("boom", {}, timeout=5), "tool_error")
        stalled.transport.go_on_reading()
        for call in calls:
            self.assertTrue(call.result(25)["success"])


class Killed(ProcessCase):
    """The host dies without a word and is started again; the client finds its way back by itself."""

    def work(self, client, calls, stop):
        while not stop.is_set():
            calls.append(client.begin("echo", {"message": str(len(calls))}, timeout=20))
            if len(calls) % 20 == 0:
                calls[-1].wait(25)

    def test_every_call_gets_an_answer(self):
        host = self.new_host()
        client = self.new_client(host)
        calls, stop, crew = [], threading.Event(), Crew(self)
        crew.start(self.work, client, calls, stop)
        for _ in range(2):
            mark = len(calls) + 60
            until(lambda: len(calls) >= mark, 15, "calls are made")
            host.kill()
            host.start()
        stop.set()
        crew.join(25)
        for call in calls:
            answer = call.wait(20)
            self.assertEqual(answer["type"], "tool/call/resp", answer)
            result = answer["data"]
            if not result["success"]:
                self.assertIn(result.get("outcome"), ("canceled", "unknown"), result)
        self.assertFalse(client.transport.dead)
        self.assertGreaterEqual(sum(call.received.message["data"]["success"] for call in calls), 100)

    def test_writes_are_never_made_twice(self):
        host = self.new_host("--mode", "edits")
        client = self.new_client(host)
        calls = []
        for number in range(30):
            arguments = {"path": f"out/{number}.txt", "content": str(number), "create_directories": True}
            calls.append(client.begin("write_file", arguments, timeout=20))
            if number == 15:
                host.kill()
                host.start()
        for number, call in enumerate(calls):
            result = call.result(25)
            if result["success"]:
                self.assertEqual(host.place.read(f"out/{number}.txt"), str(number))
                self.assertIs(result["data"]["structured"]["created"], True, "it was written twice")
            else:
                self.assertIn(result.get("outcome"), ("canceled", "unknown"), result)

    def test_a_ping_after_the_restart(self):
        host = self.new_host()
        client = self.new_client(host)
        host.kill()
        host.start()
        client.start(message("ping")).answer(15)
