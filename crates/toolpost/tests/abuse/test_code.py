"""Programs for `run_code` that loop, swell, nest, flood, escape and call what they may not."""

from abuse_case import AbuseCase

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
    "f'" + '{f"' * 500 + "x" + '"}' * 500 + "'",
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

    def contained(self, programs, timeout=3, most=8 << 20, at_once=4, caller=None):
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
        floods = (
            "while True: print('x' * 10000)",
            "for i in range(3000000): print(i)",
            "'x' * 50000000",
            "print('\\x1b[2J\\u202e')",
            "list(range(5000000))",
            "print('a' * 30000000)",
            "{str(i): i for i in range(1000000)}",
            "raise Exception('x' * 20000000)",
        )
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
        for inputs in (
            {"__builtins__": 1},
            {"print": 1},
            {"a b": 1},
            {"import": 1},
            {"": 1},
            {"x\n": 1},
            {f"n{i}": i for i in range(20_000)},
        ):
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
            answer = self.succeed(
                "run_code",
                {
                    "code": (
                        "import json, re\nprint(json.dumps({'a': [1, 2]}))\nsum(int(x) for x in re.findall('[0-9]+',"
                        " 'a1b22'))"
                    )
                },
                caller=caller,
            )
            self.assertIn('{"a": [1, 2]}', answer.text)
            self.assertIn("23", answer.text)
        failed = self.call("run_code", {"code": "x = 1\n\nx / 0"})
        self.assertIn("ZeroDivisionError", failed.everything)
