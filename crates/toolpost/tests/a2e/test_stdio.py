"""The host as a child: one message a line, nothing else on stdout, a stderr nobody reads, and an end in time."""

import io
import json
import os
import threading

import strict
from case import ProcessCase
from client import Refused, call_message, message
from host import FIXTURE, start_on_stdio
from over_stdio import EXIT_PATIENCE
from waiting import Stopwatch


def lines(*messages):
    return "".join(json.dumps(one) + "\n" for one in messages).encode()


SHAKE = message("handshake/req", agent_id="raw", agent_caps=["tools"], auth_token="")


class Talking(ProcessCase):
    def test_the_stock_client_byte_by_byte(self):
        client = self.new_stdio_client(bytewise=True)
        self.assertIn("echo", client.list())
        result = client.call("echo", {"message": "\u00e9\u2028\U0001f600"})
        self.assertEqual(result["data"], {"text": "\u00e9\u2028\U0001f600"})
        self.assertGreaterEqual(client.ping().get("uptime_seconds", 0), 0)
        self.assertEqual(client.disconnect(), 0)
        self.assertIsNone(client.transport.forced)

    def test_tokens(self):
        place = self.new_place()
        with self.assertRaises(Refused) as caught:
            self.new_stdio_client(token="not known here", place=place)
        self.assertEqual(caught.exception.reason.split(":")[0], "auth_failed")

    def test_before_the_handshake_only_pings_are_answered(self):
        client = self.new_stdio_client(connect=False).open()
        client.ping()
        self.assertEqual(client.start(message("tool/list/req")).wait(10).get("code"), "unauthorized")

    def test_one_host_after_another_on_the_same_record(self):
        place = self.new_place()
        for number in range(3):
            client = self.new_stdio_client(place=place)
            self.assertTrue(client.call("echo", {"message": str(number)})["success"])
            self.assertEqual(client.disconnect(), 0)

    def test_files_and_denials(self):
        place = self.new_place()
        place.write("notes.txt", "hello\n")
        client = self.new_stdio_client("--mode", "never-ask", place=place)
        self.assertIn("hello", client.call("read_file", {"path": "notes.txt"})["data"]["text"])
        self.assert_failed(client.call("write_file", {"path": "a", "content": "b"}), "tool_denied")


class Framing(ProcessCase):
    """Bytes in, bytes out, and then the end."""

    def exchange(self, raw, *arguments, seconds=10, environment=None):
        """Writes everything, closes, and gives the messages and the exit code."""
        process = start_on_stdio(self.program, self.new_place(), arguments, environment)
        self.addCleanup(process.kill)
        output, _ = process.communicate(raw, timeout=seconds)
        self.assertTrue(output.isascii())
        self.assertNotIn(b"\r", output)
        self.assertTrue(not output or output.endswith(b"\n"))
        return [strict.read(line) for line in output.decode("ascii").splitlines()], process.returncode

    def test_nothing_in_nothing_out(self):
        self.assertEqual(self.exchange(b""), ([], 0))

    def test_empty_lines_and_carriage_returns(self):
        good = lines(SHAKE, message("ping", id="p")).replace(b"\n", b"\r\n")
        answers, code = self.exchange(b"\n\r\n" + good + b"\n")
        self.assertEqual([one["type"] for one in answers], ["handshake/resp", "pong"])
        self.assertEqual(code, 0)

    def test_a_last_line_without_an_end(self):
        for rest in (b"{", b'{"type":"ping","id":"last"}'):
            with self.subTest(rest=rest):
                answers, code = self.exchange(lines(SHAKE) + rest)
                self.assertEqual(answers[0]["type"], "handshake/resp")
                self.assertEqual(code, 0)

    def test_garbage_between_good_lines(self):
        for garbage, expected in (
            (b"{\n", "parse_error"),
            (b"hello there\n", "parse_error"),
            (b"\xff\xfe\x00\n", "parse_error"),
            (b'{"type":"ping","id":"\xe9"}\n', "parse_error"),
            (b"[" * 100_000 + b"\n", "parse_error"),
            (b"[]\n", "invalid_message"),
            (b'{"type":"ping","id":5}\n', "invalid_message"),
            (b"x" * (6 << 20) + b"\n", "message_too_large"),
        ):
            with self.subTest(garbage=garbage[:20]):
                answers, code = self.exchange(lines(SHAKE) + garbage + lines(message("ping", id="after")))
                kinds = [(one["type"], one.get("code")) for one in answers]
                self.assertEqual(kinds, [("handshake/resp", None), ("error", expected), ("pong", None)])
                self.assertEqual(code, 0)

    def test_what_cannot_be_read_is_told_under_its_id(self):
        for request_id, rest, expected in (
            ("long", b'"arguments":{"x":"' + b"y" * (5 << 20) + b'"}}', "message_too_large"),
            ("deep", b'"arguments":' + b'{"a":' * 200 + b"1" + b"}" * 201, "parse_error"),
            ("nan", b'"arguments":{"x":NaN}}', "parse_error"),
        ):
            with self.subTest(id=request_id):
                body = b'{"type":"tool/call/req","id":"%s",' % request_id.encode() + rest + b"\n"
                answers, _ = self.exchange(lines(SHAKE) + body)
                self.assertEqual((answers[1].get("code"), answers[1]["req_id"]), (expected, request_id))

    def test_calls_right_before_the_end_are_answered(self):
        calls = [call_message("echo", {"message": str(number)}) for number in range(20)]
        answers, code = self.exchange(lines(SHAKE, *calls))
        answered = {one["req_id"] for one in answers if one["type"] == "tool/call/resp"}
        self.assertEqual(answered, {call["id"] for call in calls})
        self.assertEqual(code, 0)

    def test_debugging_never_reaches_stdout(self):
        answers, _ = self.exchange(lines(SHAKE, message("ping", id="p")), environment={"TOOLPOST_LOG": "trace"})
        self.assertEqual([one["type"] for one in answers], ["handshake/resp", "pong"])


class StderrIsNeverRead(ProcessCase):
    def test_a_flood_of_complaints_does_not_block_the_host(self):
        client = self.new_stdio_client(environment={"TOOLPOST_LOG": "trace"})
        for number in range(3000):
            client.transport.send_bytes(b"garbage that is worth a complaint " + b"x" * 100 + b"\n")
        client.until(lambda: len(client.stray) >= 3000, 20, "every line is answered")
        self.assertTrue(client.call("echo", {"message": "still here"}, timeout=5)["success"])
        self.assertEqual(client.disconnect(), 0)
        self.assertIsNone(client.transport.forced)


class Bursts(ProcessCase):
    def test_five_hundred_calls_at_once(self):
        client = self.new_stdio_client()
        calls = [client.begin("echo", {"message": str(number)}) for number in range(500)]
        for number, call in enumerate(calls):
            self.assertEqual(call.result(25)["data"]["text"], str(number))
        client.ping()
        self.assertEqual(client.stray, [])

    def test_a_client_that_reads_only_after_it_has_written_everything(self):
        client = self.new_stdio_client(connect=False, reads=False).open()
        shake = client.shake()
        pings = []
        writer = threading.Thread(target=lambda: pings.extend(client.start(message("ping")) for _ in range(5000)))
        writer.start()
        # The pipes hold 64 KiB, so at some point both sides may have to wait; the reader then sets them free.
        writer.join(1)
        client.transport.go_on_reading()
        writer.join(20)
        self.assertFalse(writer.is_alive(), "the host stopped reading for good")
        self.assertTrue(shake.answer(10).get("ok", True))
        for ping in pings:
            ping.answer(10)

    def test_a_flood_for_a_reader_that_comes_late_is_answered_in_full(self):
        count = 60_000
        process = start_on_stdio(self.program, self.new_place())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        raw = lines(SHAKE) + b"".join(b'{"type":"ping","id":"%d"}\n' % number for number in range(count))

        def write():
            left = memoryview(raw)
            while left:
                left = left[os.write(process.stdin.fileno(), left) :]

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        # Long enough for both pipes, and all that the host keeps, to be full.
        writer.join(3)
        output = io.BufferedReader(process.stdout, 1 << 16)
        self.assertEqual(json.loads(output.readline())["type"], "handshake/resp")
        answered = [int(json.loads(output.readline())["req_id"]) for _ in range(count)]
        self.assertEqual(answered, list(range(count)))
        writer.join(5)
        self.assertFalse(writer.is_alive())

    def test_long_lines_both_ways(self):
        client = self.new_stdio_client()
        text = "\u00e9" * 45_000
        self.assertEqual(client.call("echo", {"message": text})["data"]["text"], text)


class Ending(ProcessCase):
    program = FIXTURE

    def test_idle_hosts_end_with_their_input(self):
        client = self.new_stdio_client()
        watch = Stopwatch()
        self.assertEqual(client.transport.close(), 0)
        self.assertLess(watch.seconds, EXIT_PATIENCE)
        self.assertIsNone(client.transport.forced)

    def test_running_calls_are_answered_before_the_end(self):
        for goodbye in (False, True):
            with self.subTest(goodbye=goodbye):
                client = self.new_stdio_client()
                calls = [client.begin("slow", {"seconds": 25}) for _ in range(3)]
                client.ping()
                self.assertEqual(client.disconnect() if goodbye else client.transport.close(), 0)
                self.assertIsNone(client.transport.forced, "it did not end within the client's patience")
                for call in calls:
                    self.assert_failed(call.result(1), "canceled")

    def test_work_that_is_nearly_done_may_finish(self):
        client = self.new_stdio_client()
        call = client.begin("slow", {"seconds": 0.3})
        client.ping()
        self.assertEqual(client.disconnect(), 0)
        self.assertTrue(call.result(1)["success"])

    def test_a_client_that_vanishes(self):
        client = self.new_stdio_client(connect=False)
        process = client.transport.process
        client.transport.send_bytes(lines(SHAKE, *(call_message("big", {"chars": 100_000}) for _ in range(20))))
        process.stdout.close()
        process.stdin.close()
        process.wait(EXIT_PATIENCE + 7)

    def test_a_client_that_does_not_read_cannot_keep_the_host_alive(self):
        client = self.new_stdio_client(connect=False)
        process = client.transport.process
        client.transport.send_bytes(lines(SHAKE, *(call_message("big", {"chars": 100_000}) for _ in range(20))))
        process.stdin.close()
        process.wait(EXIT_PATIENCE + 7)


class EventsOverStdio(ProcessCase):
    program = FIXTURE

    def test_events_before_the_answer(self):
        client = self.new_stdio_client()
        call = client.begin("chatty", {"events": 20, "pause_ms": 2}, timeout=10)
        self.assertTrue(call.result(15)["success"])
        self.assertEqual([event["seq"] for event in call.events], list(range(1, len(call.events) + 1)))
        self.assertGreaterEqual(len(call.events), 20)

    def test_cancel(self):
        client = self.new_stdio_client()
        call = client.begin("slow", {"seconds": 25})
        self.assertIs(client.start(message("tool/cancel/req", call_id=call.id)).answer(10)["ok"], True)
        self.assert_failed(call.result(10), "canceled")
