"""Borders within the workspace: protected paths, read-only roots, files that changed since they were read."""

import hashlib

from abuse_case import AbuseCase
from patches import add, delete, update

PROTECTED = (
    ".git/hooks/pre-commit",
    ".git/config",
    "sub/.git/config",
    "sub/../.git/hooks/post-checkout",
    "./.git/HEAD",
    ".hg/hgrc",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".husky/pre-commit",
    ".envrc",
    ".vscode/tasks.json",
    ".claude/settings.json",
    ".mcp.json",
    "toolpost.yaml",
    ".bashrc",
    "sub/.profile",
    ".ssh/authorized_keys",
    "deploy/run.sh",
)
ASKED = {"approval_rejected", "permission_denied", "policy_blocked", "sandbox_violation"}


class Protected(AbuseCase):
    """Even in the mode that allows everything."""

    config = {"protect": {"paths": ["deploy/**"]}}

    @classmethod
    def prepare(cls):
        for name in (
            ".git/HEAD",
            ".git/config",
            ".git/hooks/pre-commit",
            "sub/.git/config",
            "deploy/run.sh",
            "toolpost.yaml",
            ".bashrc",
        ):
            path = cls.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("# as it was\n" if name.endswith("yaml") else "as it was\n")

    def snapshot(self):
        return {path: path.read_bytes() for path in self.workspace.rglob("*") if path.is_file()}

    def setUp(self):
        super().setUp()
        self.write("bait.txt", "bait\n")
        self.before = self.snapshot()

    def tearDown(self):
        now = self.snapshot()
        self.assertEqual({str(path) for path in now if now[path] != self.before.get(path)}, set())
        self.assertEqual(self.before.keys(), now.keys())

    def test_changing_them_asks(self):
        calls = []
        for path in PROTECTED:
            calls += [
                ("write_file", {"path": path, "content": "mine", "create_directories": True}),
                ("write_file", {"path": str(self.workspace / path), "content": "mine", "create_directories": True}),
                ("edit_file", {"path": path, "old_string": "as it was", "new_string": "mine"}),
                ("delete_file", {"path": path}),
                ("move_file", {"from": path, "to": "taken.txt"}),
                ("move_file", {"from": "bait.txt", "to": path}),
                ("apply_patch", {"patch": add(path, "mine")}),
                ("apply_patch", {"patch": update(path, "as it was", "mine")}),
                ("apply_patch", {"patch": delete(path)}),
                ("apply_patch", {"patch": f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+mine\n"}),
            ]
        for call, answer in zip(calls, self.many(calls), strict=True):
            with self.subTest(call=call):
                self.assertFalse(answer.ok, answer)
                self.assertIn(answer.error_class, ASKED | {"invalid_arguments", "execution_failed"}, answer)
        written = [answer for call, answer in zip(calls, self.many(calls), strict=True) if call[0] == "write_file"]
        for answer in written:
            self.assertIn(answer.error_class, ASKED, answer)

    def test_the_folder_above_cannot_be_taken_away(self):
        for path in (".git", "deploy", "sub"):
            self.refuse("delete_file", {"path": path, "recursive": True})
            self.refuse("move_file", {"from": path, "to": "taken"})

    def test_a_link_to_them_is_no_way_in(self):
        link = self.workspace / "innocent"
        link.symlink_to(".git/hooks")
        self.addCleanup(lambda: link.unlink(missing_ok=True))
        try:
            for call in (
                ("write_file", {"path": "innocent/post-merge", "content": "mine"}),
                ("edit_file", {"path": "innocent/pre-commit", "old_string": "as it was", "new_string": "mine"}),
                ("delete_file", {"path": "innocent/pre-commit"}),
                ("apply_patch", {"patch": add("innocent/post-merge", "mine")}),
                ("move_file", {"from": "bait.txt", "to": "innocent/post-merge"}),
            ):
                with self.subTest(call=call):
                    self.refuse(*call)
        finally:
            link.unlink()

    def test_spellings(self):
        for path in (".GIT/../.git/config", ".git//config", ".git/./config", "sub/./../.git/config"):
            self.refuse("edit_file", {"path": path, "old_string": "as it was", "new_string": "mine"})

    def test_the_shell_cannot_change_them(self):
        script = """
            echo mine > .git/hooks/pre-commit; echo mine > .git/hooks/post-merge; echo mine >> .git/config
            rm -rf .git; mv .git .git-away; ln -sfn /tmp .git; mkdir -p .git2 && mv -T .git2 .git
            echo mine > deploy/run.sh; rm -f deploy/run.sh; mv deploy gone
            echo mine > toolpost.yaml; mv toolpost.yaml x; rm -f toolpost.yaml
            echo mine > .bashrc; mv .bashrc y
            rmdir .git2; true
        """
        self.succeed("shell", {"command": script})
        self.assertFalse((self.workspace / ".git-away").exists(), "`.git` was moved away")

    def test_one_call_of_code_is_no_way_in(self):
        code = "write_file(path='.git/hooks/pre-commit', content='mine')"
        answer = self.call("run_code", {"code": code})
        self.assertFalse(answer.ok, answer)

    def test_twin_reading_and_neighbours(self):
        self.assertIn("as it was", self.succeed("read_file", {"path": ".git/config"}).text)
        self.succeed("shell", {"command": "cat .git/config deploy/run.sh"})
        for path in ("gitignore.txt", ".gitignore", "sub/bashrc", "github/workflows/x.yml"):
            self.succeed("write_file", {"path": path, "content": "x", "create_directories": True})
            self.succeed("delete_file", {"path": path})


class ReadOnlyRoots(AbuseCase):
    config = {"roots": [{"path": "library", "access": "read"}, {"path": "more", "access": "write"}]}

    @classmethod
    def prepare(cls):
        for name in ("library", "more"):
            folder = cls.place.folder / name
            folder.mkdir()
            (folder / "file.txt").write_text("as it was\n")
        cls.library, cls.more = cls.place.folder / "library", cls.place.folder / "more"

    def test_nothing_changes_there(self):
        self.write("bait.txt", "bait\n")
        path = str(self.library / "file.txt")
        new = str(self.library / "new.txt")
        for call in (
            ("write_file", {"path": path, "content": "mine"}),
            ("write_file", {"path": new, "content": "mine"}),
            ("edit_file", {"path": path, "old_string": "as it was", "new_string": "mine"}),
            ("delete_file", {"path": path}),
            ("move_file", {"from": path, "to": "taken.txt"}),
            ("move_file", {"from": "bait.txt", "to": new}),
            ("apply_patch", {"patch": add(new, "mine")}),
            ("apply_patch", {"patch": update(path, "as it was", "mine")}),
            ("write_file", {"path": str(self.more / "../library/new.txt"), "content": "mine"}),
        ):
            with self.subTest(call=call):
                self.refuse(*call)
        script = (
            f"echo mine > {path}; echo mine > {new}; rm -f {path}; mv {path} x; chmod 777 {path}; touch {path}; ln"
            f" {path} hard && echo mine > hard; true"
        )
        self.succeed("shell", {"command": script})
        self.assertEqual((self.library / "file.txt").read_text(), "as it was\n")
        self.assertEqual([one.name for one in self.library.iterdir()], ["file.txt"])

    def test_a_link_from_a_writable_root_is_no_way_in(self):
        (self.more / "link").symlink_to(self.library)
        self.addCleanup((self.more / "link").unlink)
        self.refuse("write_file", {"path": str(self.more / "link/new.txt"), "content": "mine"})
        self.assertEqual([one.name for one in self.library.iterdir()], ["file.txt"])

    def test_twin_reading_there_and_writing_in_the_other(self):
        self.assertIn("as it was", self.succeed("read_file", {"path": str(self.library / "file.txt")}).text)
        self.assertIn("as it was", self.succeed("shell", {"command": f"cat {self.library}/file.txt"}).text)
        self.succeed("write_file", {"path": str(self.more / "new.txt"), "content": "x"})
        self.succeed("shell", {"command": f"echo y >> {self.more}/new.txt"})
        self.assertEqual((self.more / "new.txt").read_text(), "xy\n")


class Digests(AbuseCase):
    def test_a_file_that_changed_is_not_overwritten(self):
        path = self.write("digest.txt", "one\n")
        old = hashlib.sha256(b"one\n").hexdigest()
        path.write_text("two\n")
        for tool, arguments in (
            ("write_file", {"content": "mine"}),
            ("edit_file", {"old_string": "two", "new_string": "mine"}),
        ):
            self.refuse(tool, {"path": "digest.txt", "expected_sha256": old} | arguments)
        for garbage in ("", "xyz", "0" * 63, "g" * 64, "0" * 100_000):
            self.refuse("write_file", {"path": "digest.txt", "content": "mine", "expected_sha256": garbage})
        self.assertEqual(path.read_text(), "two\n")

    def test_of_many_writers_with_one_digest_one_wins(self):
        path = self.write("contended.txt", "start\n")
        digest = hashlib.sha256(b"start\n").hexdigest()
        calls = [
            ("write_file", {"path": "contended.txt", "content": f"writer {number}\n", "expected_sha256": digest})
            for number in range(12)
        ]
        answers = self.many(calls)
        self.assertEqual(sum(answer.ok for answer in answers), 1)
        self.assertRegex(path.read_text(), r"^writer \d+\n$")

    def test_twin_the_right_digest(self):
        self.write("right.txt", "one\n")
        digest = hashlib.sha256(b"one\n").hexdigest()
        self.succeed(
            "edit_file", {"path": "right.txt", "old_string": "one", "new_string": "two", "expected_sha256": digest}
        )
