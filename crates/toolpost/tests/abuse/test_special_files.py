"""Files that are not files: pipes, sockets, devices, holes of a terabyte, lines without an end, odd names."""

import os
import socket
import stat

from abuse_case import AbuseCase, is_root
from patches import delete, update

TERABYTE = 1 << 40


class SpecialFiles(AbuseCase):
    def setUp(self):
        super().setUp()
        self.there = self.folder()

    def at(self, name):
        return self.name(self.there) + "/" + name

    def make_odd_ones(self):
        os.mkfifo(self.there / "pipe")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        # The path of a socket is short by law of the kernel.
        here = os.open(self.there, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        (self.there / "zero-link").symlink_to("/dev/zero")
        (self.there / "tty-link").symlink_to("/dev/tty")
        (self.there / "proc-link").symlink_to("/proc/self/mem")
        (self.there / "folder").mkdir()
        names = ["pipe", "socket", "zero-link", "tty-link", "proc-link", "folder"]
        if is_root():
            os.mknod(self.there / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
            os.mknod(self.there / "disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))
            names += ["zero", "disk"]
        return names

    def test_they_are_refused_without_waiting(self):
        calls = []
        for name in self.make_odd_ones():
            path = self.at(name)
            calls += [
                ("read_file", {"path": path}),
                ("write_file", {"path": path, "content": "mine"}),
                ("edit_file", {"path": path, "old_string": "a", "new_string": "b"}),
                ("apply_patch", {"patch": update(path, "a", "b")}),
            ]
        for face in (self.http, self.a2e):
            for call, answer in zip(calls, self.many(calls, caller=face), strict=True):
                with self.subTest(call=call, face=face.face):
                    self.assertFalse(answer.ok, answer)
                    self.assertNotEqual(answer.outcome, "timed_out")
        self.assertTrue(stat.S_ISFIFO((self.there / "pipe").lstat().st_mode), "the pipe was replaced")

    def test_searches_pass_them_by(self):
        self.make_odd_ones()
        (self.there / "plain.txt").write_text("plain needle\n")
        where = {"path": self.name(self.there)}
        found = self.succeed("grep", {"pattern": "needle", "output_mode": "content"} | where)
        self.assertIn("plain needle", found.text)
        for name in ("pipe", "socket", "zero-link"):
            self.call("grep", {"pattern": "needle", "path": self.at(name)})
        self.succeed("glob", {"pattern": "*"} | where)
        self.succeed("list_directory", where)

    def test_a_hole_of_a_terabyte(self):
        with open(self.there / "hole", "wb") as file:
            file.truncate(TERABYTE)
        path = self.at("hole")
        before = self.host.resident_bytes()
        answer = self.call("read_file", {"path": path}, timeout=10)
        self.assertLess(len(answer.everything), 1 << 20)
        self.call("read_file", {"path": path, "offset": 10**9}, timeout=10)
        self.refuse("edit_file", {"path": path, "old_string": "a", "new_string": "b"}, timeout=10)
        self.refuse("apply_patch", {"patch": update(path, "a", "b")}, timeout=10)
        self.call("grep", {"pattern": "needle", "path": path}, timeout=3)
        self.call("grep", {"pattern": "needle", "path": self.name(self.there)}, timeout=3)
        self.http.show("file_info")
        self.call("file_info", {"path": path}, timeout=2)
        self.assertLess(self.host.resident_bytes() - before, 200 << 20)
        self.succeed("delete_file", {"path": path})

    def test_a_line_without_an_end(self):
        (self.there / "line").write_bytes(b"needle" + b"x" * (48 << 20))
        path = self.at("line")
        answer = self.call("read_file", {"path": path})
        self.assertLess(len(answer.everything), 2 << 20)
        for mode in ("content", "files_with_matches", "count"):
            answer = self.call("grep", {"pattern": "needle", "path": path, "output_mode": mode})
            self.assertLess(len(answer.everything), 2 << 20)
        self.call("edit_file", {"path": path, "old_string": "needle", "new_string": "pin"})

    def test_a_file_that_is_cut_and_grown_while_it_is_read(self):
        path = self.there / "breathing"
        content = b"a line of text\n" * 200_000
        path.write_bytes(content)
        calls = [self.http.begin("read_file", {"path": self.at("breathing"), "offset": 100_000}) for _ in range(8)]
        for _ in range(50):
            os.truncate(path, 10)
            os.truncate(path, len(content))
        for one in calls:
            self.clean(one.answer(30))

    def test_images_that_are_none(self):
        for name, head in (
            ("a.png", b"\x89PNG\r\n\x1a\n"),
            ("b.jpg", b"\xff\xd8\xff\xe0"),
            ("c.webp", b"RIFF\xff\xff\xff\xffWEBP"),
        ):
            (self.there / name).write_bytes(head + b"\0" * (3 << 20))
            answer = self.call("read_file", {"path": self.at(name)})
            self.assertLess(len(answer.everything), 4 << 20)

    def test_odd_names(self):
        odd = [
            b"new\nline.txt",
            b"tab\tand\rreturn",
            b"esc\x1b[31mred",
            b"not-utf8-\xff\xfe",
            "\u202ertl".encode(),
            b"-rf",
            b"*?[x]",
            b" ",
        ]
        for name in odd:
            path = os.path.join(os.fsencode(self.there), name)
            with open(path, "wb") as file:
                file.write(b"odd needle\n")
        where = {"path": self.name(self.there)}
        for tool, arguments in (
            ("list_directory", where),
            ("glob", {"pattern": "**/*"} | where),
            ("grep", {"pattern": "needle", "output_mode": "content"} | where),
            ("grep", {"pattern": "needle", "output_mode": "files_with_matches"} | where),
        ):
            with self.subTest(tool=tool, arguments=arguments):
                text = self.succeed(tool, arguments).text
                self.assertNotIn("new\nline.txt", text, "a name makes a line of its own")
                self.assertNotIn("\x1b", text)
                self.assertNotIn("\u202e", text)
        for name in (b"new\nline.txt", b"-rf", b"*?[x]", b" "):
            path = self.at(name.decode())
            self.assertIn("odd needle", self.succeed("read_file", {"path": path}).text)
            self.succeed("edit_file", {"path": path, "old_string": "odd", "new_string": "even"})
            self.succeed("delete_file", {"path": path})

    def test_a_folder_of_many(self):
        crowd = self.there / "crowd"
        crowd.mkdir()
        for number in range(6_000):
            os.close(os.open(crowd / f"{number}.txt", os.O_CREAT | os.O_WRONLY))
        for tool, arguments in (("list_directory", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
            answer = self.succeed(tool, arguments | {"path": self.at("crowd")})
            self.assertLess(len(answer.everything), 4 << 20)

    def test_a_folder_too_deep(self):
        here = os.open(self.there, os.O_RDONLY)
        for _ in range(2_000):
            os.mkdir("d", dir_fd=here)
            deeper = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
        os.close(here)
        where = {"path": self.name(self.there)}
        for tool, arguments in (("glob", {"pattern": "**/*"}), ("grep", {"pattern": "x"}), ("list_directory", {})):
            self.call(tool, arguments | where)
        self.call("delete_file", {"path": self.at("d"), "recursive": True})
        # What `shutil` would need a stack of 2,000 for.
        os.system(f"rm -rf '{self.there}'")

    def test_twin_plain_files(self):
        self.succeed("write_file", {"path": self.at("a.txt"), "content": "one\ntwo\n"})
        self.succeed("edit_file", {"path": self.at("a.txt"), "old_string": "two", "new_string": "three"})
        self.succeed("apply_patch", {"patch": update(self.at("a.txt"), "three", "four")}, caller=self.a2e)
        self.succeed("move_file", {"from": self.at("a.txt"), "to": self.at("b.txt")})
        self.assertEqual((self.there / "b.txt").read_text(), "one\nfour\n")
        self.assertIn("four", self.succeed("read_file", {"path": self.at("b.txt")}).text)
        self.succeed("apply_patch", {"patch": delete(self.at("b.txt"))})
        self.assertFalse((self.there / "b.txt").exists())
