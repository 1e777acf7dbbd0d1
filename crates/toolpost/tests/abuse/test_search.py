"""Patterns and trees made to cost: searches stay linear, bounded, and inside."""

import os

from abuse_case import AbuseCase

BOMBS = (
    r"(a+)+$",
    r"(a|aa)+$",
    r"(a|a?)+$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(.*)*x",
    r"(x+x+)+y",
    r"((a{0,100}){0,100}){0,100}",
    r"a{0,1000}{0,1000}",
    r"(?:(?:(?:a{1,100}){1,100}){1,100}){1,100}",
    r"\p{L}{1,10000}",
    r"[\w\s\d\p{Greek}]{5000}",
    "(" * 5_000 + "a" + ")" * 5_000,
    "(?:" * 300 + "a" + ")*" * 300,
    "|".join(f"word{number}" for number in range(50_000)),
    "[" + "".join(chr(code) for code in range(0x4E00, 0x9000)) + "]{500}",
    "a" * 1_000_000,
)
BROKEN = ("(", "[", "*", "a{2,1}", "\\", "(?P<", "(?=look)", "(a)\\1", "\0", "(?<!x)y", "\\p{Nope}")
GLOB_BOMBS = (
    "**/" * 200 + "x",
    "*" * 2_000 + "x",
    "{" * 100 + "a,b" + "}" * 100,
    "{a,b}" * 40,
    "[" * 1_000,
    "a{,b}" * 5_000,
    "?" * 100_000,
    "{" + ",".join(str(number) for number in range(20_000)) + "}",
    "**/*" * 500,
)


class Patterns(AbuseCase):
    @classmethod
    def prepare(cls):
        (cls.workspace / "a.txt").write_text("a" * 200_000 + "!\n")
        (cls.workspace / "words.txt").write_text("".join(f"word{number} aaaa xxxx\n" for number in range(20_000)))

    def test_bombs_are_answered(self):
        for caller in (self.http, self.a2e):
            answers = self.many(
                (("grep", {"pattern": pattern}) for pattern in BOMBS), timeout=10, caller=caller, at_once=4
            )
            for pattern, answer in zip(BOMBS, answers, strict=True):
                with self.subTest(pattern=pattern[:60]):
                    self.assertIn(answer.outcome, ("succeeded", "partial", "failed", "timed_out"), answer)
                    self.assertLess(len(answer.everything), 4 << 20)

    def test_bombs_as_file_filters(self):
        calls = [("glob", {"pattern": pattern}) for pattern in GLOB_BOMBS]
        calls += [("grep", {"pattern": "word", "glob": pattern}) for pattern in GLOB_BOMBS]
        for call, answer in zip(calls, self.many(calls, timeout=10, at_once=4), strict=True):
            with self.subTest(call=str(call)[:80]):
                self.assertIn(answer.outcome, ("succeeded", "partial", "failed", "timed_out"), answer)

    def test_what_is_no_pattern_is_told_so(self):
        for pattern, answer in zip(BROKEN, self.many(("grep", {"pattern": one}) for one in BROKEN), strict=True):
            with self.subTest(pattern=pattern):
                if pattern not in ("*", "\0"):
                    self.assertFalse(answer.ok, answer)
                    self.assertEqual(answer.error_class, "invalid_arguments")

    def test_context_bombs(self):
        for key in ("context", "before", "after"):
            answer = self.call("grep", {"pattern": "word", "output_mode": "content", key: 1_000_000_000})
            self.assertLess(len(answer.everything), 4 << 20)
        answer = self.call("grep", {"pattern": "", "output_mode": "content", "limit": 10**15})
        self.assertLess(len(answer.everything), 4 << 20)

    def test_twin_ordinary_patterns(self):
        self.assertIn("words.txt", self.succeed("grep", {"pattern": "word19999"}).text)
        found = self.succeed("grep", {"pattern": r"^word123\b", "output_mode": "content"}, caller=self.a2e)
        self.assertIn("word123 ", found.text)
        self.assertIn("words.txt", self.succeed("glob", {"pattern": "*.txt"}).text)


class Trees(AbuseCase):
    def setUp(self):
        super().setUp()
        self.there = self.folder()
        self.where = {"path": self.name(self.there)}

    def test_link_loops(self):
        for name in ("one", "two", "three"):
            (self.there / name).mkdir()
            for other in ("one", "two", "three"):
                (self.there / name / f"to-{other}").symlink_to(self.there / other)
        (self.there / "one/needle.txt").write_text("needle\n")
        found = self.succeed("grep", {"pattern": "needle", "output_mode": "files_with_matches"} | self.where)
        self.assertEqual(found.text.count("needle.txt"), 1, found.text)
        self.succeed("glob", {"pattern": "**/*"} | self.where)

    def test_ignore_files_that_are_bombs(self):
        (self.there / ".gitignore").write_text(
            "\n".join(GLOB_BOMBS[:6]) + "\n" + "".join(f"{number}*{number}\n" for number in range(20_000))
        )
        (self.there / "kept.txt").write_text("needle\n")
        for tool, arguments in (("grep", {"pattern": "needle"}), ("glob", {"pattern": "*"})):
            answer = self.call(tool, arguments | self.where, timeout=10)
            self.assertIn(answer.outcome, ("succeeded", "partial", "failed", "timed_out"))

    def test_an_ignore_file_that_is_no_file(self):
        os.mkfifo(self.there / ".gitignore")
        (self.there / ".ignore").symlink_to("/dev/zero")
        (self.there / "kept.txt").write_text("needle\n")
        found = self.succeed("grep", {"pattern": "needle"} | self.where)
        self.assertIn("kept.txt", found.text)

    def test_huge_and_binary_files(self):
        (self.there / "zeros").write_bytes(b"\0" * (32 << 20) + b"needle\n")
        (self.there / "random").write_bytes(os.urandom(8 << 20) + b"\nneedle\n")
        (self.there / "bad-utf8.txt").write_bytes(b"\xff\xfe needle \xc3\x28\n")
        (self.there / "utf16.txt").write_bytes("needle\n".encode("utf-16"))
        for mode in ("content", "files_with_matches", "count"):
            answer = self.succeed("grep", {"pattern": "needle", "output_mode": mode} | self.where)
            self.assertLess(len(answer.everything), 1 << 20)

    def test_many_matches(self):
        (self.there / "many.txt").write_text("x\n" * 300_000)
        for mode in ("content", "count"):
            answer = self.succeed("grep", {"pattern": "x", "output_mode": mode} | self.where)
            self.assertLess(len(answer.everything), 4 << 20)

    def test_a_tree_that_changes_while_it_is_walked(self):
        for number in range(50):
            (self.there / f"d{number}").mkdir()
        calls = [self.http.begin("grep", {"pattern": "x"} | self.where) for _ in range(6)]
        for number in range(50):
            os.rename(self.there / f"d{number}", self.there / f"e{number}")
            (self.there / f"d{number}").symlink_to(self.loot.folder)
        for one in calls:
            self.clean(one.answer(40))

    def test_twin_an_ordinary_tree(self):
        (self.there / "src").mkdir()
        (self.there / "src/main.rs").write_text("fn main() {}\n")
        (self.there / "skipped.log").write_text("fn main\n")
        (self.there / ".gitignore").write_text("*.log\n")
        (self.there / ".git").mkdir()
        found = self.succeed("grep", {"pattern": "fn main"} | self.where).text
        self.assertIn("src/main.rs", found)
        self.assertNotIn("skipped.log", found)
