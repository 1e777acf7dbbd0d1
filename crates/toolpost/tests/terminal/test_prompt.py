"""Being asked on the terminal: by `serve`, by `call` and by `approvals watch`."""

import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import threading

from case import TimedCase
from host import TOOLPOST, Place, path_of
from screen import Screen
from waiting import until

PROMPT = "allow? ["
MCP_SERVER = pathlib.Path(__file__).parent.parent / "mcp" / "server.py"


class Call(threading.Thread):
    """A call of an agent over HTTP, under way."""

    def __init__(self, port, token, tool, arguments):
        super().__init__(daemon=True)
        self.port, self.token, self.tool, self.arguments = port, token, tool, arguments
        self.connection = None
        self.answer = None
        self.start()

    def run(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = json.dumps(self.arguments)
        try:
            self.connection.request("POST", f"/tools/{self.tool}/call", body, headers)
            self.answer = json.loads(self.connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            pass
        finally:
            self.connection.close()

    def result(self):
        self.join(30)
        assert self.answer is not None, "the call was not answered"
        return self.answer


class PromptCase(TimedCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)

    def environment(self, **extra):
        return self.place.environment({"TERM": "xterm"} | extra)

    def words(self, command, *arguments):
        place = ["--workspace", str(self.place.workspace), "--data-dir", str(self.place.data_dir)]
        return [path_of(TOOLPOST), *command, *place, *arguments]

    def screen(self, command, *arguments, stderr=None, **extra):
        screen = Screen(self.words(command, *arguments), self.place.workspace, self.environment(**extra), stderr)
        self.addCleanup(screen.close)
        return screen

    def serve(self, *arguments, stderr=None, **extra):
        screen = self.screen(["serve", "--http", "127.0.0.1:0"], *arguments, stderr=stderr, **extra)
        if stderr is None:
            said = screen.expect("try it:")
            screen.port = int(re.search(r"listening\s+http://127.0.0.1:(\d+)", said)[1])
            screen.banner = said
        return screen

    def ask(self, screen, path="a.txt", content="x"):
        arguments = {"path": path, "content": content}
        return Call(screen.port, self.place.token, "write_file", arguments)

    def cli(self, *words):
        """The command line without a terminal."""
        done = subprocess.run(self.words(list(words)), env=self.environment(), capture_output=True, text=True,
                              timeout=30, stdin=subprocess.DEVNULL, start_new_session=True)
        return done

    def pending(self):
        return json.loads(self.cli("approvals", "--json").stdout)["approvals"]

    def written(self, path="a.txt"):
        file = self.place.workspace / path
        return file.read_text() if file.exists() else None


class Serve(PromptCase):
    def test_a_yes_a_no_and_later(self):
        screen = self.serve()
        self.assertIn("asked on this terminal", screen.banner)
        call = self.ask(screen)
        card = screen.expect(PROMPT)
        for part in ("approval needed", "agent (agent)", "write_file", "a.txt", "expires"):
            self.assertIn(part, card)
        screen.line("y")
        screen.expect("allowed once")
        self.assertEqual(call.result()["outcome"], "succeeded")
        self.assertEqual(self.written(), "x")

        call = self.ask(screen, "b.txt")
        screen.expect(PROMPT)
        screen.line("n")
        screen.expect("reason for the agent?")
        screen.line("not that file")
        screen.expect("denied")
        self.assertIn("not that file", call.result()["error"]["message"])

        call = self.ask(screen, "c.txt")
        screen.expect(PROMPT)
        screen.line("l")
        screen.expect("the question stays open")
        [question] = self.pending()
        done = self.cli("approvals", "allow", question["ask_id"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(call.result()["outcome"], "succeeded")
        self.assertEqual((self.written("b.txt"), self.written("c.txt")), (None, "x"))

    def test_one_answer_allows_the_tools_of_a_server_that_only_read(self):
        (self.place.workspace / "server.py").write_bytes(MCP_SERVER.read_bytes())
        reads = {"readOnlyHint": True, "openWorldHint": False}
        tools = [{"name": name, "description": "Tells.", "inputSchema": {"type": "object"}, "annotations": hints}
                 for name, hints in (("list", reads), ("show", reads), ("save", {}))]
        (self.place.workspace / "tools.json").write_text(json.dumps(tools))
        servers = {"mcpServers": {"notes": {"command": "python3", "args": ["./server.py"]}}}
        (self.place.workspace / "mcp.json").write_text(json.dumps(servers))
        screen = self.serve("--mcp-config", str(self.place.workspace / "mcp.json"))

        def call(tool):
            return Call(screen.port, self.place.token, f"notes__{tool}", {})

        asked = call("save")
        card = screen.expect(PROMPT)
        for part in ("+ notes.list", "+ notes.show", "  notes.save"):
            self.assertIn(part, card)
        self.assertIn("t once and the tools marked +", screen.expect("] "))
        screen.line("t")
        said = screen.expect("allow notes.show")
        self.assertIn("allowed once, and remembered from now on:", said)
        self.assertEqual(asked.result()["outcome"], "succeeded")
        self.assertEqual(call("show").result()["outcome"], "succeeded")
        asked = call("save")
        screen.expect(PROMPT)
        self.assertNotIn("t tools", screen.expect("] "))
        screen.line("t")
        screen.expect("this question offers no further tools")
        screen.line("n no")
        self.assertEqual(asked.result()["outcome"], "denied")

    def test_what_was_typed_before_is_no_answer(self):
        screen = self.serve()
        screen.line("y")
        screen.line("y")
        call = self.ask(screen)
        screen.expect(PROMPT)
        screen.line("what?")
        screen.expect("allow it this once")
        screen.expect(PROMPT)
        self.assertIsNone(self.written())
        screen.line("n no")
        self.assertEqual(call.result()["outcome"], "denied")

    def test_one_question_at_a_time(self):
        screen = self.serve()
        calls = [self.ask(screen, f"{number}.txt", "x") for number in range(3)]
        until(lambda: len(self.pending()) == 3, 10, "three questions")
        for _ in calls:
            card = screen.expect(PROMPT)
            self.assertEqual(card.count("approval needed"), 1, card)
            screen.line("y")
            screen.expect("allowed once")
        self.assertEqual([call.result()["outcome"] for call in calls], ["succeeded"] * 3)

    def test_a_question_that_is_answered_elsewhere_disappears(self):
        screen = self.serve()
        call = self.ask(screen)
        screen.expect(PROMPT)
        [question] = self.pending()
        self.assertEqual(self.cli("approvals", "deny", question["ask_id"]).returncode, 0)
        screen.expect("the question is closed: answered elsewhere")
        self.assertEqual(call.result()["outcome"], "denied")
        call = self.ask(screen, "b.txt")
        screen.expect(PROMPT)
        screen.line("y")
        self.assertEqual(call.result()["outcome"], "succeeded")

    def test_arguments_are_edited_until_they_fit(self):
        editor = self.place.folder / "editor.sh"
        # A slip at the first try, and a right word at the second.
        editor.write_text(
            'stat -c %a "$1" "$(dirname "$1")" >> ' + str(self.place.folder / "modes") + "\n"
            'if [ -e once ]; then sed -i "s/7/\\"y\\"/" "$1"; else touch once; sed -i "s/\\"x\\"/7/" "$1"; fi\n')
        screen = self.serve(EDITOR=f"sh {editor}", VISUAL="")
        call = self.ask(screen)
        screen.expect(PROMPT)
        screen.line("e")
        said = screen.expect("edit again? [Y/n]")
        self.assertIn("content", said)
        screen.line("")
        screen.expect("with the edited arguments")
        self.assertEqual(call.result()["outcome"], "succeeded")
        self.assertEqual(self.written(), "y")
        modes = (self.place.folder / "modes").read_text().split()
        self.assertEqual(modes, ["600", "700"] * 2)

    def test_an_edit_that_is_given_up_keeps_the_question(self):
        screen = self.serve(EDITOR="true", VISUAL="")
        call = self.ask(screen)
        screen.expect(PROMPT)
        screen.line("e")
        screen.expect("no changes; the question stays open")
        screen.expect(PROMPT)
        screen.line("y")
        self.assertEqual(call.result()["outcome"], "succeeded")

    def test_nothing_hides_on_the_screen(self):
        screen = self.serve()
        call = self.ask(screen, "a\u202etxt", "one\x1b[2Jtwo\r\u200b")
        screen.expect(PROMPT)
        raw = screen.raw.decode()
        for harm in ("\u202e", "\x1b[2J", "\u200b"):
            self.assertNotIn(harm, raw)
        self.assertIn("\\u{202e}", screen.text)
        screen.line("n no")
        self.assertEqual(call.result()["outcome"], "denied")

    def test_an_interrupt_stops_the_host_and_the_end_of_input_does_not(self):
        screen = self.serve()
        call = self.ask(screen)
        screen.expect(PROMPT)
        screen.type("\x04")
        screen.expect("the question stays open")
        self.assertEqual(len(self.pending()), 1)
        screen.type("\x03")
        screen.expect("stopping")
        self.assertEqual(screen.ended(), 0)
        self.assertEqual(call.result()["error"]["class"], "approval_pending")
        self.assertIsNone(self.written())

    def test_without_a_prompt(self):
        screen = self.serve("--no-prompt")
        self.assertIn("`toolpost approvals` in another terminal", screen.banner)
        call = self.ask(screen)
        [question] = until(self.pending, 10, "a question")
        self.assertNotIn(PROMPT, screen.text)
        self.cli("approvals", "allow", question["ask_id"])
        self.assertEqual(call.result()["outcome"], "succeeded")

    def test_where_stderr_is_elsewhere_nobody_is_asked(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        screen = self.serve(stderr=writer)
        os.close(writer)
        banner = b""
        while b"try it:" not in banner:
            banner += os.read(reader, 4096)
        screen.port = int(re.search(rb"listening\s+http://127.0.0.1:(\d+)", banner)[1])
        call = self.ask(screen)
        [question] = until(self.pending, 10, "a question")
        self.cli("approvals", "allow", question["ask_id"])
        self.assertEqual(call.result()["outcome"], "succeeded")
        self.assertNotIn(PROMPT, screen.text)


class Calls(PromptCase):
    def test_a_call_of_its_own_asks_here(self):
        screen = self.screen(["call", "write_file", "path=a.txt", "content=x"])
        screen.expect(PROMPT)
        self.assertIsNone(self.written())
        screen.line("y")
        screen.expect("allowed once")
        self.assertEqual(screen.ended(), 0)
        self.assertEqual(self.written(), "x")

    def test_a_no_is_an_exit_code(self):
        screen = self.screen(["call", "write_file", "path=a.txt", "content=x"])
        screen.expect(PROMPT)
        screen.line("n never")
        screen.expect("never")
        self.assertEqual(screen.ended(), 3)

    def test_an_interrupt_is_on_record(self):
        screen = self.screen(["call", "write_file", "path=a.txt", "content=x"])
        screen.expect(PROMPT)
        screen.type("\x03")
        self.assertEqual(screen.ended(), 4)
        last = json.loads(self.cli("journal", "tail", "--json", "-n", "1").stdout)
        self.assertEqual((last["kind"], last["body"]["result"]["outcome"]), ("ended", "canceled"))
        self.assertIsNone(self.written())

    def test_a_call_that_is_not_to_ask(self):
        screen = self.screen(["call", "write_file", "path=a.txt", "content=x", "--no-prompt"])
        screen.expect("this host has no operator")
        self.assertEqual(screen.ended(), 3)


class Watch(PromptCase):
    def test_questions_of_the_running_host_are_answered_as_they_come(self):
        host = self.serve("--no-prompt")
        early = self.ask(host, "a.txt")
        until(self.pending, 10, "a question")
        watch = self.screen(["approvals", "watch"])
        watch.expect("a.txt")
        watch.expect(PROMPT)
        watch.line("y")
        watch.expect("allowed once")
        self.assertEqual(early.result()["outcome"], "succeeded")
        gone = self.ask(host, "b.txt")
        watch.expect("b.txt")
        watch.expect(PROMPT)
        gone.connection.sock.shutdown(socket.SHUT_RDWR)
        watch.expect("the question is closed: answered elsewhere, withdrawn or expired")
        late = self.ask(host, "c.txt")
        watch.expect("c.txt")
        watch.expect(PROMPT)
        watch.line("n no")
        self.assertEqual(late.result()["outcome"], "denied")
        host.type("\x03")
        self.assertEqual(host.ended(), 0)
        watch.expect("the host has ended")
        self.assertEqual(watch.ended(), 1)
