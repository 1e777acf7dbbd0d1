"""A person is asked: the agent sees that it waits, hears the answer, and may come back for it."""

import http.client
import json
import socket

from case import ProcessCase
from waiting import until

YES, NO = {"decision": "allow"}, {"decision": "deny", "feedback": "use a branch of your own"}


class OverSocket(http.client.HTTPConnection):
    """The operator's way in: the unix socket of the data directory."""

    def __init__(self, place):
        super().__init__("localhost", timeout=10)
        self.path = str(place.data_dir / "socket")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Asked(ProcessCase):
    def operator(self, method, path, body=None):
        connection = OverSocket(self.place)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def questions(self):
        status, body = self.operator("GET", "/approvals")
        self.assertEqual(status, 200)
        return body["approvals"]

    def question(self):
        [question] = until(self.questions, 10, "a question")
        return question

    def answer(self, question, verdict):
        status, body = self.operator("POST", f"/approvals/{question['ask_id']}", verdict)
        self.assertEqual(status, 200, body)
        return body["decided"]

    def setUp(self):
        super().setUp()
        self.place = self.new_place()
        self.host = self.new_host(place=self.place)
        self.client = self.new_client(self.host)

    def begin(self, path="a.txt", **fields):
        return self.client.begin("write_file", {"path": path, "content": "x"}, **fields)

    def written(self, path="a.txt"):
        return (self.place.workspace / path).exists()

    def statuses(self, pending):
        return [event["data"] for event in pending.events if event["kind"] == "status" and "permission" in event["data"]]

    def test_the_agent_sees_that_it_waits_and_gets_its_result(self):
        pending = self.begin()
        self.client.until(lambda: self.statuses(pending), 10, "a status event")
        question = self.question()
        [status] = self.statuses(pending)
        self.assertEqual((status["permission"], status["ask_id"]), ("pending", question["ask_id"]))
        self.assertEqual(status["expires_at"], question["expires_at"])
        self.assertTrue(status["message"])
        self.assertFalse(self.written())
        self.answer(question, YES)
        result = pending.result(10)
        self.assertTrue(result["success"], result)
        self.assertEqual([one["permission"] for one in self.statuses(pending)], ["pending", "granted"])
        self.assertEqual(result["invocation_id"], question["ask_id"])
        self.assertTrue(self.written())

    def test_a_no_is_a_denial_with_its_reason(self):
        pending = self.begin()
        self.answer(self.question(), NO)
        result = pending.result(10)
        self.assert_failed(result, "tool_denied")
        self.assertIn("use a branch of your own", result["error"])
        self.assertEqual(result.get("error_class"), "approval_rejected")
        self.assertFalse(self.written())

    def test_who_waits_no_longer_is_told_and_may_come_back_once(self):
        result = self.begin(timeout=1).result(6)
        self.assert_failed(result, "approval_pending")
        question = self.question()
        self.assertIn(question["ask_id"], result["error"])
        self.assertEqual(question["waiting"], 0)
        decided = self.answer(question, YES)
        self.assertTrue(decided["kept_until"])
        self.assertFalse(self.written(), "nothing runs for somebody who is not there")
        again = self.begin(timeout=10).result(15)
        self.assertTrue(again["success"], again)
        self.assertEqual(self.questions(), [])
        self.assertTrue(self.written())
        self.assert_failed(self.begin(timeout=1).result(6), "approval_pending")

    def test_the_same_message_again_gets_the_later_answer(self):
        first = self.begin(timeout=1)
        self.assert_failed(first.result(6), "approval_pending")
        self.answer(self.question(), YES)
        again = self.client.start(first.request | {"timeout": 10})
        self.assertTrue(again.result(15)["success"])
        self.assertEqual(self.questions(), [])

    def test_a_call_that_is_asked_about_can_be_canceled(self):
        pending = self.begin()
        question = self.question()
        self.client.start({"type": "tool/cancel/req", "id": "c", "call_id": pending.id}).answer(10)
        self.assert_failed(pending.result(10), "canceled")
        self.assertEqual(self.questions(), [])
        status, body = self.operator("POST", f"/approvals/{question['ask_id']}", YES)
        self.assertEqual((status, body["error"]["code"]), (410, "withdrawn"))

    def test_a_question_outlives_the_host_and_the_session_hears_the_end(self):
        pending = self.begin(timeout=25)
        question = self.question()
        self.host.kill()
        self.host.start()
        self.assertEqual(self.question()["ask_id"], question["ask_id"])
        self.answer(question, YES)
        result = pending.result(20)
        self.assertTrue(result["success"], result)
        self.assertEqual(result["invocation_id"], question["ask_id"])
        self.assertTrue(self.written())

    def test_no_agent_answers(self):
        self.begin()
        question = self.question()
        connection = http.client.HTTPConnection(*self.host.address, timeout=10)
        self.addCleanup(connection.close)
        headers = {"Authorization": f"Bearer {self.host.token}", "Content-Type": "application/json"}
        connection.request("POST", f"/approvals/{question['ask_id']}", json.dumps(YES), headers)
        response = connection.getresponse()
        self.assertEqual((response.status, json.loads(response.read())["error"]["code"]), (403, "operators_only"))
        self.answer(question, NO)


class Background(ProcessCase):
    def setUp(self):
        super().setUp()
        self.host = self.new_host("--mode", "edits")
        self.client = self.new_client(self.host)

    def test_a_call_in_the_background_is_answered_at_once(self):
        result = self.client.call("write_file", {"path": "a.txt", "content": "x"}, background=True)
        self.assertTrue(result["success"], result)
        self.assertEqual(result["data"]["status"], "backgrounded")
        id = result["data"]["invocation_id"]
        self.assertEqual(result["invocation_id"], id)
        until(lambda: (self.host.place.workspace / "a.txt").exists(), 10, "the file")
        # Its end comes by no message: whoever wants it asks for it.
        self.client.ping()
        self.assertEqual(self.client.stray, [])

    def test_a_place_in_a_batch(self):
        place = {"id": "turn", "index": 0}
        first = self.client.begin("echo", {"message": "one"}, batch=place)
        second = self.client.begin("echo", {"message": "two"}, batch=place | {"index": 1, "depends_on": [0]})
        self.assertEqual([one.result(10)["data"]["text"] for one in (first, second)], ["one", "two"])

    def test_places_that_are_none(self):
        for place in ({}, {"id": "x"}, {"id": "x", "index": -1}, [], "x", {"id": "x", "index": 0, "more": 1}):
            with self.subTest(place=place):
                answer = self.client.begin("echo", {"message": "x"}, batch=place).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))
