"""Watching calls on a terminal: cards that are drawn in place, and a terminal that is left as it was found."""

import fcntl
import json
import queue
import struct
import termios
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from case import TimedCase
from host import TOOLPOST, Place, path_of
from screen import Screen

HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"
CTRL_C = "\x03"


def event(kind, call, **members):
    return json.dumps({"type": kind, "toolCallId": call, **members}) + "\n"


class Stream(BaseHTTPRequestHandler):
    """Lines of the server's queue, until a `None`."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        for line in iter(self.server.lines.get, None):
            self.wfile.write(line.encode())
            self.wfile.flush()

    def log_message(self, *_):
        pass


class Watch(TimedCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
        self.server.daemon_threads = True
        self.server.lines = queue.Queue()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        # In reverse order: the stream ends before the server waits for it.
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.end)

    def watch(self, *words, lines=24, columns=80, **environment):
        environment = self.place.environment({"TERM": "xterm-256color"} | environment)
        command = [path_of(TOOLPOST), "watch", f"http://127.0.0.1:{self.server.server_port}/stream", *words]
        screen = Screen(command, self.place.workspace, environment)
        self.addCleanup(screen.close)
        fcntl.ioctl(screen.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        return screen

    def add(self, *events):
        for line in events:
            self.server.lines.put(line)

    def end(self):
        self.server.lines.put(None)

    def test_a_card_appears_runs_and_settles(self):
        screen = self.watch()
        screen.expect("0 running, 0 ended")
        self.add(event("tool-call", "a", toolName="shell", input={"command": "ls"}))
        screen.expect("shell  running")
        screen.expect("command = ls")
        screen.expect("1 running, 0 ended")
        self.add(event("tool-result", "a", output="x.txt\ny.txt", durationMs=1500))
        screen.expect("✓ shell  done in 1.5 s")
        screen.expect("→ x.txt")
        screen.expect("0 running, 1 ended")
        screen.type(CTRL_C)
        self.assertEqual(screen.ended(), 0)
        self.assertEqual(screen.raw.count(HIDE_CURSOR), 1)
        self.assertTrue(screen.raw.endswith(SHOW_CURSOR), screen.raw[-200:])

    def test_no_more_is_drawn_than_fits(self):
        screen = self.watch(lines=8)
        screen.expect("0 running")
        self.add(*(event("tool-call", str(n), toolName=f"tool{n}", input={"n": n}) for n in range(40)))
        said = screen.expect("40 running")
        frame = said[said.rindex("tool0 "):]
        self.assertIn("… 35 more are running", frame)
        self.assertLessEqual(frame.count("\n"), 7, frame)

    def test_what_others_say_does_not_command_the_terminal(self):
        self.add(event("tool-error", "a", toolName="evil\x1b[2J", error="\x1b]0;owned\x07 \x9b31m"))
        self.end()
        screen = self.watch(NO_COLOR="")
        screen.expect("evil\\u{1b}[2J")
        screen.expect("\\u{1b}]0;owned\\u{7} \\u{9b}31m")
        self.assertEqual(screen.ended(), 0)
        self.assertNotIn(b"\x1b[2J", screen.raw)
        self.assertNotIn(b"\x1b]", screen.raw)
        self.assertIn(b"\x1b[31m", screen.raw)

    def test_colours_can_be_left_out(self):
        self.add(event("tool-result", "a", toolName="t", output=1))
        self.end()
        screen = self.watch(NO_COLOR="1")
        self.assertEqual(screen.ended(), 0)
        screen.expect("✓ t  done")
        self.assertNotIn(b"m\xe2\x9c\x93", screen.raw)

    def test_a_terminal_that_cannot_draw_gets_lines(self):
        self.add(event("tool-result", "a", toolName="t", output=1))
        self.end()
        screen = self.watch(TERM="dumb")
        self.assertEqual(screen.ended(), 0)
        screen.expect("done     a  t  → 1")
        self.assertNotIn(b"\x1b", screen.raw)
