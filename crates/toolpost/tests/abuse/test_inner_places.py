"""Places inside of the workspace that the sandbox is built from: toolchains, inner roots. Whoever may write around them
must not be able to make them lead elsewhere.
"""

from abuse_case import AbuseCase


class InnerPlaces(AbuseCase):
    @classmethod
    def prepare(cls):
        for name in (".local/bin", ".nvm", "vendor/deep/library"):
            folder = cls.workspace / name
            folder.mkdir(parents=True)
            (folder / "tool.txt").write_text("as it was\n")
        # The home of the host is its workspace: so the toolchains that are readable anyway lie in a writable root.
        cls.environment = {"HOME": str(cls.workspace)}

    @classmethod
    def whole_config(cls):
        return {
            **super().whole_config(),
            "roots": [{"path": "workspace/vendor/deep/library", "access": "read"}],
            "sandbox": {**super().whole_config()["sandbox"], "readable": ["workspace/shared/data"]},
        }

    def test_none_can_be_made_to_lead_out(self):
        outside = self.loot.folder
        script = f"""
            mv .local gone-1; mkdir .local; ln -s {outside} .local/bin
            mv .nvm gone-2; ln -s {outside} .nvm
            mv vendor gone-3; mkdir -p vendor/deep; ln -s {outside} vendor/deep/library
            mkdir -p shared; ln -s {outside} shared/data
            mkdir -p .cargo; ln -s {outside} .rustup; ln -s {outside} .pyenv; ln -s {outside} go
            ln -s {outside}/secret.txt .cargo/credentials.toml
            true
        """
        for caller in (self.http, self.a2e):
            self.call("shell", {"command": script}, caller=caller)
            for path in (".nvm", ".local", ".local/bin", "vendor", "vendor/deep", "vendor/deep/library"):
                self.call("move_file", {"from": path, "to": f"taken-{path.replace('/', '-')}"}, caller=caller)
            self.call("shell", {"command": script}, caller=caller)
            look = (
                "for d in .local/bin .nvm vendor/deep/library shared/data .rustup .pyenv go; do ls $d/; cat"
                " $d/secret.txt $d/deep/secret.txt; done; true"
            )
            answer = self.call("shell", {"command": look}, caller=caller)
            self.assertNotIn("secret.txt\n", answer.text.replace(": No such file", ""), answer.text)
            answer = self.call(
                "run_code", {"code": f"import os\nprint(os.system({look!r}))", "language": "python3"}, caller=caller
            )

    def test_no_file_with_the_owner_s_rights_is_left_behind(self):
        self.call(
            "shell",
            {
                "command": (
                    "cp /bin/sh left-1; chmod 4755 left-1; cp /bin/sh left-2; chmod u+s,g+s left-2; python3 -I -c"
                    ' \'import os; os.close(os.open("left-3", os.O_CREAT | os.O_WRONLY, 0o6755)); os.mkdir("left-4",'
                    " 0o6755)'; install -m 4755 /bin/true left-5"
                )
            },
        )
        left = [path.name for path in self.workspace.glob("left-*") if path.is_file() and path.lstat().st_mode & 0o6000]
        self.assertEqual(left, [], "programs with their owner's rights were left in the workspace")

    def test_twin_they_can_be_read(self):
        # The other cases take them away, so they are looked at where they are.
        answer = self.succeed("shell", {"command": "mkdir -p mine && echo fine > mine/x && cat mine/x"})
        self.assertIn("fine", answer.text)
