"""The same message twice: POSTs are tried again by clients, and a tool must not run again for it."""

import json

import wire
from case import FixtureCase, HostCase, ProcessCase
from client import call_message, message
from host import FIXTURE


def texts(client, request_id):
    return [one.text for one in client.answers_to(request_id)]


class AfterTheAnswer(HostCase):
    arguments = ("--mode", "never-ask")

    def setUp(self):
        super().setUp()
        self.client = self.connected()

    def repeated(self, request, times=1):
        """Sends a message again and gives the texts of all its answers."""
        before = len(self.client.answers_to(request["id"]))
        for _ in range(times):
            self.client.post(request)
        wanted = before + times
        self.client.until(lambda: len(texts(self.client, request["id"])) >= wanted, 10, "the answers again")
        return texts(self.client, request["id"])

    def test_repeats_get_the_same_bytes(self):
        for tool, arguments in (
            ("echo", {"message": "x\u2028"}),
            ("echo", {}),
            ("read_file", {"path": "missing"}),
            ("write_file", {"path": "../a", "content": "refused"}),
            ("no_such_tool", {}),
        ):
            with self.subTest(tool=tool):
                call = self.client.begin(tool, arguments)
                call.answer(10)
                self.assertEqual(set(self.repeated(call.request, 3)), {call.received.text})

    def test_what_is_not_part_of_the_call_may_differ(self):
        call = self.client.begin("echo", {"message": "x"})
        call.answer(10)
        other = dict(reversed(call.request.items())) | {"ts": 5, "correlation_id": "another"}
        self.assertEqual(set(self.repeated(other)), {call.received.text})

    def test_the_same_id_for_something_else_is_an_error(self):
        call = self.client.begin("echo", {"message": "x"})
        call.answer(10)
        for fields in ({"arguments": {"message": "y"}}, {"tool_name": "read_file", "arguments": {"path": "x"}}):
            with self.subTest(**fields):
                latest = json.loads(self.repeated(call.request | fields)[-1])
                self.assertEqual((latest["type"], latest.get("code")), ("error", "invalid_message"))
                self.assertIn("id", latest["message"])
        self.assertEqual(self.repeated(call.request)[-1], call.received.text)

    def test_pings_and_lists_may_be_repeated(self):
        for request in (message("ping"), message("tool/list/req")):
            with self.subTest(type=request["type"]):
                kinds = {json.loads(text)["type"] for text in self.repeated(request, 3)}
                self.assertEqual(len(kinds), 1)
                self.assertNotIn("error", kinds)

    def test_a_handshake_may_be_repeated(self):
        shake = self.client.shake()
        shake.answer(10)
        answers = [json.loads(text) for text in self.repeated(shake.request)]
        self.assertEqual([(one["type"], one.get("ok", True)) for one in answers], [("handshake/resp", True)] * 2)


class SideEffects(ProcessCase):
    def setUp(self):
        super().setUp()
        self.host = self.new_host("--mode", "edits")
        self.client = self.new_client(self.host)

    def test_a_repeat_does_not_write_again(self):
        first = self.client.begin("write_file", {"path": "a.txt", "content": "one"})
        self.assertTrue(first.result(10)["success"])
        self.assertTrue(self.client.call("write_file", {"path": "a.txt", "content": "two"})["success"])
        self.client.post(first.request)
        self.client.until(lambda: len(texts(self.client, first.id)) == 2, 10, "the answer again")
        self.assertEqual(len(set(texts(self.client, first.id))), 1)
        self.assertEqual(self.host.place.read("a.txt"), "two")

    def test_a_post_whose_answer_was_lost_is_one_call(self):
        self.client.transport.lose_answers(2)
        call = self.client.begin("write_file", {"path": "b.txt", "content": "once"})
        result = call.result(15)
        self.assertTrue(result["success"], result)
        self.assertIs(result["data"]["structured"]["created"], True, "it was written twice")
        self.assertEqual(len(self.client.transport.retries), 2)
        self.assertFalse(self.client.transport.dead)
        self.client.ping()
        self.assertEqual(len(set(texts(self.client, call.id))), 1)

    def test_a_repeat_after_a_restart_gets_the_same_bytes_and_does_nothing(self):
        call = self.client.begin("write_file", {"path": "c.txt", "content": "one"})
        self.assertTrue(call.result(10)["success"])
        self.host.kill()
        self.host.place.write("c.txt", "changed by a person")
        self.host.start()
        self.client.transport.abandon()
        session = wire.Session(self.host.address, session_id=self.client.session_id)
        self.addCleanup(session.close)
        stream = self.open_stream(session)
        stream.until_answer(call.id)
        session.send(call.request)
        frames = stream.until_answer(call.id)
        self.assertEqual(frames[-1].text, call.received.text)
        self.assertEqual(self.host.place.read("c.txt"), "changed by a person")


class OverARestart(ProcessCase):
    program = FIXTURE

    def test_a_repeat_of_a_call_that_was_running_gets_one_answer(self):
        host = self.new_host()
        session = self.new_session(host)
        stream = self.open_stream(session)
        request = call_message("slow", {"seconds": 2}, timeout=20)
        session.send(request)
        stream.answer(session.ping())
        host.kill()
        session.close()
        host.start()
        stream = self.open_stream(session)
        self.assertEqual(stream.status, 200)
        # Before, and while, the stream brings up what is still open.
        for _ in range(3):
            session.send(request)
        frames = stream.until_answer(request["id"], seconds=20)
        frames += stream.until_answer(session.ping())
        answers = [frame.message for frame in frames if frame.message.get("req_id") == request["id"]]
        self.assertEqual([one["type"] for one in answers], ["tool/call/resp"], answers)
        session.send(request)
        self.assertEqual(stream.answer(request["id"]), answers[0])


class UnderWay(FixtureCase):
    def setUp(self):
        super().setUp()
        self.client = self.connected()

    def test_repeats_of_a_running_call_are_passed_over(self):
        call = self.client.begin("slow", {"seconds": 1}, timeout=10)
        for _ in range(5):
            self.client.post(call.request)
        self.assertTrue(call.result(15)["success"])
        self.client.ping()
        self.assertEqual(len(self.client.answers_to(call.id)), 1)

    def test_another_call_under_the_id_of_a_running_one_is_refused(self):
        session = self.session()
        stream = self.open_stream(session)
        request = call_message("slow", {"seconds": 1}, timeout=10)
        session.send(request)
        session.send(request | {"arguments": {"seconds": 0.01}})
        first = stream.answer(request["id"])
        self.assertEqual((first["type"], first.get("code")), ("error", "invalid_message"))
        second = stream.answer(request["id"])
        self.assertEqual((second["type"], second["data"]["success"]), ("tool/call/resp", True))

    def test_a_client_that_sends_everything_twice(self):
        client = self.connected(copies=2)
        calls = [client.begin("slow", {"seconds": 0.1}, timeout=20) for _ in range(20)]
        for call in calls:
            self.assertTrue(call.result(25)["success"])
        client.ping()
        for call in calls:
            self.assertEqual(set(texts(client, call.id)), {call.received.text})

    def test_a_repeat_after_a_failure_gets_the_failure(self):
        call = self.client.begin("boom", {}, timeout=10)
        call.answer(10)
        self.client.post(call.request)
        self.client.until(lambda: len(texts(self.client, call.id)) == 2, 10, "the answer again")
        self.assertEqual(set(texts(self.client, call.id)), {call.received.text})

    def test_a_repeat_of_a_call_that_ran_out_of_time(self):
        call = self.client.begin("slow", {"seconds": 25}, timeout=1)
        self.assert_failed(call.result(6), "timeout")
        self.client.post(call.request)
        self.client.until(lambda: len(texts(self.client, call.id)) == 2, 10, "the answer again")
        self.assertEqual(set(texts(self.client, call.id)), {call.received.text})
