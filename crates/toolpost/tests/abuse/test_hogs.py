"""Commands that want everything: processes, memory, disk, output, time.

None can harm the machine should it not be contained: bombs count down to a few thousand processes, and stop at 6 GiB
of memory and 2 GiB of disk.
"""

import time

from abuse_case import AbuseCase

MIB = 1 << 20

FORK_BOMB = r"""
import os, sys, time
# At most 2^12 processes, whatever happens; each lives for a few seconds.
refused = 0
for _ in range(12):
    try:
        os.fork()
    except OSError:
        os.write(1, b"refused\n" if not refused else b"")
        refused += 1
end = time.time() + 3
while time.time() < end:
    time.sleep(0.1)
os._exit(1 if refused else 0)
"""

MEMORY_HOG = r"""
import os, sys, time
# A tree of processes, 6 GiB together at the most.
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        held = []
        for _ in range(16):
            held.append(bytearray(os.urandom(1 << 16) * 1024))
        time.sleep(2)
        os._exit(0)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
print("killed", sum(1 for status in statuses if status & 0x7f == 9), "of", len(statuses))
"""

DISK_FILLER = r"""
import os, sys
# 2 GiB at the most.
written = 0
number = 0
try:
    for number in range(32):
        with open(f"{sys.argv[1]}/fill-{number}", "wb") as file:
            for _ in range(64):
                file.write(b"x" * (1 << 20))
                written += 1
except OSError as error:
    print("stopped by", error.strerror)
print("wrote", written, "MiB")
for one in range(number + 1):
    try:
        os.unlink(f"{sys.argv[1]}/fill-{one}")
    except OSError:
        pass
"""


class Hogs(AbuseCase):
    seconds = 90

    def test_fork_bomb(self):
        self.write("bomb.py", FORK_BOMB)
        for caller in (self.http, self.a2e):
            answer = self.call(
                "shell", {"command": "ulimit -u 4000; python3 -I bomb.py; echo code $?"}, timeout=20, caller=caller
            )
            self.assertIn(answer.outcome, ("succeeded", "timed_out", "failed"))
            self.assertIn("refused", answer.text, "nothing bounded the processes")
            self.assert_nothing_runs()

    def test_fork_bomb_of_the_shell(self):
        # Each generation counts down, so that it is 2^11 processes at the most where nothing holds it.
        script = 'ulimit -u 4000; b() { [ "$1" -gt 0 ] && { b $(($1 - 1)) | b $(($1 - 1)) & }; sleep 20; }; b 10; wait'
        answer = self.call("shell", {"command": script}, timeout=5)
        self.assertIn(answer.outcome, ("succeeded", "timed_out", "failed"))

    def test_threads_count_too(self):
        script = (
            "python3 -I -c 'import threading, time\nn = 0\ntry:\n  for n in range(3000):"
            ' threading.Thread(target=time.sleep, args=(3,), daemon=True).start()\nexcept RuntimeError: print("stopped'
            ' at", n)\nelse: print("un" + "bounded")\nimport os; os._exit(0)\''
        )
        answer = self.call("shell", {"command": script})
        self.assertNotIn("unbounded", answer.text)

    def test_memory_of_a_tree(self):
        self.write("hog.py", MEMORY_HOG)
        answer = self.call("shell", {"command": "python3 -I hog.py"}, timeout=40)
        self.assertNotIn("killed 0 of", answer.text, "nothing bounded the memory")
        self.assertIn(answer.outcome, ("succeeded", "failed", "timed_out"))

    def test_memory_of_one(self):
        script = (
            'python3 -I -c \'x = []\nfor _ in range(1500): x.append(bytearray(b"x") * (4 << 20))\nprint("un" +'
            ' "bounded")\'; echo code $?'
        )
        answer = self.call("shell", {"command": script}, timeout=40)
        self.assertNotIn("unbounded", answer.text)

    def test_memory_in_shared_places(self):
        # Files in memory count too: `/dev/shm`, the private folder, anonymous files.
        script = """
            dd if=/dev/zero of=/dev/shm/fill bs=1M count=2048 2>&1 | tail -1
            python3 -I -c 'import os
            fd = os.memfd_create("x")
            try:
                for n in range(2048): os.write(fd, b"x" * (1 << 20))
                print("memfd un" + "bounded")
            except OSError as error: print("memfd stopped by", error.strerror)'
        """.replace("            ", "")
        answer = self.call("shell", {"command": script}, timeout=40)
        self.assertNotIn("unbounded", answer.text)
        self.assertNotIn("2048 MiB", answer.text)

    def test_disk_in_the_private_folder(self):
        self.write("fill.py", DISK_FILLER)
        for folder in ("/tmp", "$HOME", "$TMPDIR", "/var/tmp", "/run"):
            answer = self.call("shell", {"command": f"mkdir -p {folder}; python3 -I fill.py {folder}"}, timeout=40)
            self.assertNotIn("wrote 2048 MiB", answer.text, folder)

    def test_disk_in_the_workspace_one_file(self):
        answer = self.call(
            "shell", {"command": "dd if=/dev/zero of=fill bs=1M count=2048; ls -l fill; rm -f fill"}, timeout=40
        )
        self.assertNotIn(str(2048 * MIB), answer.text, "nothing bounded the size of a file")
        self.assertFalse((self.workspace / "fill").exists())

    def test_descriptors(self):
        script = (
            "python3 -I -c 'import os\ntry:\n  for n in range(100000): os.dup(0)\nexcept OSError: print(\"stopped"
            " at\", n)'"
        )
        self.assertIn("stopped at", self.succeed("shell", {"command": script}).text)

    def test_sockets_and_pipes_hold_no_kernel_memory_beyond_the_bound(self):
        script = (
            "python3 -I -c 'import os\ntry:\n  for n in range(100000):\n    r, w = os.pipe(); os.set_blocking(w,"
            ' False); os.write(w, b"x" * 65536)\nexcept OSError as e: print("stopped", n, e.strerror)\''
        )
        self.assertIn("stopped", self.call("shell", {"command": script}).text)

    def test_the_processor_until_the_deadline(self):
        begun = time.monotonic()
        answer = self.call(
            "shell", {"command": "for n in 1 2 3 4; do (while :; do :; done) & done; while :; do :; done"}, timeout=3
        )
        self.assertEqual(answer.outcome, "timed_out")
        self.assertLess(time.monotonic() - begun, 20)
        self.assert_nothing_runs()

    def test_twin_modest_use(self):
        script = """
            for n in $(seq 20); do sleep 0.2 & done; wait
            python3 -I -c 'x = bytearray(64 << 20); print(len(x))'
            dd if=/dev/zero of=/tmp/a bs=1M count=20 2> /dev/null && ls -l /tmp/a | wc -l
            dd if=/dev/zero of=big bs=1M count=20 2> /dev/null && rm big && echo done
        """
        answer = self.succeed("shell", {"command": script})
        self.assertIn("done", answer.text)
        self.assertIn(str(64 * MIB), answer.text)


class Floods(AbuseCase):
    def floods(self):
        return {
            "yes": "yes",
            "a line without an end": "tr '\\0' x < /dev/zero",
            "zeros": "cat /dev/zero",
            "noise": "cat /dev/urandom",
            "errors": "yes >&2",
            "escapes": "yes $'\\e[2J\\e]0;title\\a\\r'",
            "broken text": "yes $'\\xff\\xfe\\xc3'",
            "short lines": "while :; do echo; done",
        }

    def test_floods_end_at_the_deadline_and_stay_small(self):
        for caller in (self.http, self.a2e):
            floods = self.floods()
            answers = self.apart((("shell", {"command": script}) for script in floods.values()), 3, caller.face)
            for name, answer in zip(floods, answers, strict=True):
                with self.subTest(flood=name, face=caller.face):
                    self.assertIn(answer.outcome, ("timed_out", "succeeded", "failed"), answer.outcome)
                    self.assertLess(len(answer.everything), 4 << 20)
                    self.assertNotIn("\x1b", answer.text)

    def test_a_flood_that_ends_keeps_its_ends(self):
        answer = self.succeed("shell", {"command": "echo FIRST; seq 3000000; echo LAST"}, timeout=30)
        self.assertIn("FIRST", answer.text)
        self.assertIn("LAST", answer.text)
        self.assertTrue(answer.truncated)
        self.assertLess(len(answer.everything), 4 << 20)

    def test_a_flood_of_several_at_once(self):
        for answer in self.apart([("shell", {"command": "head -c 40M /dev/zero | tr '\\0' x"})] * 4, 20):
            self.assertIn(answer.outcome, ("succeeded", "timed_out"), answer.outcome)

    def test_who_listens_to_a_flood_is_not_drowned(self):
        one = self.a2e.begin("shell", {"command": "yes | head -c 50000000; echo LAST"}, 20)
        answer = self.clean(one.answer(60))
        self.assertIn("LAST", answer.text)
        self.assertLess(len(one.events), 5_000)

    def test_twin_ordinary_output(self):
        answer = self.succeed("shell", {"command": "seq 100; echo problem >&2; printf 'no newline'"})
        self.assertIn("100", answer.text)
        self.assertIn("problem", answer.text)
        self.assertIn("no newline", answer.text)
