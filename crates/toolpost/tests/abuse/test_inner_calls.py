"""What code may call: the tools it was given, as often as it may, and nothing else in any words."""

from abuse_case import AbuseCase


class Calls(AbuseCase):
    """What code may call."""

    config = {
        "code": {"tools": ["read_file", "grep", "glob", "write_file", "run_code", "http_request"], "calls": 50},
        "rules": ["deny write_file"],
    }

    @classmethod
    def prepare(cls):
        for number in range(20):
            (cls.workspace / f"f{number}.txt").write_text(f"number {number}\n")

    def run_code(self, code, **arguments):
        return self.call("run_code", {"code": code} | arguments)

    def test_what_is_not_granted_does_not_exist(self):
        for name in ("shell", "delete_file", "edit_file", "echo", "process_kill", "no_such_tool", "files.read_file"):
            answer = self.run_code(
                f"try:\n    {name.replace('.', '_')}(command='id', path='f1.txt')\nexcept NameError as e:\n   "
                " print('no name')"
            )
            self.assertNotIn("uid=", answer.text)
            self.assertTrue(not answer.ok or "no name" in answer.text, answer)
        self.assertTrue((self.workspace / "f1.txt").exists())

    def test_what_the_request_did_not_name_does_not_exist(self):
        answer = self.run_code("grep(pattern='number')", tools=["read_file"])
        self.assertFalse(answer.ok, answer)
        for wish in (["shell"], ["*"], ["shell", "read_file"], [""], ["x" * 10_000], ["files.*"]):
            answer = self.run_code("shell(command='id')", tools=wish)
            self.assertFalse(answer.ok, answer)
            self.assertNotIn("uid=", answer.text)

    def test_a_denied_call_is_an_exception(self):
        answer = self.run_code(
            "try:\n    write_file(path='made.txt', content='x')\nexcept Exception as e:\n    print('caught',"
            " type(e).__name__)"
        )
        self.assertFalse((self.workspace / "made.txt").exists())
        self.assertTrue("caught" in answer.text or not answer.ok, answer)
        self.assertFalse(self.run_code("write_file(path='made.txt', content='x')").ok)

    def test_code_does_not_run_code(self):
        answer = self.run_code("run_code(code='1')")
        self.assertFalse(answer.ok, answer)

    def test_calls_are_counted(self):
        for code in (
            "for i in range(1000): read_file(path='f1.txt')",
            (
                "n = 0\nwhile True:\n    try:\n        read_file(path='f1.txt')\n        n += 1\n    except Exception:"
                " pass"
            ),
            (
                "n = 0\nfor i in range(1000):\n    try:\n        read_file(path='missing')\n    except Exception: n +="
                " 1\nn"
            ),
        ):
            with self.subTest(code=code):
                answer = self.call("run_code", {"code": code}, timeout=8)
                self.assertFalse(answer.ok and "1000" in answer.text, answer)

    def test_inner_calls_are_confined_as_outer_ones(self):
        for path in ("../outside/secret.txt", str(self.loot.file), "/etc/passwd", f"/proc/{self.host.pid}/environ"):
            for code in (
                f"read_file(path={path!r})",
                f"open({path!r}).read()",
                f"from pathlib import Path\nPath({path!r}).read_text()",
            ):
                self.assertFalse(self.run_code(code).ok)
        self.assertFalse(self.run_code(f"http_request(url='http://127.0.0.1:{self.host.port}/health')").ok)

    def test_odd_arguments(self):
        for arguments in (
            "1",
            "path=1",
            "path=None",
            "path=[]",
            "path='x' * 10**6",
            "**{'path': 'f1.txt', 'extra': 1}",
            "path=lambda: 1",
            "path='a\\0b'",
            "path=float('nan')",
            "path={1: 2}",
            "path=10**5000",
            "path='\\ud800'",
        ):
            answer = self.run_code(f"read_file({arguments})")
            self.assertFalse(answer.ok, answer)

    def test_at_the_deadline_of_the_outer_call_everything_ends(self):
        answer = self.call(
            "run_code",
            {"code": "while True:\n    try: grep(pattern='number')\n    except BaseException: pass"},
            timeout=3,
        )
        self.assertFalse(answer.ok, answer)
        self.assertIn("42", self.succeed("run_code", {"code": "42"}).text)

    def test_twin_a_loop_over_files(self):
        code = (
            "total = 0\nfor i in range(20):\n    total +="
            " len(str(read_file(path=f'f{i}.txt')))\nprint(grep(pattern='number 7'))\ntotal > 100"
        )
        for caller in (self.http, self.a2e):
            answer = self.succeed("run_code", {"code": code}, caller=caller)
            self.assertIn("True", answer.text)
            self.assertIn("f7.txt", answer.text)
