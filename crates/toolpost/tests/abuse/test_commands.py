"""Tools that an operator made of commands, and callers who try to make more of them."""

import json

from abuse_case import AbuseCase

COMMANDS = {
    "show": {
        "description": "Prints its words, one a line",
        "argv": ["python3", "-I", "words.py", "--", "{word}", "{other}"],
        "parameters": {"word": {"description": "a word"}, "other": {"required": False, "description": "another"}},
        "class": "read",
        "profile": "read-only",
    },
    "show_bare": {
        "description": "Prints its words, with nothing that ends the options",
        "argv": ["python3", "-I", "words.py", "{word}", "pre-{word}-post"],
        "parameters": {"word": {"description": "a word"}},
        "class": "read",
        "profile": "read-only",
    },
    "remove": {
        "description": "Removes a file",
        "argv": ["rm", "{path}"],
        "parameters": {"path": {"type": "path", "description": "which"}},
        "class": "write",
    },
    "count": {
        "description": "Counts the words of a file",
        "argv": ["wc", "-w", "{path}"],
        "parameters": {"path": {"type": "path", "description": "which"}},
        "class": "read",
        "profile": "read-only",
    },
    "typed": {
        "description": "Takes a number, a choice and a pattern",
        "argv": ["echo", "{number}", "{choice}", "{shape}"],
        "parameters": {
            "number": {"type": "integer", "minimum": 1, "maximum": 10},
            "choice": {"type": "enum", "values": ["red", "green"]},
            "shape": {"pattern": "^[a-z]+$"},
        },
        "class": "read",
    },
    "structured": {
        "description": "Runs a script of the workspace that prints JSON",
        "argv": ["python3", "-I", "prints.py", "{kind}"],
        "parameters": {"kind": {"description": "which"}},
        "class": "read",
        "output": "json",
        "max_output": "256KiB",
    },
    "listed": {
        "description": "Prints lines",
        "argv": ["python3", "-I", "prints.py", "{kind}"],
        "parameters": {"kind": {"description": "which"}},
        "class": "read",
        "output": "lines",
        "max_output": "256KiB",
    },
    "writes": {
        "description": "Tries to write with a profile that may not",
        "argv": ["sh", "-c", "echo mine > written.txt; echo code $?"],
        "class": "read",
        "profile": "read-only",
    },
    "feeds": {
        "description": "Gives a text to standard input",
        "argv": ["cat"],
        "stdin": "{text}",
        "parameters": {"text": {"description": "what"}},
        "class": "read",
    },
}
# The same with time enough for a busy machine, where an answer counts.
PATIENT = {f"patient_{name}": COMMANDS[name] for name in ("structured", "listed")}
TIMES = {"structured": {"timeout": "2s"}, "listed": {"timeout": "2s"}, "patient_*": {"timeout": "60s"}}
WORDS = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n"
PRINTS = r"""
import sys
kind = sys.argv[1]
if kind == "garbage": print("{not json")
elif kind == "deep": print("[" * 100000 + "]" * 100000)
elif kind == "twice": print('{"a": 1, "a": 2}')
elif kind == "numbers": print("[1e400, -0.0, 123456789012345678901234567890]")
elif kind == "empty": pass
elif kind == "bytes": sys.stdout.buffer.write(b"\xff\xfe\x00{}")
elif kind == "flood":
    while True: print("x" * 10000)
elif kind == "line":
    while True: sys.stdout.write("x" * 10000)
elif kind == "escapes": print("\x1b[2J\u202e")
elif kind == "fail": print('{"a": 1}'); sys.exit(3)
elif kind == "fine": print('{"a": [1, 2, 3]}')
elif kind == "lines": print("one\ntwo\nthree")
elif kind == "daemon":
    import os, time
    print('{"a": 1}', flush=True)
    if os.fork() == 0:
        os.setsid()
        time.sleep(300)
"""


class Commands(AbuseCase):
    config = {"commands": COMMANDS | PATIENT, "tools": TIMES}

    @classmethod
    def prepare(cls):
        (cls.workspace / "words.py").write_text(WORDS)
        (cls.workspace / "prints.py").write_text(PRINTS)
        (cls.workspace / "-rf").write_text("a file with an odd name\n")

    WORDS = (
        "-rf",
        "--help",
        "--version",
        "-c import os",
        "a b",
        "a'b\"c",
        "$(id)",
        "`id`",
        "$HOME",
        "a\nb",
        "*",
        ";id",
        "| id",
        "&& id",
        "{other}",
        "{{word}}",
        "",
        " ",
        "\\",
        "~",
        "x" * 50_000,
        "é\u202e",
        "\x1b[2J",
        "--",
        "@file",
        "a\tb",
    )

    def test_a_value_is_one_word_and_nothing_else(self):
        for word, answer in zip(
            self.WORDS, self.many((("show", {"word": word}) for word in self.WORDS), caller=self.http), strict=True
        ):
            with self.subTest(word=word[:40]):
                if answer.ok:
                    got = json.loads(answer.text.strip().splitlines()[0]) if len(word) < 1000 else None
                    if got is not None:
                        self.assertEqual(got, ["--", word])
                else:
                    self.assertIn(answer.error_class, ("invalid_arguments", "sandbox_violation"), answer)

    def test_a_value_is_never_taken_for_an_option(self):
        for word in ("-rf", "--help", "-c", "--", "-"):
            for caller in (self.http, self.a2e):
                answer = self.call("show_bare", {"word": word}, caller=caller)
                self.assertFalse(answer.ok, "a value that looks like an option reached the program bare")

    def test_nul_and_what_no_argument_can_be(self):
        for word in ("a\0b", "\0"):
            self.refuse("show", {"word": word})
        self.call("show", {"word": "x" * 3_000_000})
        for arguments in (
            {},
            {"word": 1},
            {"word": None},
            {"word": ["a"]},
            {"word": "a", "argv": ["id"]},
            {"word": {"a": 1}},
        ):
            self.refuse("show", arguments, classes={"invalid_arguments"})

    def test_paths_stay_inside(self):
        (self.workspace / "link-out").symlink_to(self.loot.file)
        self.addCleanup((self.workspace / "link-out").unlink)
        for path in (
            "../outside/secret.txt",
            str(self.loot.file),
            "/etc/passwd",
            "link-out",
            "a\0b",
            "",
            "x/../../outside/secret.txt",
            f"/proc/{self.host.pid}/environ",
            "/dev/zero",
        ):
            for tool in ("count", "remove"):
                with self.subTest(path=path, tool=tool):
                    answer = self.call(tool, {"path": path})
                    self.assertFalse(answer.ok and answer.exit_code == 0, answer)
        # A name that looks like an option is still that file, or is refused.
        answer = self.call("count", {"path": "-rf"})
        self.assertTrue(not answer.ok or "6" in answer.text, answer)
        self.call("remove", {"path": "-rf"})
        self.assertTrue((self.workspace / "words.py").exists())
        (self.workspace / "-rf").write_text("a file with an odd name\n")

    def test_protected_paths_are_protected_here_too(self):
        (self.workspace / ".git").mkdir(exist_ok=True)
        (self.workspace / ".git/config").write_text("as it was\n")
        self.call("remove", {"path": ".git/config"})
        self.assertTrue((self.workspace / ".git/config").exists())

    def test_types_hold(self):
        good = {"number": 3, "choice": "red", "shape": "abc"}
        for change in (
            {"number": 11},
            {"number": 0},
            {"number": "3; id"},
            {"number": 3.5},
            {"choice": "blue"},
            {"choice": "red "},
            {"shape": "abc\n"},
            {"shape": "abc1"},
            {"shape": "abc\nid"},
            {"shape": ""},
        ):
            with self.subTest(change=change):
                self.refuse("typed", good | change, classes={"invalid_arguments"})

    def test_garbage_is_told_so(self):
        for kind in ("garbage", "deep", "empty", "bytes", "escapes"):
            with self.subTest(kind=kind):
                answer = self.call("structured", {"kind": kind})
                self.assertFalse(answer.ok, answer)
                self.assertNotIn("\x1b", answer.text)
        for kind in ("twice", "numbers", "fail"):
            self.call("structured", {"kind": kind})

    def test_floods_end(self):
        for tool in ("structured", "listed"):
            for kind in ("flood", "line"):
                answer = self.call(tool, {"kind": kind}, timeout=15)
                self.assertFalse(answer.ok, "a flood is not a result")
                self.assertLess(len(answer.everything), 8 << 20)
        self.assert_nothing_runs()

    def test_daemons_end(self):
        self.call("structured", {"kind": "daemon"}, timeout=15)
        self.assert_nothing_runs()

    def test_a_reading_profile_reads(self):
        self.call("writes", {})
        self.assertFalse((self.workspace / "written.txt").exists())

    def test_twins(self):
        self.write("three.txt", "one two three\n")
        for caller in (self.http, self.a2e):
            self.assertIn("3", self.succeed("count", {"path": "three.txt"}, caller=caller).text)
            fine = self.succeed("patient_structured", {"kind": "fine"}, caller=caller)
            self.assertIn("[1, 2, 3]", repr(fine.structured))
        self.assertIn("two", self.succeed("patient_listed", {"kind": "lines"}).everything)
        self.assertIn("3 red abc", self.succeed("typed", {"number": 3, "choice": "red", "shape": "abc"}).text)
        self.assertIn("hello $(id)", self.succeed("feeds", {"text": "hello $(id)"}).text)
        self.succeed("remove", {"path": "three.txt"})
        self.assertFalse((self.workspace / "three.txt").exists())
