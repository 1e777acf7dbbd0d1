"""Programs for `run_code` that loop, swell, nest, flood, escape and call what they may not."""

from abuse_case import AbuseCase
from waiting import until

LOOPS = (
    "while True: pass",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "def f():\n    return f()\nwhile True:\n    try: f()\n    except Exception: pass",
    "x = 0\nfor _ in range(10**18): x += 1",
    "sum(range(10**15))",
    "list(map(lambda x: x, range(10**12)))",
    "sorted(range(10**9), key=lambda x: -x)",
    "[i for i in range(10**10) if i < 0]",
    "all(True for _ in range(10**12))",
    "'a' in ('b' for _ in range(10**12))",
    "import asyncio\nasync def f():\n    while True: await asyncio.sleep(0)\nawait f()",
)
SWELLS = (
    "x = []\nwhile True: x.append('x' * 1000000)",
    "x = 'x' * 10**11",
    "x = [0] * 10**10",
    "x = b'x' * 10**10",
    "x = {}\ni = 0\nwhile True:\n    x[i] = [i] * 100\n    i += 1",
    "x = 'x'\nwhile True: x = x + x",
    "x = [1]\nwhile True: x = x + x",
    "x = [[]]\nwhile True: x = [x, x, x * 2]",
    "'%0*d' % (10**10, 1)",
    "f'{1:>{10**11}}'",
    "'x'.ljust(10**11)",
    "','.join(['x' * 10**6] * 10**6)",
    "x = 'ab' * 1000\nx.replace('a', 'y' * 10**8)",
    "list(range(10**10))",
    "x = []\nwhile True:\n    try: x.append('y' * 10**7)\n    except BaseException: pass",
)
NUMBERS = (
    "10 ** 10 ** 10",
    "2 ** (2 ** 40)",
    "1 << 10**12",
    "x = 3\nwhile True: x = x * x",
    "int('9' * 10**8)",
    "str(7 ** 10**7)",
    "pow(3, 10**9)",
    "x = 10**100000\nfor _ in range(30): x = x * x",
    "9 ** 9 ** 9 % 7",
    "(10**1000000) // 3 ** 500000",
)
NESTING = (
    "import re\nre.match('(a+)+$', 'a' * 40 + '!')",
    "import re\nre.search('(?=(a+))\\\\1b', 'a' * 5000)",
    "(" * 100_000 + ")" * 100_000,
    "[" * 100_000,
    "-" * 100_000 + "1",
    "not " * 50_000 + "1",
    "1" + "+1" * 200_000,
    "x" + "[0]" * 50_000,
    "f" + "()" * 50_000,
    "lambda: " * 50_000 + "1",
    "if 1:\n" + "".join(" " * depth + "if 1:\n" for depth in range(1, 1000)) + " " * 1000 + "pass",
    "x = " + "{'a': " * 20_000 + "1" + "}" * 20_000,
    "f'" + "{f\"" * 500 + "x" + "\"}" * 500 + "'",
    "def f(): return f() + 1\nf()",
    "x = []\nfor _ in range(200000): x = [x]\nprint(x)",
    "x = []\nx.append(x)\nprint(x)\nx == x",
    "a = []\nb = []\nfor _ in range(100000):\n    a = [a]\n    b = [b]\na == b",
    "x = 1 if 1 else " * 20_000 + "1",
    "# " + "x" * 3_000_000,
    "'" + "y" * 3_000_000 + "'",
    "x;" * 500_000,
)
ESCAPES = (
    "().__class__.__bases__[0].__subclasses__()",
    "(lambda: 0).__globals__",
    "(lambda: 0).__code__.co_consts",
    "[c for c in {}.__class__.__mro__[-1].__subclasses__() if c.__name__ == 'Popen']",
    "__import__('os').system('id')",
    "__builtins__['open']('/etc/passwd').read()",
    "eval('1+1')",
    "exec('x=1')",
    "compile('1', 'x', 'eval')",
    "globals()['__builtins__']",
    "getattr((), '__cl' + 'ass__').__base__",
    "import os\nos.system('id')",
    "import subprocess\nsubprocess.run(['id'])",
    "import ctypes\nctypes.CDLL(None)",
    "import socket\nsocket.socket()",
    "import importlib\nimportlib.import_module('os')",
    "import sys\nsys.modules['os']",
    "import builtins\nbuiltins.open('/etc/passwd')",
    "open('/etc/passwd').read()",
    "open('/proc/self/environ').read()",
    "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "from pathlib import Path\nlist(Path('/').iterdir())",
    "import os\nos.environ['HOST_PASSWORD']",
    "import os\nos.getenv('HOST_PASSWORD') + ''",
    "breakpoint()",
    "input()",
    "'{0.__class__.__init__.__globals__}'.format(open)",
    "print.__self__",
    "import gc\ngc.get_objects()",
    "import pickle\npickle.loads(b'cos\\nsystem\\n(S\"id\"\\ntR.')",
)


class Interpreter(AbuseCase):
    """The embedded interpreter."""

    seconds = 110

    def contained(self, programs, timeout=4, most=8 << 20, at_once=3, caller=None):
        """Runs them; gives each with its answer, which is never large."""
        answers = self.many((("run_code", {"code": code}) for code in programs), timeout, caller, at_once)
        for code, answer in zip(programs, answers, strict=True):
            self.assertLess(len(answer.everything), most, code[:70])
        return list(zip(programs, answers, strict=True))

    def assert_none_worked(self, ran):
        for code, answer in ran:
            with self.subTest(code=code[:70]):
                self.assertFalse(answer.ok, answer)

    def test_loops_end(self):
        self.assert_none_worked(self.contained(LOOPS, timeout=2))

    def test_swelling_is_bounded(self):
        self.assert_none_worked(self.contained(SWELLS))

    def test_numbers_are_bounded(self):
        self.assert_none_worked(self.contained(NUMBERS))

    def test_nesting_is_bounded(self):
        for code, answer in self.contained(NESTING, caller=self.a2e):
            with self.subTest(code=code[:70]):
                self.assertIn(answer.outcome, ("succeeded", "failed", "timed_out"), answer)

    def test_escapes_fail(self):
        for code, answer in self.contained(ESCAPES, at_once=8):
            self.assertNotIn("root:x:0", answer.text)
            self.assertNotIn("uid=", answer.text)
            with self.subTest(code=code):
                self.assertFalse(answer.ok, answer)

    def test_floods_are_cut(self):
        floods = ("while True: print('x' * 10000)", "for i in range(3000000): print(i)", "'x' * 50000000", "print('\\x1b[2J\\u202e')",
                  "list(range(5000000))", "print('a' * 30000000)", "{str(i): i for i in range(1000000)}", "raise Exception('x' * 20000000)")
        for code, answer in self.contained(floods, timeout=5):
            with self.subTest(code=code):
                self.assertIn(answer.outcome, ("succeeded", "failed", "timed_out"), answer)

    def test_the_host_does_not_swell(self):
        before = self.host.resident_bytes()
        self.contained(SWELLS[:4] + NUMBERS[:4], timeout=3)
        self.assertLess(self.host.resident_bytes() - before, 150 << 20)

    def test_a_worker_that_was_killed_is_replaced(self):
        for _ in range(3):
            self.call("run_code", {"code": SWELLS[0]}, timeout=5)
            self.assertIn("42", self.succeed("run_code", {"code": "6 * 7"}).text)

    def test_no_state_is_kept(self):
        one, other = self.new_caller(), self.new_caller("a2e")
        self.succeed("run_code", {"code": "secret_name = 'kept'\nsecret_name"}, caller=one)
        for caller in (one, other):
            answer = self.call("run_code", {"code": "secret_name"}, caller=caller)
            self.assertFalse(answer.ok, answer)
            self.assertNotIn("kept", answer.text)

    def test_inputs_are_values_and_nothing_else(self):
        answer = self.succeed("run_code", {"code": "text", "inputs": {"text": "__import__('os').system('id')"}})
        self.assertNotIn("uid=", answer.text)
        for inputs in ({"__builtins__": 1}, {"print": 1}, {"a b": 1}, {"import": 1}, {"": 1}, {"x\n": 1}, {f"n{i}": i for i in range(20_000)}):
            self.call("run_code", {"code": "1", "inputs": inputs})

    def test_a_crowd_of_loops(self):
        running = [self.http.begin("run_code", {"code": "while True: pass"}, 3) for _ in range(10)]
        for one in running:
            self.assertFalse(self.clean(one.answer(60)).ok)

    def test_a_caller_that_hangs_up(self):
        one = self.http.begin("run_code", {"code": "while True: pass"}, 60)
        self.succeed("run_code", {"code": "1"}, caller=self.new_caller())
        one.hang_up()

    def test_twin_computing(self):
        for caller in (self.http, self.a2e):
            answer = self.succeed("run_code", {"code": "import json, re\nprint(json.dumps({'a': [1, 2]}))\nsum(int(x) for x in re.findall('[0-9]+', 'a1b22'))"}, caller=caller)
            self.assertIn('{"a": [1, 2]}', answer.text)
            self.assertIn("23", answer.text)
        failed = self.call("run_code", {"code": "x = 1\n\nx / 0"})
        self.assertIn("ZeroDivisionError", failed.everything)


class Calls(AbuseCase):
    """What code may call."""

    config = {"code": {"tools": ["read_file", "grep", "glob", "write_file", "run_code", "http_request"], "calls": 50}, "rules": ["deny write_file"]}

    @classmethod
    def prepare(cls):
        for number in range(20):
            (cls.workspace / f"f{number}.txt").write_text(f"number {number}\n")

    def run_code(self, code, **arguments):
        return self.call("run_code", {"code": code} | arguments)

    def test_what_is_not_granted_does_not_exist(self):
        for name in ("shell", "delete_file", "edit_file", "echo", "process_kill", "no_such_tool", "files.read_file"):
            answer = self.run_code(f"try:\n    {name.replace('.', '_')}(command='id', path='f1.txt')\nexcept NameError as e:\n    print('no name')")
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
        answer = self.run_code("try:\n    write_file(path='made.txt', content='x')\nexcept Exception as e:\n    print('caught', type(e).__name__)")
        self.assertFalse((self.workspace / "made.txt").exists())
        self.assertTrue("caught" in answer.text or not answer.ok, answer)
        self.assertFalse(self.run_code("write_file(path='made.txt', content='x')").ok)

    def test_code_does_not_run_code(self):
        answer = self.run_code("run_code(code='1')")
        self.assertFalse(answer.ok, answer)

    def test_calls_are_counted(self):
        for code in (
            "for i in range(1000): read_file(path='f1.txt')",
            "n = 0\nwhile True:\n    try:\n        read_file(path='f1.txt')\n        n += 1\n    except Exception: pass",
            "n = 0\nfor i in range(1000):\n    try:\n        read_file(path='missing')\n    except Exception: n += 1\nn",
        ):
            with self.subTest(code=code):
                answer = self.call("run_code", {"code": code}, timeout=8)
                self.assertFalse(answer.ok and "1000" in answer.text, answer)

    def test_inner_calls_are_confined_as_outer_ones(self):
        for path in ("../outside/secret.txt", str(self.loot.file), "/etc/passwd", f"/proc/{self.host.pid}/environ"):
            for code in (f"read_file(path={path!r})", f"open({path!r}).read()", f"from pathlib import Path\nPath({path!r}).read_text()"):
                self.assertFalse(self.run_code(code).ok)
        self.assertFalse(self.run_code(f"http_request(url='http://127.0.0.1:{self.host.port}/health')").ok)

    def test_odd_arguments(self):
        for arguments in ("1", "path=1", "path=None", "path=[]", "path='x' * 10**6", "**{'path': 'f1.txt', 'extra': 1}", "path=lambda: 1",
                          "path='a\\0b'", "path=float('nan')", "path={1: 2}", "path=10**5000", "path='\\ud800'"):
            answer = self.run_code(f"read_file({arguments})")
            self.assertFalse(answer.ok, answer)

    def test_at_the_deadline_of_the_outer_call_everything_ends(self):
        answer = self.call("run_code", {"code": "while True:\n    try: grep(pattern='number')\n    except BaseException: pass"}, timeout=3)
        self.assertFalse(answer.ok, answer)
        self.assertIn("42", self.succeed("run_code", {"code": "42"}).text)

    def test_twin_a_loop_over_files(self):
        code = "total = 0\nfor i in range(20):\n    total += len(str(read_file(path=f'f{i}.txt')))\nprint(grep(pattern='number 7'))\ntotal > 100"
        for caller in (self.http, self.a2e):
            answer = self.succeed("run_code", {"code": code}, caller=caller)
            self.assertIn("True", answer.text)
            self.assertIn("f7.txt", answer.text)


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
        running = [self.http.begin("run_code", {"code": code, "language": "python3"}, 4) for code in (
            "while True: pass",
            "x = []\nfor _ in range(1500): x.append(bytearray(4 << 20))",
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(300)\nprint('over')",
            "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(300)",
            "while True: print('x' * 10000)",
        )]
        for one in running:
            self.assertLess(len(self.clean(one.answer(40)).everything), 8 << 20)
        self.assert_nothing_runs()

    FORGE = r"""
import json, os, socket, stat, struct, sys, time
wires = [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name) and stat.S_ISSOCK(os.stat("/proc/self/fd/" + name).st_mode)]
wire = socket.socket(fileno=wires[0])
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
            "an end, and then more": "wire.sendall(frame({'ended': {'ending': {'value': {'json': 1, 'repr': 'forged'}}, 'unprinted': 2**64 - 1}}) * 1000); time.sleep(300)",
            "a giant end": "wire.sendall(frame({'ended': {'ending': {'value': {'json': 'x' * 2400000, 'repr': 'y' * 2400000}}, 'unprinted': 0}})); time.sleep(300)",
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
for number, function in enumerate([{"named": "shell"}, {"named": "delete_file"}, {"named": "shell.shell"}, {"named": "files.write_file"}, {"named": "write_file_async"}, {"file": "write"}, {"file": "info"}]):
    wire.sendall(frame({"call": {"id": number, "function": function, "positional": [], "keywords": {"path": "forged.txt", "content": "x", "command": "echo forged > forged.txt"}}}))
    said.append(str(receive())[:100])
print(said)
"""
        answer = self.call("run_code", {"code": code, "language": "python3", "tools": ["read_file"]})
        self.assertIn("unknown", answer.text)
        self.assertFalse((self.workspace / "forged.txt").exists())

    def test_a_flood_of_questions_whose_answers_nobody_reads(self):
        before = self.host.resident_bytes()
        floods = [
            "many = frame({'lookup': {'id': 1, 'name': 'no_such_name'}}) * 1000\nwhile True: wire.sendall(many)",
            "many = frame({'call': {'id': 1, 'function': {'named': 'read_file'}, 'positional': [1] * 50, 'keywords': {}}}) * 300\nwhile True: wire.sendall(many)",
            "many = frame({'call': {'id': 1, 'function': {'named': 'read_file'}, 'positional': ['x'], 'keywords': {}}}) * 300\nwhile True: wire.sendall(many)",
        ]
        calls = [("run_code", {"code": self.FORGE + flood, "language": "python3"}) for flood in floods]
        running = [self.new_caller().begin(*call, 8) for call in calls]
        most = [before]
        until(lambda: most.append(max(most.pop(), self.host.resident_bytes())) or all(one.is_over for one in running), 40, "an end")
        self.assertLess(most[0] - before, 32 << 20, "the host keeps answers that nobody reads")

    def test_twin_real_python(self):
        answer = self.run_code("import hashlib, decimal, subprocess\nprint(subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout)\nprint(hashlib.sha256(b'x').hexdigest()[:8])")
        self.assertTrue(answer.ok, answer)
        self.assertIn("hi", answer.text)
