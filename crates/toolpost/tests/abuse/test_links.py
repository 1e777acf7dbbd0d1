"""Links that lead out, and links that lead out only now and then."""

import os
import shutil
import threading

from abuse_case import AbuseCase
from callers import DEADLINE, GRACE
from swapping import Swapping
from patches import PATCH

ROUNDS = 25


class Links(AbuseCase):
    """Links that stay as they are."""

    def setUp(self):
        super().setUp()
        self.there = self.folder()
        (self.there / "out").symlink_to(self.loot.folder)
        (self.there / "up").symlink_to("../../outside")
        (self.there / "file").symlink_to(self.loot.file)
        (self.there / "proc").symlink_to("/proc/self/root")
        (self.there / "host").symlink_to(f"/proc/{self.host.pid}/root{self.loot.folder}")
        (self.there / "fresh").symlink_to(self.loot.folder / "made-by-a-link.txt")
        (self.there / "chain").symlink_to("chain-2")
        (self.there / "chain-2").symlink_to("up")

    def at(self, name):
        return self.name(self.there) + "/" + name

    def test_no_link_is_followed_out(self):
        calls = []
        for path in (
            "out/secret.txt",
            "up/secret.txt",
            "file",
            "chain/secret.txt",
            "host/secret.txt",
            f"proc/{self.loot.file}",
            "proc/etc/shadow",
        ):
            calls += [
                ("read_file", {"path": self.at(path)}),
                ("file_info", {"path": self.at(path)}),
                ("edit_file", {"path": self.at(path), "old_string": "loot", "new_string": "mine"}),
                ("grep", {"pattern": "loot", "path": self.at(path)}),
                ("write_file", {"path": self.at(path) + ".new", "content": "mine"}),
            ]
        for path in ("out", "up", "chain", "host", "proc"):
            calls += [
                ("list_directory", {"path": self.at(path)}),
                ("glob", {"pattern": "*", "path": self.at(path)}),
                ("shell", {"command": "cat secret.txt", "working_directory": self.at(path)}),
                ("delete_file", {"path": self.at(path) + "/secret.txt"}),
                ("move_file", {"from": self.at(path) + "/secret.txt", "to": "stolen.txt"}),
                ("apply_patch", {"patch": PATCH.format(verb="Add", path=self.at(path) + "/new.txt", body="+x\n")}),
            ]
        for call, answer in zip(calls, self.many(calls), strict=True):
            with self.subTest(call=call):
                if call[0] == "write_file" and answer.ok:
                    continue  # `file.new` is a new name beside the link.
                self.assertFalse(answer.ok, answer)

    def test_writing_never_follows_a_last_link_out(self):
        for path in ("fresh", "file"):
            self.call("write_file", {"path": self.at(path), "content": "mine"})
            self.call("apply_patch", {"patch": PATCH.format(verb="Add", path=self.at(path), body="+mine\n")})
        self.assertFalse((self.loot.folder / "made-by-a-link.txt").exists())

    def test_a_search_from_above_does_not_go_out(self):
        for tool, arguments in (("grep", {"pattern": "loot-"}), ("glob", {"pattern": "**/secret.txt"})):
            answer = self.call(tool, arguments | {"path": self.name(self.there)})
            self.assertNotIn("secret.txt:", answer.text)
            self.assertNotIn("out/secret.txt", answer.text)

    def test_deleting_and_moving_a_link_leaves_what_it_leads_to(self):
        self.call("move_file", {"from": self.at("file"), "to": self.at("moved")})
        self.call("delete_file", {"path": self.at("moved")})
        self.call("delete_file", {"path": self.at("out"), "recursive": True})

    def test_a_hard_link_is_broken_by_a_write_not_followed(self):
        # A hard link made by somebody with the right to do so is a file of the workspace: it can be read. What
        # must not happen is that a write goes through it.
        victim = self.workspace / "victim.txt"
        victim.write_text("victim\n")
        os.link(victim, self.there / "hard")
        for tool, arguments in (
            ("write_file", {"path": self.at("hard"), "content": "mine\n"}),
            ("edit_file", {"path": self.at("hard"), "old_string": "mine", "new_string": "yours"}),
        ):
            self.call(tool, arguments)
            self.assertEqual(victim.read_text(), "victim\n")

    def test_the_sandbox_cannot_make_a_hard_link_to_the_outside(self):
        answer = self.call(
            "shell", {"command": f"ln {self.loot.file} stolen; ln -L {self.loot.file} stolen; cat stolen"}
        )
        self.assertNotEqual(answer.exit_code, 0)

    def test_loops_end(self):
        (self.there / "loop").symlink_to("loop")
        (self.there / "here").symlink_to(".")
        deep = "/".join(["here"] * 100)
        for path in (self.at("loop"), self.at(deep) + "/x"):
            self.refuse("read_file", {"path": path})
        self.succeed("glob", {"pattern": "**/*", "path": self.name(self.there)})

    def test_twin_links_inside_are_followed(self):
        (self.there / "real").mkdir()
        (self.there / "real/file.txt").write_text("through a link\n")
        (self.there / "link").symlink_to("real")
        (self.there / "absolute").symlink_to(self.there / "real/file.txt")
        for path in ("link/file.txt", "absolute"):
            self.assertIn("through a link", self.succeed("read_file", {"path": self.at(path)}).text)
        answer = self.succeed("shell", {"command": "cat file.txt", "working_directory": self.at("link")})
        self.assertIn("through a link", answer.text)


class Races(AbuseCase):
    """A folder that is swapped for a link to the outside and back, thousands of times, while calls run."""

    seconds = 90

    def setUp(self):
        super().setUp()
        self.there = self.folder()
        self.inside = self.there / "inside"
        self.inside.mkdir()
        self.lay()
        self.out = self.there / "out"
        self.out.symlink_to(self.loot.folder)

    def lay(self):
        for name in ("secret.txt", "other.txt"):
            (self.inside / name).write_text("harmless\n")

    def race(self, calls, rounds=ROUNDS, at_once=6, caller=None, check=None):
        """Calls on `inside` while it is swapped with `out`; gives the answers."""
        caller, answers = caller or self.http, []
        with Swapping(self.inside, self.out) as swapping:
            for number in range(rounds):
                batch = [caller.begin(*calls(number * at_once + index), DEADLINE) for index in range(at_once)]
                answers += [self.clean(one.answer(DEADLINE + GRACE)) for one in batch]
        self.assertGreater(swapping.count, rounds, "nothing was swapped")
        self.assertEqual(self.loot.changes(), [])
        return answers

    def at(self, name=""):
        return self.name(self.there) + "/inside" + ("/" + name if name else "")

    def assert_some_worked(self, answers):
        """The race was one: some calls found the folder, and whatever found the link was refused."""
        self.assertTrue(any(answer.ok for answer in answers), answers[:3])

    def test_reading(self):
        kinds = [
            ("read_file", {"path": self.at("secret.txt")}),
            ("list_directory", {"path": self.at()}),
            ("glob", {"pattern": "**/*.txt", "path": self.at()}),
            ("grep", {"pattern": ".", "path": self.at(), "output_mode": "content"}),
            ("grep", {"pattern": "loot", "path": self.name(self.there), "output_mode": "content"}),
        ]
        answers = self.race(lambda number: kinds[number % len(kinds)], rounds=50)
        self.assert_some_worked(answers)
        for answer in answers:
            self.assertNotIn("deep", answer.text, "the folder outside was listed")

    def test_reading_over_a2e(self):
        answers = self.race(lambda _: ("read_file", {"path": self.at("secret.txt")}), caller=self.a2e)
        self.assert_some_worked(answers)

    def test_writing(self):
        answers = self.race(
            lambda number: ("write_file", {"path": self.at(f"new-{number % 5}.txt"), "content": "x"}), rounds=40
        )
        self.assert_some_worked(answers)

    def test_making_folders(self):
        call = lambda number: (
            "write_file",
            {"path": self.at(f"d{number}/e/f.txt"), "content": "x", "create_directories": True},
        )
        self.race(call)

    def test_editing(self):
        # The text stands inside and outside: the edit must never reach the latter.
        def call(number):
            return "edit_file", {
                "path": self.at("secret.txt"),
                "old_string": "harmless" if number % 2 else "loot",
                "new_string": "harmless" if number % 2 else "mine",
            }

        self.race(call)

    def test_patching(self):
        def call(number):
            patch = "*** Begin Patch\n*** Add File: {0}\n+x\n*** Delete File: {1}\n*** End Patch\n"
            return "apply_patch", {"patch": patch.format(self.at(f"p{number}.txt"), self.at("secret.txt"))}

        self.race(call)

    def test_deleting_and_moving(self):
        def call(number):
            if number % 3 == 0:
                return "delete_file", {"path": self.at("secret.txt")}
            if number % 3 == 1:
                return "move_file", {"from": self.at("secret.txt"), "to": self.name(self.there) + f"/taken-{number}"}
            return "move_file", {"from": self.name(self.there) + "/bait.txt", "to": self.at(f"put-{number}")}

        stop = threading.Event()
        # By a descriptor: the name may mean the outside at any moment.
        folder = os.open(self.inside, os.O_RDONLY | os.O_DIRECTORY)
        feeder = threading.Thread(target=self.feed, args=(stop, folder), daemon=True)
        feeder.start()
        try:
            self.race(call, rounds=40)
        finally:
            stop.set()
            feeder.join(10)
            os.close(folder)
        for path in self.there.glob("taken-*"):
            self.assertNotIn(self.loot.word, path.read_text())

    def feed(self, stop, folder):
        """Lays what the calls take away."""
        while not stop.wait(0.001):
            for at, name in ((folder, "secret.txt"), (None, str(self.there / "bait.txt"))):
                file = os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=at)
                os.write(file, b"harmless\n")
                os.close(file)

    def test_protected_folders_by_a_link_that_comes_and_goes(self):
        """Decided while the name means a plain folder, done while it means the hooks of the repository."""
        hooks = self.workspace / ".git/hooks"
        hooks.mkdir(parents=True, exist_ok=True)
        (hooks / "pre-commit").write_text("as it was\n")
        link = self.there / "hooks"
        link.symlink_to("../.git/hooks")
        (self.inside / "pre-commit").write_text("as it was\n")
        self.out = link
        kinds = [
            lambda number: ("write_file", {"path": self.at(f"new-{number % 7}"), "content": "mine"}),
            lambda _: (
                "edit_file",
                {"path": self.at("pre-commit"), "old_string": "as it was", "new_string": "as it was!"},
            ),
            lambda _: (
                "edit_file",
                {"path": self.at("pre-commit"), "old_string": "as it was!", "new_string": "as it was"},
            ),
            lambda number: (
                "apply_patch",
                {"patch": PATCH.format(verb="Add", path=self.at(f"patched-{number}"), body="+mine\n")},
            ),
            lambda number: ("move_file", {"from": self.at(f"new-{number % 7}"), "to": self.at(f"moved-{number}")}),
        ]
        answers = self.race(lambda number: kinds[number % len(kinds)](number), rounds=60)
        self.assert_some_worked(answers)
        self.assertEqual([path.name for path in hooks.iterdir()], ["pre-commit"])
        self.assertEqual((hooks / "pre-commit").read_text(), "as it was\n")

    def test_the_shell_s_directory(self):
        calls = lambda _: (
            "shell",
            {"command": "cat secret.txt; pwd -P; echo x > made-here.txt", "working_directory": self.at()},
        )
        answers = self.race(calls, rounds=8)
        for answer in answers:
            self.assertNotIn(str(self.loot.folder), answer.text)

    def test_a_command_that_swaps_by_itself(self):
        """The race from inside the sandbox: a background loop swaps, while file tools read."""
        name = self.name(self.there)
        script = (
            f"cd {name}; while :; do ln -sfn {self.loot.folder} flip; rm -f flip; mkdir flip; echo harmless >"
            " flip/secret.txt; rm -r flip; done"
        )
        started = self.succeed("shell", {"command": script, "background": True})
        calls = [
            ("read_file", {"path": f"{name}/flip/secret.txt"}),
            ("write_file", {"path": f"{name}/flip/new.txt", "content": "x"}),
        ] * 60
        self.many(calls)
        self.assertIsNotNone(started.structured)

    def tearDown(self):
        shutil.rmtree(self.there, ignore_errors=True)
