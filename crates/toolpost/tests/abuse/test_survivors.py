"""Commands that want to outlive their call: daemons, deaf ones, stopped ones; and what happens when all leave."""

import os

from abuse_case import AbuseCase
from waiting import until

DAEMONS = {
    "ampersand": "sleep 300 &",
    "setsid": "setsid sleep 300 &",
    "setsid fork": "setsid -f sleep 300",
    "nohup": "nohup sleep 300 > /dev/null 2>&1 &",
    "disown": "sleep 300 & disown",
    "double fork": (
        "python3 -I -c 'import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nfor fd in"
        " range(3): os.close(fd)\ntime.sleep(300)'"
    ),
    "keeps the pipe": "(sleep 300; echo late) &",
    "deaf": "(trap '' TERM INT HUP QUIT PIPE; while :; do sleep 1; done) &",
    "new group": "python3 -I -c 'import os, time\nif os.fork(): os._exit(0)\nos.setpgid(0, 0)\ntime.sleep(300)'",
}
DEAF = (
    "trap '' TERM INT HUP QUIT; python3 -I -c 'import signal, time\nfor one in range(1, 65):\n  try: signal.signal(one,"
    ' signal.SIG_IGN)\n  except (OSError, ValueError): pass\nprint("deaf", flush=True)\nwhile True: time.sleep(1)\''
)


class Daemons(AbuseCase):
    def test_no_daemon_outlives_its_command(self):
        for caller in (self.http, self.a2e):
            calls = [("shell", {"command": script + "\necho over"}) for script in DAEMONS.values()]
            for name, answer in zip(DAEMONS, self.many(calls, timeout=60, caller=caller), strict=True):
                with self.subTest(daemon=name, face=caller.face):
                    self.assertEqual(answer.outcome, "succeeded", answer)
                    self.assertIn("over", answer.text)
            self.assert_nothing_runs()

    def test_no_daemon_outlives_the_deadline(self):
        scripts = [
            "\n".join(DAEMONS.values()) + "\nsleep 300",
            DEAF,
            "kill -STOP $$",
            "sleep 300 & kill -STOP $! $$",
            "exec sleep 300",
            (
                "python3 -I -c 'import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nos.kill(os.getpid(),"
                " signal.SIGSTOP)'; true"
            ),
        ]
        answers = self.apart((("shell", {"command": script}) for script in scripts), 3)
        for script, answer in zip(scripts, answers, strict=True):
            with self.subTest(script=script[-60:]):
                self.assertEqual(answer.outcome, "timed_out", answer)
        self.assert_nothing_runs()

    def test_output_so_far_is_shown_at_the_deadline(self):
        answer = self.call("shell", {"command": "echo so far; " + DEAF}, timeout=3)
        self.assertEqual(answer.outcome, "timed_out")
        self.assertIn("so far", answer.everything)

    def test_twin_waiting_for_children(self):
        answer = self.succeed("shell", {"command": "(sleep 0.3; echo child) & wait; echo parent"})
        self.assertRegex(answer.text, "(?s)child.*parent")


class Leaving(AbuseCase):
    def wait_for_word(self, path):
        until(lambda: path.exists(), 20, "the command runs")

    def test_a_caller_that_hangs_up_ends_its_command(self):
        for number, script in enumerate((DEAF, "setsid sleep 300 & sleep 300", "kill -STOP $$", "yes")):
            started = self.workspace / f"started-{number}"
            one = self.http.begin("shell", {"command": f"echo > {started.name}; {script}"}, 60)
            self.wait_for_word(started)
            one.hang_up()
            self.assert_nothing_runs()

    def test_a_session_that_is_closed_ends_its_commands(self):
        for face in ("http", "a2e"):
            caller = self.new_caller(face)
            started = self.workspace / f"started-{face}"
            deaf = f"echo > {started.name}; setsid sleep 300 & {DEAF}"
            background = self.succeed("shell", {"command": deaf, "background": True}, caller=caller)
            one = caller.begin("shell", {"command": "sleep 300"}, 60)
            self.wait_for_word(started)
            self.assertTrue(self.strays())
            caller.close()
            self.forget(caller)
            self.assert_nothing_runs()
            if face == "http":
                self.assertEqual(self.clean(one.answer(30)).outcome, "canceled")
            self.assertTrue(background.ok)

    def test_canceled_commands_end(self):
        started = self.workspace / "started-cancel"
        one = self.a2e.begin("shell", {"command": f"echo so far; echo > {started.name}; {DEAF}"}, 60)
        self.wait_for_word(started)
        one.cancel()
        self.assertEqual(self.clean(one.answer(30)).outcome, "canceled")
        self.assert_nothing_runs()


class Background(AbuseCase):
    """Background runs belong to their session."""

    def start(self, command, caller=None):
        answer = self.succeed("shell", {"command": command, "background": True}, caller=caller)
        return answer.structured["process_id"]

    def test_another_session_cannot_touch_them(self):
        mine, other = self.new_caller(), self.new_caller("a2e")
        process = self.start("echo mine; cat; sleep 300", mine)
        for caller in (other, self.new_caller()):
            for tool, arguments in (
                ("process_status", {}),
                ("process_read", {}),
                ("process_write", {"text": "x\n"}),
                ("process_kill", {}),
            ):
                with self.subTest(tool=tool, face=caller.face):
                    answer = self.refuse(tool, {"process_id": process} | arguments, caller=caller)
                    self.assertNotIn("mine", answer.text)
        listed = self.call("process_status", {}, caller=other)
        self.assertNotIn(str(process), listed.text)
        self.assertIn("mine", self.read_until(process, "mine", mine))

    def read_until(self, process, word, caller):
        return until(
            lambda: (lambda text: text if word in text else None)(
                self.succeed("process_read", {"process_id": process}, caller=caller).text
            ),
            20,
            f"it says {word}",
        )

    def test_ids_that_are_none(self):
        for one in ("", "0", "1", str(self.host.pid), "-1", "../1", "x" * 10_000, "p-1\0", "p1", "%00"):
            for tool in ("process_status", "process_read", "process_kill"):
                answer = self.call(tool, {"process_id": one})
                self.assertFalse(answer.ok and tool == "process_kill", answer)
        self.assertTrue(self.host.is_alive)

    def test_there_is_an_end_to_their_number(self):
        caller = self.new_caller()
        answers = [self.call("shell", {"command": "sleep 300", "background": True}, caller=caller) for _ in range(40)]
        self.assertTrue(answers[0].ok)
        self.assertFalse(answers[-1].ok, "a session may have 40 background runs")
        caller.close()
        self.forget(caller)
        self.assert_nothing_runs()

    def test_a_flood_in_the_background_is_bounded(self):
        process = self.start("yes")
        for offset in (0, 10**6, 10**15):
            answer = self.call("process_read", {"process_id": process, "offset": offset, "limit": 10**9})
            self.assertLess(len(answer.everything), 4 << 20)
        self.succeed("process_kill", {"process_id": process})
        self.assert_nothing_runs()

    def test_a_deaf_one_is_killed(self):
        process = self.start(DEAF)
        self.read_until(process, "deaf", self.http)
        self.succeed("process_kill", {"process_id": process})
        self.assert_nothing_runs()

    def test_writing_to_one_that_does_not_read_does_not_hang(self):
        process = self.start("sleep 300")
        for _ in range(4):
            self.call("process_write", {"process_id": process, "text": "x" * 200_000}, timeout=2)

    def test_twin_a_conversation(self):
        process = self.start('while read line; do echo "heard $line"; done; echo bye')
        self.succeed("process_write", {"process_id": process, "text": "one\n"})
        self.read_until(process, "heard one", self.http)
        self.succeed("process_write", {"process_id": process, "text": "two\n", "close": True})
        self.read_until(process, "bye", self.http)
        self.assertTrue(self.succeed("process_status", {"process_id": process}).ok)


class Twins(AbuseCase):
    """What people do all day."""

    def run_fine(self, command, caller=None, **arguments):
        answer = self.succeed("shell", {"command": command} | arguments, caller=caller, timeout=60)
        self.assertEqual(answer.exit_code, 0, answer)
        return answer.text

    def test_pipes_and_here_documents(self):
        self.assertIn("b 2", self.run_fine("printf 'b 2\\na 1\\n' | sort -r | head -1"))
        self.assertIn("hello world", self.run_fine("cat <<'EOF' | tr A-Z a-z\nHELLO WORLD\nEOF"))
        self.assertIn("same", self.run_fine("diff <(echo x) <(echo x) && echo same", self.a2e))
        self.assertIn("[3]", self.run_fine('a=(1 2 3); echo "[${a[2]}]"; set -o pipefail; true | true'))

    def test_exit_codes_and_signals(self):
        for command, code in (("exit 3", 3), ("false", 1), ("no-such-program", 127), ("kill -9 $$", None)):
            answer = self.succeed("shell", {"command": command})
            if code is not None:
                self.assertEqual(answer.exit_code, code)
            else:
                self.assertIn("SIGKILL", answer.text)

    def test_temporary_files(self):
        self.assertIn("fine", self.run_fine("d=$(mktemp -d) && echo fine > $d/x && cat $d/x && rm -r $d"))

    def test_standard_input_is_closed(self):
        self.assertIn("end", self.run_fine("cat; read x || echo end"))

    def test_git(self):
        where = self.folder()
        script = """
            export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
            cd $(mktemp -d) && git init -q . && echo x > f && git add f && git commit -qm first
            git log --oneline && git status --short
        """
        self.assertIn("first", self.run_fine(script, working_directory=self.name(where)))

    def test_python(self):
        self.assertIn("499500", self.run_fine("python3 -c 'print(sum(range(1000)))'"))
        self.assertIn(
            "ok",
            self.run_fine(
                "python3 -m venv --help > /dev/null && python3 -c 'import ssl, sqlite3, json; print(\"ok\")'", self.a2e
            ),
        )

    def test_a_compiler_where_there_is_one(self):
        script = (
            "command -v cc > /dev/null || exit 0; printf 'int main(void){return 0;}' > /tmp/a.c && cc -o /tmp/a"
            " /tmp/a.c && /tmp/a"
        )
        self.run_fine(script)


class Toolchains(AbuseCase):
    """With the home of whoever runs the suite, where toolchains lie, and with the usual limits."""

    config = {"sandbox": {}}
    environment = {"HOME": os.environ.get("HOME", "/root")}
    seconds = 110

    def test_rust_where_there_is_one(self):
        script = """
            command -v rustc > /dev/null || { echo none; exit 0; }
            cd $(mktemp -d) && cargo --version && printf 'fn main() { println!("built"); }' > a.rs && rustc a.rs && ./a
        """
        answer = self.succeed("shell", {"command": script}, timeout=90)
        self.assertEqual(answer.exit_code, 0, answer)
        self.assertRegex(answer.text, "built|none")

    def test_keys_in_the_home_are_out_of_sight(self):
        answer = self.succeed(
            "shell",
            {
                "command": (
                    f"ls -a {self.environment['HOME']}/.ssh {self.environment['HOME']}/.gnupg; cat"
                    f" {self.environment['HOME']}/.cargo/credentials*; ls {self.environment['HOME']}"
                )
            },
        )
        self.assertNotIn("id_", answer.text)
        self.assertNotIn("token =", answer.text)
