"""The audit file: a line for each request, nothing in it that opens a door, and an end to its growth."""

import json

from case import ProcessCase
from client import message

TOKEN = "a-token-that-nobody-may-read"


class AuditCase(ProcessCase):
    def start(self, audit):
        place = self.new_place()
        host = self.new_host(place=place, config="a2e: { audit: { %s } }\n" % audit, token=TOKEN)
        session = self.new_session(host, TOKEN)
        stream = self.open_stream(session)
        self.assertTrue(stream.next().message.get("ok", True))
        return host, session, stream

    def lines(self, host):
        """The lines of all files, the oldest first."""
        files = sorted(host.place.folder.glob("audit.jsonl*"), key=lambda path: path.name, reverse=True)
        # The one without a number is the newest.
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]


class Lines(AuditCase):
    def setUp(self):
        super().setUp()
        self.host, self.sender, self.stream = self.start("path: audit.jsonl")

    def test_calls_and_lists_are_noted(self):
        for request_id, tool in (("good", "echo"), ("bad", "no_such_tool")):
            self.sender.call(tool, {"message": "x"}, id=request_id, correlation_id="c-" + request_id)
            self.stream.answer(request_id)
        self.stream.answer(self.sender.send(message("tool/list/req", id="list")))
        self.assertEqual(self.host.stop(), 0)
        noted = {line["req_id"]: line for line in self.lines(self.host)}
        self.assertEqual(set(noted), {"good", "bad", "list"})
        self.assertEqual([noted[one]["message"] for one in ("good", "list")], ["tool/call/req", "tool/list/req"])
        self.assertEqual([noted[one]["success"] for one in ("good", "bad")], [True, False])
        self.assertEqual([noted[one]["error_code"] for one in ("good", "bad")], [None, "unknown_tool"])
        self.assertEqual([noted[one]["correlation_id"] for one in ("good", "bad")], ["c-good", "c-bad"])
        for line in noted.values():
            self.assertRegex(line["session_id"], "^a2e-[0-9a-f]{32}$")
            self.assertGreater(line["output_bytes"], 0)

    def test_neither_tokens_nor_ids_of_sessions_are_in_it(self):
        secrets = f"{TOKEN} {self.sender.id}"
        for fields in ({"correlation_id": secrets}, {"id": secrets}):
            self.stream.answer(self.sender.call("echo", {"message": "x"}, **fields))
        self.stream.answer(self.sender.call(secrets, {}))
        self.stream.answer(self.sender.send(message("tool/list/req", id="l " + secrets)))
        self.assertEqual(self.host.stop(), 0)
        text = (self.host.place.folder / "audit.jsonl").read_text()
        self.assertEqual(len(text.splitlines()), 4)
        self.assertNotIn(TOKEN, text)
        self.assertNotIn(self.sender.id, text)

    def test_only_its_owner_may_read_it(self):
        self.stream.answer(self.sender.call("echo", {"message": "x"}))
        self.assertEqual(self.host.stop(), 0)
        mode = (self.host.place.folder / "audit.jsonl").stat().st_mode
        self.assertEqual(mode & 0o077, 0)


class Rotation(AuditCase):
    def test_old_lines_move_aside_and_none_is_torn_or_doubled(self):
        limit = 10 * 1024
        audit = "path: audit.jsonl, max_bytes: 10KiB, backup_count: 2"
        host, sender, stream = self.start(audit)
        wanted = [f"r{number:03}" for number in range(150)]
        for request_id in wanted:
            sender.call("echo", {"message": "x"}, id=request_id)
        left = set(wanted)
        while left:
            left.discard(stream.next().message["req_id"])
        self.assertEqual(host.stop(), 0)
        names = sorted(path.name for path in host.place.folder.glob("audit.jsonl*"))
        self.assertEqual(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"])
        for name in names:
            self.assertLessEqual((host.place.folder / name).stat().st_size, limit)
        kept = [line["req_id"] for line in self.lines(host)]
        self.assertEqual(len(kept), len(set(kept)))
        self.assertLessEqual(set(kept), set(wanted))
        self.assertGreater(len(kept), 40)
        self.assertLess(len(kept), len(wanted))
