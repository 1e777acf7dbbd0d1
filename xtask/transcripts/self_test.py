"""Tests of the comparison and of the pages' parts: python3 xtask/transcripts/self_test.py

With `TOOLPOST_BIN`, the path of a binary, a page with one changed word is played too; it has to fail.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from comparison import ShownOutput
from markdown_page import MarkdownPage, is_continued
from transcripts import play, read_pages
from varying import Bindings

ID_1, ID_2 = "01a1f220-b755-7640-a625-627a6a477e8c", "01a1f5d4-00cc-77a2-af66-c79beeab2828"

# What a page shows, what a command printed, and whether they are the same.
COMPARISONS = [
    ("one\ntwo", "one\ntwo\n", True),
    ("one\ntwo", "one\ntoo\n", False),
    ("one", "one\ntwo\n", False),
    ("one\ntwo", "one\n", False),
    ("", "", True),
    ("", "a warning\n", False),
    ("two  words", "two words\n", False),
    ("one\n…\nfour", "one\ntwo\nthree\nfour\n", True),
    ("one\n…\nfour", "one\nfour\n", True),
    ("one\n…\nfour", "one\ntwo\nthree\n", False),
    ("…\ntwo\n…\nfour", "one\ntwo\nthree\nthree\nfour\n", True),
    ("…\nthree\n…\ntwo\n…", "one\ntwo\nthree\n", False),
    ("a … z", "a b c z\n", True),
    ("a … z", "a b c y\n", False),
    ("a … z", "a b\nc z\n", False),
    (f"call {ID_1}", f"call {ID_2}\n", True),
    (f"call {ID_1}", "call 01a1f220\n", False),
    (f"{ID_1} {ID_1}", f"{ID_2} {ID_2}\n", True),
    (f"{ID_1} {ID_1}", f"{ID_1} {ID_2}\n", False),
    (f"{ID_1} {ID_2}", f"{ID_2} {ID_2}\n", False),
    ("question fda437fa", "question 02daee5f\n", True),
    ("art_01a1f22590d571cdb81b50b283494b68_1", "art_01a1f22590d571cdb81b50b283494b69_1\n", True),
    ("art_01a1f22590d571cdb81b50b283494b68_1", "art_01a1f22590d571cdb81b50b283494b69_2\n", False),
    (f"sha256: {'a' * 64}", f"sha256: {'b' * 64}\n", False),
    (f"head 4:{'a' * 64}", f"head 4:{'b' * 64}\n", True),
    (f"head 4:{'a' * 64}", f"head 5:{'b' * 64}\n", False),
    ("at 2026-11-19T04:57:25Z", "at 2027-01-01T00:00:00Z\n", True),
    ("at 2026-11-19T04:57:25Z", "at 2027-01-01 00:00:00\n", False),
    ("version 2026-07-28", "version 2026-07-29\n", False),
    ("deadline 60000 ms", "deadline 50000 ms\n", False),
    ("succeeded 11.7 ms", "succeeded  9.1 ms\n", True),
    ("Ran 2 tests in 0.003s", "Ran 3 tests in 0.003s\n", False),
    ("Ran 2 tests in 0.003s", "Ran 2 tests in 0.012s\n", True),
    ('{"a":1, …, "d":4}', '{"a":1,"b":2,"c":3,"d":4}\n', True),
    ('{"a":1,\n "text":"two words"}', '{"a":1,"text":"two words"}\n', True),
    ('{"a":1,\n "text":"two\n words"}', '{"a":1,"text":"two words"}\n', True),
    ('{"a":1,\n "text":"two words"}', '{"a":1,"text":"twowords"}\n', False),
    ('{"a":1}', '{"a":2}\n', False),
    ('{"total_us":1,"size":2}', '{"total_us":20,"size":2}\n', True),
    ('{"total_us":1,"size":2}', '{"total_us":1,"size":20}\n', False),
    ("[exit code 1]", "[exit  code 1]\n", False),
]

# A shown output, a real one, and what the page shows after `--write`.
WRITTEN = [
    ("one\n…\nold word here\n…\nend", "one\n2\nnew word here\n4\nend\n", "one\n…\nnew word here\n…\nend"),
    (f"call {ID_1} was so", f"call {ID_2} is so\n", f"call {ID_1} is so"),
    ('{"a":1, …,\n "m":"old", …}', '{"a":1,"b":2,"m":"new","z":3}\n', '{"a":1, …,\n "m":"new", …}'),
    ("one", "one\ntwo\n", "one\ntwo"),
    ("one\ntwo", "one\n", "one"),
]


class ComparisonTest(unittest.TestCase):
    def test_only_what_varies_may_differ(self):
        for shown, real, is_same in COMPARISONS:
            with self.subTest(shown=shown, real=real):
                output = ShownOutput(shown.split("\n") if shown else [], 1, Bindings())
                self.assertEqual(output.matches(real), is_same)
                differences, _ = ShownOutput(shown.split("\n") if shown else [], 1, Bindings()).align(real)
                self.assertEqual(not differences, is_same, differences)

    def test_an_id_is_the_same_on_all_of_a_page(self):
        bindings = Bindings()
        self.assertTrue(ShownOutput([f"call {ID_1}"], 1, bindings).matches(f"call {ID_2}\n"))
        self.assertEqual(bindings.as_real(f"toolpost explain {ID_1}"), (f"toolpost explain {ID_2}", []))
        self.assertFalse(ShownOutput([f"call {ID_1}"], 1, bindings).matches(f"call {ID_1}\n"))
        self.assertEqual(bindings.as_real("show fda437fa")[1], ["fda437fa"])

    def test_written_outputs_keep_cuts_breaks_and_ids(self):
        for shown, real, written in WRITTEN:
            with self.subTest(shown=shown):
                output = ShownOutput(shown.split("\n"), 1, Bindings())
                self.assertFalse(output.matches(real))
                _, lines = output.align(real)
                self.assertEqual("\n".join(lines), written)
                self.assertTrue(ShownOutput(lines, 1, Bindings()).matches(real))


class PageTest(unittest.TestCase):
    def test_commands_have_their_lines_and_outputs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.md")
            path.write_text("text\n```console\n$ one 'a\nb'\nshown\n$ two\n```\n", encoding="utf-8")
            page = MarkdownPage(path, "page.md")
            first, second = page.blocks[0].commands()
            self.assertEqual((first.text, first.line, first.output, first.output_line), ("one 'a\nb'", 3, ["shown"], 5))
            self.assertEqual((second.text, second.output), ("two", []))
            page.change(5, ["shown"], ["real", "lines"])
            self.assertEqual(page.write(), 1)
            self.assertIn("b'\nreal\nlines\n$ two\n", path.read_text(encoding="utf-8"))
            # The page is no longer as it was read.
            self.assertEqual(page.write(), 0)

    def test_commands_go_on_where_bash_reads_on(self):
        for text, expected in [("a 'b", True), ("a 'b'", False), ("a \\", True), ("a |", True), ("a # it's", False)]:
            self.assertEqual(is_continued(text), expected, text)


@unittest.skipUnless("TOOLPOST_BIN" in os.environ, "needs a binary")
class PlayedPageTest(unittest.TestCase):
    def test_a_changed_word_is_a_fault(self):
        for word, count in [("notes.txt', 1", 0), ("notes.txt', 2", 1)]:
            page = read_pages()["run-code"]
            [block] = page.console_blocks()
            block.lines[-1] = block.lines[-1].replace("notes.txt', 1", word)
            report = play(page, "run-code", Path(os.environ["TOOLPOST_BIN"]))
            self.assertEqual((len(report.faults), report.compared), (count, 1), report.faults)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
