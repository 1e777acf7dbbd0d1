"""Somebody else who uses the host while it is abused."""

import threading
import time

from callers import HttpCaller

# Far beyond what an answer takes on two busy cores, and far below what a host that hangs would take.
PATIENCE = 10
PAUSE = 0.05


class Meanwhile:
    """Calls `echo` all the time, and notes how long the longest answer took and what went wrong."""

    def __init__(self, host):
        self._caller = HttpCaller(host)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answers, self.slowest, self.trouble = 0, 0.0, None

    def start(self):
        self._thread.start()
        return self

    def once(self):
        """One question; raises where it is not answered in time."""
        word = f"still here {self.answers}"
        begun = time.monotonic()
        answer = self._caller.begin("echo", {"message": word}, timeout=PATIENCE).answer(PATIENCE)
        took = time.monotonic() - begun
        if not answer.ok or answer.text != word:
            raise AssertionError(f"somebody else was answered {answer!r}")
        self.answers += 1
        self.slowest = max(self.slowest, took)

    def _run(self):
        while not self._stop.wait(PAUSE):
            try:
                self.once()
            except Exception as error:
                self.trouble = self.trouble or error

    def end(self):
        """Asks a last time and leaves; raises what went wrong at any time."""
        self._stop.set()
        if self._thread.ident:
            self._thread.join(PATIENCE + 5)
        if self.trouble:
            raise AssertionError(f"somebody else was not served meanwhile: {self.trouble}") from self.trouble
        self.once()
        self._caller.close()
