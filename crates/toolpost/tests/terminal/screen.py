"""A program on a terminal of its own: what it writes is read, and what a person would type is typed."""

import os
import pty
import re
import select
import signal
import threading

from waiting import until

_COLOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE = 20


class Screen:
    """One program. The terminal is its controlling one, whatever else it is given."""

    def __init__(self, words, cwd, environment, stderr=None):
        self.raw = b""
        self._seen = 0
        self._lock = threading.Lock()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                if stderr is not None:
                    os.dup2(stderr, 2)
                os.execve(words[0], words, environment)
            finally:
                os._exit(127)
        self.status = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while True:
            try:
                select.select([self.master], [], [])
                piece = os.read(self.master, 4096)
            except OSError:
                return
            if not piece:
                return
            with self._lock:
                self.raw += piece

    @property
    def text(self):
        """Everything so far, without colours."""
        with self._lock:
            return _COLOR.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n")

    def expect(self, words, seconds=PATIENCE):
        """Waits for words after the last ones that were waited for; gives all up to their end."""
        def found():
            return self.text.find(words, self._seen) >= 0

        try:
            until(found, seconds, f"`{words}` on the screen")
        except AssertionError as late:
            raise AssertionError(f"{late}; there is\n{self.text[self._seen:]}") from None
        start = self._seen
        self._seen = self.text.index(words, start) + len(words)
        return self.text[start:self._seen]

    def type(self, text):
        os.write(self.master, text.encode())

    def line(self, text):
        self.type(text + "\n")

    def ended(self, seconds=PATIENCE):
        """The exit code."""
        def gone():
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
            return self.status is not None

        until(gone, seconds, "the program ends")
        # The terminal still holds the last words: the reader ends once it has read them all.
        self._reader.join(seconds)
        return self.status

    def close(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
            self.status = -signal.SIGKILL
        os.close(self.master)
