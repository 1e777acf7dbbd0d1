"""The event stream: its head, its frames, and what happens to answers while nobody or somebody else reads."""

import re

from case import FixtureCase, HostCase
from client import message
from waiting import Stopwatch, until

LONGEST_LINE = 64 * 1024


def is_answer(frame):
    return frame.message["type"] == "tool/call/resp"


class Head(HostCase):
    def test_headers(self):
        stream = self.open_stream(self.session())
        self.assertEqual(stream.status, 200)
        media_type = stream.headers["content-type"].replace(" ", "").lower()
        self.assertEqual(media_type, "text/event-stream;charset=utf-8")
        self.assertIn("no-cache", stream.headers["cache-control"])
        self.assertEqual(stream.headers["transfer-encoding"].lower(), "chunked")
        for name in ("content-encoding", "content-length"):
            self.assertNotIn(name, stream.headers)

    def test_the_head_comes_before_there_is_anything_to_say(self):
        session = self.session()
        first = self.open_stream(session)
        first.until(lambda one: one["type"] == "handshake/resp")
        self.assertEqual(self.open_stream(session).status, 200)


class Frames(HostCase):
    def setUp(self):
        super().setUp()
        self.sender = self.session()
        self.stream = self.open_stream(self.sender)
        self.welcome = self.stream.next()

    def test_frames_are_numbered_and_plain(self):
        frames = [self.welcome]
        for number in range(10):
            frames += self.stream.until_answer(self.sender.call("echo", {"message": f"\u00e9\u2028\r\n{number}"}))
        numbers = []
        for frame in frames:
            self.assertTrue(frame.raw.isascii())
            self.assertNotIn(b"\r", frame.raw)
            epoch, number = re.fullmatch(r"(\S+)-(\d+)", frame.id).groups()
            self.assertEqual(epoch, frames[0].id.rpartition("-")[0])
            numbers.append(int(number))
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_messages_are_compact(self):
        frame = self.stream.until_answer(self.sender.call("echo", {"message": "x"}))[-1]
        self.assertEqual(len(frame.data), 1)
        self.assertNotRegex(frame.text, r'[:,] |[{\[] ')
        self.assertTrue(frame.text.startswith('{"type":"tool/call/resp",'), frame.text)

    def test_a_large_message_is_spread_over_lines(self):
        host = self.new_host(config="limits: { inline_chars: 1000000 }\n")
        for number in range(4000):
            host.place.write(f"many/file-{number:04}", "")
        sender = self.new_session(host)
        stream = self.open_stream(sender)
        stream.next()
        call = sender.call("list_directory", {"path": "many", "limit": 4000})
        frame = stream.until_answer(call)[-1]
        result = frame.message["data"]
        self.assertEqual(len(result["data"]["structured"]["entries"]), 4000)
        text_itself = len(result["data"]["text"])
        self.assertGreater(len(frame.text), 100_000 + text_itself)
        longest = max(len(line) for line in frame.data)
        # One string cannot be cut, so the line that holds the text may be as long as that; nothing else may.
        self.assertLess(longest, 2 * text_itself + LONGEST_LINE)
        others = sorted(len(line) for line in frame.data)[:-1]
        self.assertLess(others[-1], LONGEST_LINE)
        self.assertGreater(len(frame.data), 5)

    def test_quiet_streams_are_kept_alive(self):
        frame = self.stream.next(seconds=25, comments=True)
        self.assertTrue(frame.comment)
        self.assertEqual(frame.data, ())


class Buffering(HostCase):
    def test_what_is_said_before_the_first_stream_is_kept_in_order(self):
        session = self.session()
        calls = [session.call("echo", {"message": str(number)}) for number in range(20)]
        stream = self.open_stream(session)
        self.assertEqual(stream.next().message["type"], "handshake/resp")
        found = {}
        while len(found) < len(calls):
            answer = stream.next().message
            found[answer["req_id"]] = answer["data"]["data"]["text"]
        self.assertEqual(found, {call: str(number) for number, call in enumerate(calls)})

    def test_a_client_that_reads_late_gets_everything(self):
        client = self.connected(connect=False, reads=False).open()
        shake = client.shake()
        calls = [client.begin("echo", {"message": str(number)}) for number in range(20)]
        client.transport.start_reading()
        self.assertTrue(shake.answer(10).get("ok", True))
        for number, call in enumerate(calls):
            self.assertEqual(call.result(10)["data"]["text"], str(number))


class Reconnecting(HostCase):
    def setUp(self):
        super().setUp()
        self.sender = self.session()

    def answered(self, count, stream):
        """Makes calls and gives the frames of their answers."""
        calls = [self.sender.call("echo", {"message": str(number)}) for number in range(count)]
        frames = {}
        while not frames.keys() >= set(calls):
            frame = stream.next()
            if is_answer(frame):
                frames[frame.message["req_id"]] = frame
        return [frames[call] for call in calls]

    def test_answers_are_sent_again_to_a_reader_that_remembers_nothing(self):
        first = self.open_stream(self.sender)
        sent = self.answered(5, first)
        first.close()
        again = self.open_stream(self.sender)
        mark = self.sender.ping()
        repeated = [frame for frame in again.until_answer(mark) if is_answer(frame)]
        self.assertEqual({frame.text for frame in repeated}, {frame.text for frame in sent})
        self.assertEqual({frame.id: frame.text for frame in repeated}, {frame.id: frame.text for frame in sent})

    def test_only_later_ones_to_a_reader_that_says_where_it_was(self):
        first = self.open_stream(self.sender)
        sent = sorted(self.answered(6, first), key=lambda frame: int(frame.id.rpartition("-")[2]))
        first.close()
        for seen in range(len(sent)):
            with self.subTest(seen=seen):
                again = self.open_stream(self.sender, sent[seen].id)
                frames = [frame for frame in again.until_answer(self.sender.ping()) if is_answer(frame)]
                self.assertEqual([frame.text for frame in frames], [frame.text for frame in sent[seen + 1 :]])
                again.close()

    def test_a_place_that_is_not_known_costs_nothing_but_repeats(self):
        first = self.open_stream(self.sender)
        sent = self.answered(3, first)
        first.close()
        for place in ("", "nonsense", "0-1", "another-epoch-99999", "\u00e9", "9" * 500):
            with self.subTest(place=place[:20]):
                again = self.open_stream(self.sender, place.encode("utf-8").decode("latin-1"))
                self.assertEqual(again.status, 200)
                frames = [frame.text for frame in again.until_answer(self.sender.ping()) if is_answer(frame)]
                self.assertLessEqual({frame.text for frame in sent}, set(frames))
                again.close()

    def test_answers_made_while_nobody_read_are_there(self):
        first = self.open_stream(self.sender)
        self.answered(1, first)
        first.close()
        calls = {self.sender.call("echo", {"message": "while away"}) for _ in range(10)}
        again = self.open_stream(self.sender)
        while calls:
            calls.discard(again.next().message["req_id"])

    def test_a_second_stream_takes_over_and_the_first_ends_cleanly(self):
        first = self.open_stream(self.sender)
        self.answered(2, first)
        second = self.open_stream(self.sender)
        first.rest()
        self.assertTrue(first.ended)
        self.assertEqual(len(self.answered(5, second)), 5)

    def test_streams_that_fight_lose_nothing(self):
        streams = []
        calls = set()
        for number in range(10):
            streams.append(self.open_stream(self.sender))
            calls.add(self.sender.call("echo", {"message": str(number)}))
        for stream in streams[:-1]:
            stream.rest()
        while calls:
            calls.discard(streams[-1].next().message["req_id"])


class DyingNetworks(FixtureCase):
    def test_a_cut_stream_loses_no_answer(self):
        client = self.connected()
        client.call("boom", {}, timeout=10)
        calls = [client.begin("slow", {"seconds": 0.3}, timeout=20) for _ in range(20)]
        client.transport.drop_stream()
        for call in calls:
            self.assertTrue(call.result(25)["success"])
        until(lambda: client.transport.opened_streams >= 2, 10, "the client came back")

    def test_cut_again_and_again(self):
        client = self.connected()
        for number in range(3):
            opened = client.transport.opened_streams
            call = client.begin("slow", {"seconds": 0.2}, timeout=20)
            client.transport.drop_stream()
            self.assertTrue(call.result(25)["success"])
            until(lambda: client.transport.opened_streams > opened, 10, "the client came back")

    def test_repeats_after_a_reconnect_are_the_same_bytes(self):
        client = self.connected()
        calls = [client.begin("boom", {}, timeout=10) for _ in range(5)]
        for call in calls:
            call.result(10)
        client.transport.drop_stream()
        client.until(lambda: all(len(client.answers_to(call.id)) > 1 for call in calls), 15, "the repeats")
        for call in calls:
            self.assertEqual({one.text for one in client.answers_to(call.id)}, {call.received.text})

    def test_a_crawling_reader_gets_everything(self):
        client = self.connected(piece_pause=0.002, receive_buffer=4096)
        calls = [client.begin("big", {"chars": 20_000}, timeout=20) for _ in range(20)]
        for call in calls:
            self.assertEqual(len(call.result(25)["data"]["text"]), 20_000)


class LargeAnswers(FixtureCase):
    def test_many_events_in_one_answer_are_read_in_time(self):
        session = self.session()
        stream = self.open_stream(session)
        call = session.call("chatty", {"events": 900}, streaming=False, collect_events=True)
        frame = stream.until_answer(call, seconds=20)[-1]
        self.assertGreater(len(frame.text), 40_000)
        self.assertLess(max(len(line) for line in frame.data), LONGEST_LINE)

    def test_the_stock_reader_copes_with_the_largest_text(self):
        client = self.connected()
        client.ping()
        watch = Stopwatch()
        result = client.call("big", {"chars": 3_000_000}, timeout=20)
        self.assertIs(result["truncated"], True)
        self.assertLess(watch.seconds, 20, "the stock reader needs the square of the length of a line")

    def test_a_ping_beside_large_answers(self):
        client = self.connected()
        calls = [client.begin("big", {"chars": 100_000}, timeout=20) for _ in range(10)]
        client.start(message("ping")).answer(15)
        for call in calls:
            self.assertEqual(len(call.result(25)["data"]["text"]), 100_000)
