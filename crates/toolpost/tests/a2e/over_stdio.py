"""The client's stdio transport: the host is a child, one message a line, and its stderr is a pipe nobody reads."""

import io
import os
import subprocess
import threading

EXIT_PATIENCE, TERM_PATIENCE = 3, 2


class StdioTransport:
    """One session with one child process."""

    def __init__(self, process, *, bytewise=False, reads=True):
        self.process = process
        self.forced = None
        self._bytewise = bytewise
        self._writing = threading.Lock()
        self._may_read = threading.Event()
        if reads:
            self._may_read.set()
        self._reader = None
        self._client = None

    def open(self, client):
        self._client = client
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def go_on_reading(self):
        self._may_read.set()

    def send(self, text):
        self.send_bytes(text.encode() + b"\n")

    def send_bytes(self, raw):
        """Bytes as they are, whole, whatever else is being sent."""
        with self._writing:
            left = memoryview(raw)
            while left:
                left = left[os.write(self.process.stdin.fileno(), left) :]

    def close(self):
        """Ends the child as the stock client does; gives its exit code, and in `forced` what it took."""
        self.process.stdin.close()
        for patience, force in ((EXIT_PATIENCE, "terminate"), (TERM_PATIENCE, "kill")):
            try:
                self.process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                self.forced = force
                getattr(self.process, force)()
        code = self.process.wait()
        if self._reader:
            self._reader.join(EXIT_PATIENCE)
        return code

    def abandon(self):
        """Ends the child at once. Its end is the reader's too, which must be over before the pipe is closed."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._may_read.set()
        if self._reader:
            self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def _read_lines(self):
        self._may_read.wait()
        # The stock client reads the bare pipe, which is one system call a byte.
        with self.process.stdout if self._bytewise else io.BufferedReader(self.process.stdout, 1 << 16) as lines:
            while line := lines.readline():
                try:
                    text = line.decode().rstrip("\r\n")
                except UnicodeDecodeError as error:
                    # This ends the stock client's reader for good.
                    self._client.fault(AssertionError(f"a line that is no UTF-8: {error}"))
                    return
                if text:
                    self._client.take(text)
