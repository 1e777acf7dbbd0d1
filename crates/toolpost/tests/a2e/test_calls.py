"""Calling tools: results of every kind, what fits into an answer, and text that breaks careless readers."""

import time

from case import FixtureCase, HostCase, ProcessCase
from client import call_message, message

HARD_TEXTS = [
    "",
    "plain",
    "\u00e9\u00fc\u4f60\u597d \U0001f600\U0001f468\u200d\U0001f469",
    "one\u2028two\u2029three\u0085four",
    "\v\f\x1c\x1d\x1e\x1f\x7f\x00\r\n\t",
    'data: {"type":"pong"}\n\ndata: x',
    '"\\u2028\\" \\ud83d',
    "\ufeff\ufffe\uffff",
]


class Results(HostCase):
    def setUp(self):
        super().setUp()
        self.client = self.connected()

    def test_a_result_whole(self):
        pending = self.client.begin("echo", {"message": "hello"})
        answer = pending.answer(10)
        self.assertRegex(answer["id"], "^[0-9a-f]{32}$")
        self.assertNotEqual(answer["id"], pending.id)
        self.assertAlmostEqual(answer["created_at"], time.time(), delta=3600)
        result = answer["data"]
        self.assertEqual((result["success"], result["tool_name"]), (True, "echo"))
        self.assertEqual(result["data"], {"text": "hello"})
        self.assertFalse(result.get("truncated", False))
        self.assertEqual(result.get("events", []), [])
        self.assertEqual(result.get("outcome", "succeeded"), "succeeded")
        self.assertTrue(result["invocation_id"])

    def test_hard_texts_come_back_as_they_were(self):
        for text in HARD_TEXTS:
            with self.subTest(text=ascii(text)):
                result = self.client.call("echo", {"message": text})
                self.assertTrue(result["success"], result)
                self.assertEqual((result.get("data") or {}).get("text", ""), text)

    def test_half_a_surrogate_is_answered(self):
        # JSON can spell it and UTF-8 cannot, so hosts differ in what they say. Silence is what none may answer.
        before = len(self.client.log)
        self.client.post(call_message("echo", {"message": "\ud800"}))
        self.client.until(lambda: len(self.client.log) > before, 10, "an answer")
        self.assertIn(self.client.log[before].message["type"], ("error", "tool/call/resp"))

    def test_text_and_structure_together(self):
        self.place.write("notes.txt", "one\ntwo\n")
        result = self.client.call("read_file", {"path": "notes.txt"})
        self.assertIn("     1\tone\n     2\ttwo", result["data"]["text"])
        self.assertEqual(result["data"]["structured"]["total_lines"], 2)
        self.assertIsInstance(result.get("summary"), str)

    def test_unknown_tools(self):
        for name in ("no_such_tool", "", "\u00e9\u2028", "x" * 1000, "../echo"):
            with self.subTest(name=name[:20]):
                result = self.client.call(name, {})
                self.assert_failed(result, "unknown_tool")
                self.assertTrue(result["error"])

    def test_what_is_not_allowed_is_denied_with_a_way_out(self):
        host = self.new_host("--mode", "never-ask")
        result = self.new_client(host).call("write_file", {"path": "a.txt", "content": "x"})
        self.assert_failed(result, "tool_denied")
        self.assertIn("hint: ", result["error"])
        self.assertFalse((host.place.workspace / "a.txt").exists())

    def test_arguments_that_do_not_fit(self):
        for arguments in ({}, {"message": 5}, {"message": None}, {"message": "x", "extra": 1}, {"msg": "x"}):
            with self.subTest(arguments=arguments):
                self.assert_failed(self.client.call("echo", arguments), "schema_violation")

    def test_a_tool_that_fails(self):
        self.assert_failed(self.client.call("read_file", {"path": "missing.txt"}), "tool_error")

    def test_the_session_may_be_named_by_either_id(self):
        for name in ("", self.client.session_id, self.client.welcome["host_session_id"]):
            with self.subTest(name=name):
                self.assertTrue(self.client.call("echo", {"message": "x"}, session_id=name)["success"])

    def test_naming_somebody_elses_session_is_refused(self):
        other = self.connected()
        for name in (other.session_id, other.welcome["host_session_id"], "0" * 32, "nobody"):
            with self.subTest(name=name):
                answer = self.client.begin("echo", {"message": "x"}, session_id=name).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "unauthorized"))

    def test_fields_left_out_take_their_defaults(self):
        pending = self.client.start({"type": "tool/call/req", "id": "bare", "tool_name": "echo",
                                     "arguments": {"message": "x"}})
        self.assertTrue(pending.result(10)["success"])

    def test_without_an_id_the_answer_belongs_to_nobody(self):
        for fields in ({}, {"id": ""}):
            with self.subTest(**fields):
                before = len(self.client.stray)
                bare = {"type": "tool/call/req", "tool_name": "echo", "arguments": {"message": "x"}}
                self.client.post(bare | fields)
                self.client.until(lambda: len(self.client.stray) > before, 10, "an answer to nobody")
                stray = self.client.stray[before]
                self.assertEqual((stray.req_id, stray.message["type"]), ("", "tool/call/resp"))

    def test_timeouts_that_mean_nothing(self):
        for timeout in (0, -1, -0.5, None, "soon", []):
            with self.subTest(timeout=timeout):
                answer = self.client.start(call_message("echo", {"message": "x"}, timeout=timeout)).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))

    def test_timeouts_that_mean_something(self):
        for timeout in (1, 1.5, 5.0, 10**6):
            with self.subTest(timeout=timeout):
                request = call_message("echo", {"message": "x"}, timeout=timeout)
                self.assertTrue(self.client.start(request).result(10)["success"])


class Writing(ProcessCase):
    def test_a_write_that_is_allowed(self):
        host = self.new_host("--mode", "edits")
        result = self.new_client(host).call("write_file", {"path": "d\u00e9j\u00e0.txt", "content": "vu\u2028"})
        self.assertTrue(result["success"], result)
        self.assertEqual(host.place.read("d\u00e9j\u00e0.txt"), "vu\u2028")


class Blocks(FixtureCase):
    def test_an_image_is_in_the_content(self):
        result = self.connected().call("image", {})
        self.assertTrue(result["success"], result)
        kinds = [block["type"] for block in result["data"]["content"]]
        self.assertIn("image", kinds)

    def test_text_up_to_the_limit_is_whole(self):
        client = self.connected()
        for chars in (1, 1000, 100_000, 300_000):
            with self.subTest(chars=chars):
                result = client.call("big", {"chars": chars}, timeout=10)
                self.assertEqual(len(result["data"]["text"]), chars)
                self.assertFalse(result.get("truncated", False))

    def test_text_over_the_limit_is_cut_and_says_so(self):
        result = self.connected().call("big", {"chars": 3_000_000}, timeout=10)
        self.assertTrue(result["success"], result)
        self.assertIs(result["truncated"], True)
        self.assertLess(len(result["data"]["text"]), 1_000_000)

    def test_non_ascii_text_that_is_long(self):
        result = self.connected().call("big", {"chars": 50_000, "text": "\u00e9\U0001f600"}, timeout=10)
        text = result["data"]["text"]
        self.assertEqual(len(text), 50_000)
        self.assertEqual(set(text), set("\u00e9\U0001f600"))

    def test_a_tool_that_fails(self):
        result = self.connected().call("boom", {})
        self.assert_failed(result, "tool_error")
        self.assertTrue(result["error"])

    def test_nested_arguments_of_the_wrong_kind(self):
        self.assert_failed(self.connected().call("nested", {"no such parameter": [[]]}), "schema_violation")


class Cores(HostCase):
    def test_pings(self):
        client = self.connected()
        ages = [client.ping().get("uptime_seconds", 0) for _ in range(3)]
        self.assertEqual(ages, sorted(ages))
        self.assertGreaterEqual(ages[0], 0)

    def test_calls_of_one_client_are_answered_once_each(self):
        client = self.connected()
        pending = [client.begin("echo", {"message": str(number)}) for number in range(50)]
        for number, one in enumerate(pending):
            self.assertEqual(one.result(10)["data"]["text"], str(number))
        client.ping()
        self.assertEqual([len(client.answers_to(one.id)) for one in pending], [1] * len(pending))
        self.assertEqual(client.stray, [])

    def test_a_message_that_is_for_nobody_leaves_nothing_behind(self):
        client = self.connected()
        client.post(message("ping", id=""))
        client.until(lambda: client.stray, 10, "a pong to nobody")
        self.assertEqual(client.stray[0].message["type"], "pong")
