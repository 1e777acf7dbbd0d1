"""A host over its standard input and output, one JSON message a line."""

import json
import queue
import subprocess
import threading

import record

PATIENCE = 30


class PipedHost:
    """A host as a child process. Messages that are read are kept in order."""

    def __init__(self, place, words):
        everything = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = place.popen(words, **everything)
        place.hosts.append(self)
        self._place = place
        self.messages, self._errors = [], []
        self._lines = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=lambda: self._errors.extend(self.process.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def send(self, message):
        text = message if isinstance(message, str) else json.dumps(message)
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def until(self, condition):
        """Reads messages up to and with the first that meets the condition; gives those."""
        read = []
        while True:
            line = self._lines.get(timeout=PATIENCE)
            if line is None:
                return read
            read.append(json.loads(line))
            self.messages.append(read[-1])
            if condition(read[-1]):
                return read

    def close(self):
        """Ends the input and waits for the end; gives what came and how it ended."""
        record.settle(self._place.data_dir / "journal.db")
        self.process.stdin.close()
        self.until(lambda _: False)
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(5)
        return {"exit_code": code, "stderr": b"".join(self._errors).decode(errors="replace")}

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
