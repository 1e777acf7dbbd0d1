"""The private channel to the host: one JSON object a line, both ways."""

import json
import os
import threading


class Channel:
    """Sends from any thread; read by the main thread alone."""

    def __init__(self, descriptor, rest=b""):
        self.descriptor = descriptor
        self.buffer = bytearray(rest)
        self.lock = threading.Lock()

    def send(self, **message):
        self.send_line(encoded(message))

    def send_line(self, line):
        view = memoryview(line)
        with self.lock:
            while view:
                try:
                    view = view[os.write(self.descriptor, view) :]
                except InterruptedError:
                    continue
                except OSError:
                    # The host is gone, and whoever started this process ends it.
                    os._exit(0)

    def lines(self):
        """Every message until the host hangs up."""
        start = 0
        while True:
            end = self.buffer.find(b"\n", start)
            if end >= 0:
                line = bytes(self.buffer[:end])
                del self.buffer[: end + 1]
                start = 0
                yield json.loads(line)
                continue
            start = len(self.buffer)
            try:
                piece = os.read(self.descriptor, 1 << 16)
            except InterruptedError:
                continue
            if not piece:
                return
            self.buffer += piece


def encoded(message):
    """A message as a line. What is in it went through `plain` where it came from a module."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "ignore") + b"\n"
