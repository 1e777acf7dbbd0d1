"""Calls that make much out of little: every native tool, with sizes made to fill the memory.

The host runs under a fixed limit of its address space, so that a value that is too large kills it instead of the
machine. After every call it must live and answer, and its memory must have grown by no more than `GROWTH`, which
docs/threat-model.md promises.
"""

import json
import os
import re
import resource
from pathlib import Path

from abuse_case import AbuseCase
from web import Web

MIB = 1 << 20
# A host that is idle has about a third of this; most of it is room for threads that is reserved and never used.
ADDRESS_SPACE = 4096 * MIB
GROWTH = 256 * MIB
# The largest text that the file tools take, and near the largest that a request can hold.
TEXT, SENT = 8 * MIB, 3 * MIB

# Its mark is many times longer than its value.
CREDENTIAL = "x" * 60
DEEP = "<blockquote>" * 6 + "<ol><li>" * 6
# What servers answer: in each, a few bytes ask for hundreds.
PAGES = {
    "/margins": ("text/html", DEEP + "<pre>" + "\n" * (4 * MIB) + "x</pre>"),
    "/cells": ("text/html", DEEP + "<table><tr><td>" + "x<br>" * 100_000 + "<td>y<tr><td>" + "x<br>" * 300_000),
    "/columns": ("text/html", "<table><tr>" + "<td>x" * 64 + "<tr><td>y" * 200_000),
    "/base": (
        "text/html",
        f"<base href='http://127.0.0.1/{'b' * MIB}/'>" + "<a href=x>y</a><img alt=z src=x>" * 100_000,
    ),
    "/blanks": ("application/json", "[" * 100 + "1," * (2 * MIB) + "1" + "]" * 100),
    "/values": ("application/json", "[" + "[]," * (MIB + MIB // 2) + "[]]"),
    "/secrets": ("text/plain", "password" * (MIB // 2)),
    "/marks": ("text/plain; charset=utf-16le", "\ufffd" * (2 * MIB)),
}


class Memory(AbuseCase):
    seconds = 150
    config = {
        "commands": {
            "repeat": {
                "description": "Prints a word many times",
                "argv": ["printf", "%s", "{word}" * 4096],
                "stdin": "{word}" * 4096,
                "parameters": {"word": {"description": "a word"}},
                "class": "read",
            },
        },
    }

    @classmethod
    def prepare(cls):
        cls.web = Web()
        cls.addClassCleanup(cls.web.close)
        cls.web.pages = PAGES
        path = cls.place.folder / "credential"
        path.write_text("password")
        path.chmod(0o600)
        workspace = cls.workspace
        (workspace / "a.txt").write_text("a" * TEXT)
        (workspace / "line.txt").write_text("a" * (TEXT - 2) + "\r\n")
        (workspace / "ends.txt").write_text("\r\n" * (TEXT // 2))
        (workspace / "empty.txt").write_text("\n" * TEXT)
        (workspace / "odd.txt").write_text("\t \n" * (TEXT // 3))
        (workspace / "short.txt").write_text("".join(f"{n:x}\n" for n in range(990_000)))
        (workspace / "half.txt").write_text("x\n" * 90_000)
        (workspace / "raw.bin").write_bytes(b"\x01" * TEXT)
        cls._deep_names(workspace / "deep")

    @classmethod
    def _deep_names(cls, folder):
        """Paths of almost the longest length, and links that point as far."""
        folder.mkdir()
        handle = os.open(folder, os.O_RDONLY)
        for _ in range(14):
            name = "\x01" * 250
            os.mkdir(name, dir_fd=handle)
            inner = os.open(name, os.O_RDONLY, dir_fd=handle)
            os.close(handle)
            handle = inner
        for number in range(5_000):
            name = f"{number:05}" + "\x02" * 200
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        for number in range(500):
            os.symlink("\x03" * 4000, f"link{number}", dir_fd=handle)
        os.close(handle)

    @classmethod
    def whole_config(cls):
        credential = {"file": "credential", "urls": [cls.web.url + "/"]}
        network = {"private": [cls.web.url + "/"], "credentials": {CREDENTIAL: credential}}
        return super().whole_config() | {"network": network}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        resource.prlimit(cls.host.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        cls.called, cls.most = set(), (0, "")

    @classmethod
    def tearDownClass(cls):
        print(f"\nmost memory: {cls.most[0] >> 20} MiB by {cls.most[1]}", flush=True)
        super().tearDownClass()

    def _status(self, field):
        status = Path(f"/proc/{self.host.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024

    def hostile(self, tool, arguments, timeout=60):
        """A call that may succeed or not, and leaves the host as it was."""
        Path(f"/proc/{self.host.pid}/clear_refs").write_text("5")
        before = self._status("VmRSS")
        answer = self.call(tool, arguments, timeout)
        self.assertTrue(self.host.is_alive, f"{tool} killed the host: {''.join(self.host.last_words)}")
        grown = self._status("VmHWM") - before
        what = f"{tool} {json.dumps(arguments)[:120]}"
        self.assertLess(grown, GROWTH, f"{what} took {grown >> 20} MiB")
        type(self).most = max(self.most, (grown, what))
        self.called.add(tool)
        # The next call is answered, by a host that has not lost a worker.
        self.succeed("echo", {"message": "still here"})
        self.succeed("read_file", {"path": "half.txt", "limit": 1})
        return answer

    def refuse_hostile(self, tool, arguments):
        answer = self.hostile(tool, arguments)
        self.assertFalse(answer.ok, answer)
        self.assertTrue(answer.message, answer)

    def test_edit_file(self):
        new = "b" * 100_000
        for name in ("a.txt", "line.txt"):
            edit = {"path": name, "old_string": "a", "new_string": new, "replace_all": True}
            answer = self.hostile("edit_file", edit)
            self.assertEqual(answer.code, "too_large", answer)
        lines = {"path": "ends.txt", "old_string": "\n", "new_string": "\n" * 100_000, "replace_all": True}
        self.assertEqual(self.hostile("edit_file", lines).code, "too_large")
        # The same size again, in millions of places.
        for name in ("a.txt", "line.txt"):
            same = {"path": name, "old_string": "a", "new_string": "b", "replace_all": True}
            self.assertTrue(self.hostile("edit_file", same).ok)
        for name in ("empty.txt", "odd.txt", "short.txt"):
            self.refuse_hostile("edit_file", {"path": name, "old_string": "no\nsuch\nlines", "new_string": "x"})
        self.refuse_hostile("edit_file", {"path": "empty.txt", "old_string": "\n", "new_string": "x"})
        self.refuse_hostile("edit_file", {"path": "odd.txt", "old_string": " \n " * (SENT // 3), "new_string": "x"})

    def test_apply_patch(self):
        head = "*** Begin Patch\n*** Update File: {}\n"
        for name in ("empty.txt", "odd.txt", "short.txt"):
            patch = head.format(name) + "@@\n-no such line\n+x\n*** End Patch\n"
            self.refuse_hostile("apply_patch", {"patch": patch})
        many = "".join(f"@@\n-{n:x}\n+{n:x}y\n" for n in range(0, 990_000, 99))
        self.hostile("apply_patch", {"patch": head.format("short.txt") + many + "*** End Patch\n"})
        above = head.format("short.txt") + "@@ no\n" * 100_000 + "-x\n+y\n*** End Patch\n"
        self.refuse_hostile("apply_patch", {"patch": above})
        self.refuse_hostile("apply_patch", {"patch": head.format("half.txt") + "+\n" * MIB + "*** End Patch\n"})
        self.refuse_hostile("apply_patch", {"patch": "--- a/half.txt\n+++ b/half.txt\n@@ -1 +1 @@\n" + "\n" * SENT})
        every = "--- a/half.txt\n+++ b/half.txt\n" + "".join(f"@@ -{n} +{n} @@\n-x\n+y{n}\n" for n in range(1, 60_000))
        self.hostile("apply_patch", {"patch": every})

    def test_write_move_delete(self):
        for text in ("\n" * MIB, "x" * SENT, "\u0001" * (SENT // 6)):
            self.hostile("write_file", {"path": "new.txt", "content": text})
        self.hostile("move_file", {"from": "new.txt", "to": "x/" * 100_000 + "y"})
        self.hostile("move_file", {"from": "new.txt", "to": "newer.txt"})
        self.hostile("delete_file", {"path": "y" * MIB})
        self.hostile("delete_file", {"path": "newer.txt"})

    def test_read_file(self):
        for name in ("a.txt", "empty.txt", "odd.txt", "raw.bin", "short.txt"):
            for page in ({}, {"limit": 2000}, {"offset": 1_000_000}):
                self.hostile("read_file", {"path": name, **page})
            self.http.show("file_info")
            self.hostile("file_info", {"path": name})

    def test_names(self):
        deepest = "deep" + ("/" + "\x01" * 250) * 14
        self.hostile("list_directory", {"path": deepest, "limit": 5000})
        self.hostile("list_directory", {"path": "deep", "depth": 5, "limit": 5000})
        answer = self.hostile("glob", {"pattern": "deep/**", "limit": 5000})
        self.assertTrue(answer.ok, answer)
        self.hostile("glob", {"pattern": "**/*" + "{a,b}" * 300, "limit": 5000})
        self.hostile("glob", {"pattern": "**/*" * 400})
        self.hostile("grep", {"pattern": "", "path": "deep", "limit": 2000})

    def test_grep(self):
        for pattern in ("a", "(a?){1000}", "[ab]*a[ab]{200}c", ".*"):
            wanted = {"pattern": pattern, "output_mode": "content", "limit": 2000, "context": 50}
            self.hostile("grep", wanted, timeout=4)
            self.hostile("grep", wanted | {"multiline": True}, timeout=4)
        self.refuse_hostile("grep", {"pattern": r"\w{1000}" * 500})
        self.refuse_hostile("grep", {"pattern": "((((a{100}){100}){100}){100})"})

    def test_processes(self):
        noise = "yes xxxxxxxxxxxxxxxx | head -c 20000000"
        self.hostile("shell", {"command": noise})
        self.hostile("shell", {"command": "head -c 30000000 /dev/zero | tr '\\0' '\\33'"})
        self.refuse_hostile("shell", {"command": "x" * SENT})
        started = self.succeed("shell", {"command": noise + "; cat > /dev/null", "background": True})
        identity = started.structured["process_id"]
        self.hostile("process_write", {"process_id": identity, "text": "\n" * SENT})
        self.hostile("process_read", {"process_id": identity, "max_bytes": 48 * 1024})
        self.hostile("process_status", {})
        self.hostile("process_kill", {"process_id": identity})
        self.refuse_hostile("repeat", {"word": "w" * 100_000})
        self.hostile("repeat", {"word": "w"})

    def test_code(self):
        self.hostile("run_code", {"code": "[[] for _ in range(10_000_000)]"})
        self.hostile("run_code", {"code": "'[' + '[],' * 1_500_000 + '[]]'"})
        self.hostile("run_code", {"code": "for _ in range(100): print('\\x01' * 1_000_000)"})
        self.hostile("run_code", {"code": "x = 'a'\nwhile True: x += x"})
        self.hostile("run_code", {"code": "[[] for _ in range(900_000)]"})

    def test_web(self):
        for page in PAGES:
            self.hostile("fetch_page", {"url": self.web.url + page, "format": "markdown", "max_chars": 200_000})
            self.hostile("http_request", {"url": self.web.url + page, "max_bytes": 5 * MIB})
        self.hostile("http_request", {"url": self.web.url + "/secrets", "max_bytes": 5 * MIB, "credential": CREDENTIAL})
        for page in ("/base", "/secrets"):
            self.hostile("fetch_page", {"url": self.web.url + page, "format": "text", "max_chars": 200_000})
        for page in ("/gzip", "/deflate", "/brotli"):
            self.hostile("http_request", {"url": self.web.url + page, "max_bytes": 5 * MIB})
            self.hostile("fetch_page", {"url": self.web.url + page})
        body = {"url": self.web.url + "/hello", "method": "POST", "body": "\u0001" * (SENT // 6)}
        self.hostile("http_request", body)

    def test_results(self):
        for command in (
            "python3 -c \"print('[' + '[],' * 3000000 + '[]]')\"",
            "python3 -c \"print('{' + ','.join('\\\"%d\\\":0' % n for n in range(600000)) + '}')\"",
            "yes '' | head -c 20000000",
            "head -c 20000000 /dev/zero | tr '\\0' 'a'",
        ):
            kept = self.succeed("shell", {"command": command}).raw["artifacts"][0]["id"]
            for part in ({}, {"limit": 1_000_000}, {"byte_offset": 0}, {"pointer": ""}, {"offset": -2000}):
                self.hostile("read_result", {"ref": kept, **part})
            self.hostile("search_result", {"ref": kept, "pattern": "", "limit": 2000, "context": 50})
            self.hostile("search_result", {"ref": kept, "pattern": "(a?){500}", "limit": 2000})
        self.hostile("read_result", {"ref": "art_" + "0" * MIB})

    def test_calls_and_echo(self):
        self.hostile("echo", {"message": "\u0001" * (SENT // 6)})
        self.hostile("echo", {"message": [[]] * (MIB - 100_000)})
        self.hostile("echo", {str(n): n for n in range(200_000)})
        last = self.hostile("echo", {"message": "\n" * (SENT // 2)}).invocation_id
        for tool in ("call_result", "call_cancel"):
            self.http.show(tool)
            self.hostile(tool, {"invocation_id": last})
            self.hostile(tool, {"invocation_id": "x" * SENT})

    def test_zz_every_tool_was_called(self):
        """Runs last: a tool that is added must be added here too."""
        self.assertEqual(self.http.tools() - self.called, set())
