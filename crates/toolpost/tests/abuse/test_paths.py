"""Paths that lead out: upwards, absolute, encoded, through the kernel's own folders. For every tool that takes one."""

from abuse_case import AbuseCase
from patches import PATCH


def reading(path):
    """Every call that would show what a path leads to."""
    yield "read_file", {"path": path}
    yield "list_directory", {"path": path}
    yield "file_info", {"path": path}
    yield "glob", {"pattern": "**/*", "path": path}
    yield "glob", {"pattern": path}
    yield "grep", {"pattern": "loot", "path": path}
    yield "shell", {"command": "cat secret.txt", "working_directory": path}


def changing(path):
    """Every call that would change what a path leads to."""
    yield "write_file", {"path": path, "content": "mine"}
    yield "write_file", {"path": path + "/new.txt", "content": "mine", "create_directories": True}
    yield "edit_file", {"path": path, "old_string": "loot", "new_string": "mine"}
    yield "delete_file", {"path": path}
    yield "move_file", {"from": path, "to": "stolen.txt"}
    yield "move_file", {"from": "bait.txt", "to": path}
    yield "apply_patch", {"patch": PATCH.format(verb="Add", path=path, body="+mine\n")}
    yield "apply_patch", {"patch": PATCH.format(verb="Delete", path=path, body="")}
    yield "apply_patch", {
        "patch": PATCH.format(verb="Update", path="bait.txt", body=f"*** Move to: {path}\n@@\n-bait\n+mine\n")
    }
    yield "apply_patch", {"patch": f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+mine\n"}


class Escapes(AbuseCase):
    face = "http"

    def ways_out(self):
        outside, workspace = self.loot.file, self.workspace
        return [
            "../outside/secret.txt",
            "./../outside/secret.txt",
            "a/../../outside/secret.txt",
            "sub/../../outside/deep/secret.txt",
            "../outside",
            "..",
            "/",
            str(outside),
            f"/{outside}",
            f"{workspace}/../outside/secret.txt",
            f"{workspace}-neighbour/secret.txt",
            f"/proc/self/cwd/../outside/secret.txt",
            f"/proc/{self.host.pid}/environ",
            f"/proc/{self.host.pid}/root{outside}",
            "/proc/self/environ",
            "/proc/self/fd/0",
            "/dev/fd/3",
            "/etc/shadow",
            str(self.place.data_dir / "token"),
            str(self.place.data_dir / "journal.db"),
            str(self.place.folder / ".ssh/id_rsa"),
        ]

    # Names that mean something to somebody else. Here they are only odd names.
    ODD = (
        "%2e%2e/outside/secret.txt",
        "..%2foutside%2fsecret.txt",
        "..\\outside\\secret.txt",
        "..%c0%afoutside/secret.txt",
        "．．/outside/secret.txt",
        "~/.ssh/id_rsa",
        "$HOME/.ssh/id_rsa",
        "file:///etc/shadow",
        "`cat /etc/shadow`",
    )
    NEVER = ("", "a\0b", "\0", "x/" * 3000, "y" * 5000)

    def caller(self):
        return self.http if self.face == "http" else self.a2e

    def test_nothing_outside_is_shown(self):
        calls = [call for path in self.ways_out() for call in reading(path)]
        for call, answer in zip(calls, self.many(calls, caller=self.caller()), strict=True):
            with self.subTest(call=call):
                # A pattern that matches nothing is no error.
                if call[0] == "glob" and "path" not in call[1] and answer.ok:
                    self.assertNotIn("secret.txt", answer.text)
                else:
                    self.assertFalse(answer.ok, answer)

    def test_nothing_outside_is_changed(self):
        self.write("bait.txt", "bait\n")
        calls = [call for path in self.ways_out() for call in changing(path)]
        for call, answer in zip(calls, self.many(calls, caller=self.caller()), strict=True):
            with self.subTest(call=call):
                self.assertFalse(answer.ok, answer)
        self.assertEqual((self.workspace / "bait.txt").read_text(), "bait\n")

    def test_odd_names_are_only_names(self):
        self.write("bait.txt", "bait\n")
        calls = [call for path in self.ODD for call in (*reading(path), *changing(path))]
        self.many(calls, caller=self.caller())

    def test_impossible_names_are_refused(self):
        self.write("bait.txt", "bait\n")
        empty_means_here = {"list_directory", "glob", "grep", "shell"}
        calls = [call for path in self.NEVER for call in (*reading(path), *changing(path))]
        for call, answer in zip(calls, self.many(calls, caller=self.caller()), strict=True):
            with self.subTest(call=repr(call)[:100]):
                if call[0] not in empty_means_here and call[0] != "apply_patch" and call[1].get("path") != "/new.txt":
                    self.assertFalse(answer.ok, answer)

    def test_twin_paths_that_stay_inside(self):
        self.write("sub/inside.txt", "inside\n")
        for path in (
            "sub/inside.txt",
            "./sub/inside.txt",
            "sub/../sub/inside.txt",
            str(self.workspace / "sub/inside.txt"),
        ):
            with self.subTest(path=path):
                self.assertIn("inside", self.succeed("read_file", {"path": path}, caller=self.caller()).text)


class EscapesOverA2e(Escapes):
    face = "a2e"
