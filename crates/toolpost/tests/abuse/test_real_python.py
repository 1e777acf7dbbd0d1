"""`run_code` with `language: python3`: all that CPython can, in the sandbox, with a wire to the host to be found."""

from abuse_case import AbuseCase


class RealPython(AbuseCase):
    """`language: python3`: everything CPython can, in the sandbox."""

    def run_code(self, code, timeout=20, caller=None):
        return self.call("run_code", {"code": code, "language": "python3"}, timeout=timeout, caller=caller)

    def test_it_is_confined_as_the_shell_is(self):
        for code in (
            f"print(open({str(self.loot.file)!r}).read())",
            f"print(open('/proc/{self.host.pid}/environ').read())",
            f"import socket\nsocket.create_connection(('127.0.0.1', {self.host.port}), 2)\nprint('connected')",
            "open('/usr/abuse-was-here', 'w')\nprint('written')",
            "import os\nos.setuid(12345)\nprint('other')",
        ):
            answer = self.run_code(code)
            for word in ("connected", "written", "other"):
                self.assertNotIn(word + "\n", answer.text + "\n")
            self.assertTrue(not answer.ok or answer.exit_code not in (0, None) or "Error" in answer.text, answer)

    def test_no_environment_is_inherited(self):
        answer = self.run_code("import os\nprint(dict(os.environ))")
        self.assertNotIn("PLAIN_NAME", answer.text)

    def test_hogs_and_daemons_end(self):
        codes = (
            "while True: pass",
            "x = []\nfor _ in range(1500): x.append(bytearray(4 << 20))",
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(300)\nprint('over')",
            "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(300)",
            "while True: print('x' * 10000)",
        )
        for answer in self.apart((("run_code", {"code": code, "language": "python3"}) for code in codes), timeout=4):
            self.assertLess(len(answer.everything), 8 << 20)
        self.assert_nothing_runs()

    FORGE = r"""
import json, os, socket, stat, struct, sys, time
def is_socket(name):
    try:
        return stat.S_ISSOCK(os.fstat(int(name)).st_mode)
    except OSError:
        return False
wire = socket.socket(fileno=next(int(name) for name in os.listdir("/proc/self/fd") if is_socket(name)))
def frame(value):
    data = json.dumps(value).encode()
    return struct.pack(">I", len(data)) + data
def receive():
    size = struct.unpack(">I", wire.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(wire.recv(size, socket.MSG_WAITALL))
"""

    def test_code_that_speaks_for_itself(self):
        """It finds the wire to the host and says what the host's own side would never say."""
        ends = {
            "a length of four gigabytes": "wire.sendall(b'\\xff\\xff\\xff\\xff' + b'x' * 100000); time.sleep(300)",
            "no frame": "wire.sendall(struct.pack('>I', 5) + b'{{{{{'); time.sleep(300)",
            "half a frame": "wire.sendall(struct.pack('>I', 500) + b'{'); time.sleep(300)",
            "deep": "data = b'[' * 2000000; wire.sendall(struct.pack('>I', len(data)) + data); time.sleep(300)",
            "the greeting again": "wire.sendall(frame('ready')); time.sleep(300)",
            "an end, and then more": (
                "wire.sendall(frame({'ended': {'ending': {'value': {'json': 1, 'repr': 'forged'}}, 'unprinted': 2**64 -"
                " 1}}) * 1000); time.sleep(300)"
            ),
            "a giant end": (
                "wire.sendall(frame({'ended': {'ending': {'value': {'json': 'x' * 2400000, 'repr': 'y' * 2400000}},"
                " 'unprinted': 0}})); time.sleep(300)"
            ),
            "giant prints": "\nwhile True: wire.sendall(frame({'printed': {'text': 'x' * 1000000}}))",
        }
        calls = [("run_code", {"code": self.FORGE + end, "language": "python3"}) for end in ends.values()]
        for name, answer in zip(ends, self.apart(calls, timeout=6), strict=True):
            with self.subTest(end=name):
                self.assertLess(len(answer.everything), 8 << 20)
                self.assertIn(answer.outcome, ("succeeded", "failed", "timed_out"), answer)
        self.assert_nothing_runs()

    def test_no_tool_is_had_by_asking_for_it_in_other_words(self):
        code = self.FORGE + """
said = []
names = ["shell", "delete_file", "shell.shell", "files.write_file", "write_file_async"]
keywords = {"path": "forged.txt", "content": "x", "command": "echo forged > forged.txt"}
for number, function in enumerate([{"named": name} for name in names] + [{"file": "write"}, {"file": "info"}]):
    call = {"id": number, "function": function, "positional": [], "keywords": keywords}
    wire.sendall(frame({"call": call}))
    said.append(str(receive())[:100])
print(said)
"""
        answer = self.call("run_code", {"code": code, "language": "python3", "tools": ["read_file"]})
        self.assertIn("unknown", answer.text)
        self.assertFalse((self.workspace / "forged.txt").exists())

    def test_a_flood_of_questions_whose_answers_nobody_reads(self):
        """The host must stop to listen at some point, or it would keep answers without an end."""
        send = """
wire.settimeout(4)
sent = 0
try:
    while sent < (24 << 20):
        sent += wire.send(many)
    print("never", "stopped")
except TimeoutError:
    print("stopped at", sent)
wire.settimeout(None)
os._exit(0)
"""
        floods = [
            "many = frame({'lookup': {'id': 1, 'name': 'no_such_name'}}) * 1000",
            (
                "many = frame({'call': {'id': 1, 'function': {'named': 'read_file'}, 'positional': [1] * 50,"
                " 'keywords': {}}}) * 300"
            ),
        ]
        calls = [("run_code", {"code": self.FORGE + flood + send, "language": "python3"}) for flood in floods]
        for answer in self.apart(calls, timeout=40):
            self.assertNotIn("never stopped", answer.everything)

    def test_code_that_hangs_up_and_goes_on(self):
        """Whoever lets go of the wire is not waited for, whatever the time limit."""
        answer = self.run_code("import os, time\nos.closerange(3, 64)\nos.close(0)\ntime.sleep(1000)")
        self.assertFalse(answer.ok, answer)

    def test_twin_real_python(self):
        answer = self.run_code(
            "import hashlib, decimal, subprocess\nprint(subprocess.run(['echo', 'hi'], capture_output=True,"
            " text=True).stdout)\nprint(hashlib.sha256(b'x').hexdigest()[:8])"
        )
        self.assertTrue(answer.ok, answer)
        self.assertIn("hi", answer.text)
