"""What modules print and log. A call's own words are told as its own, however many calls run; the rest goes where
standard output and error always went."""

import io
import logging
import os
import sys

from . import current
from .plain import shown


class Writer(io.TextIOBase):
    """Stands in for `sys.stdout` and `sys.stderr`."""

    def __init__(self, stream, descriptor):
        self.stream = stream
        self.descriptor = descriptor
        self.buffer = Raw(self)

    encoding = "utf-8"
    errors = "replace"

    def write(self, written):
        if not isinstance(written, str):
            raise TypeError(f"write() argument must be str, not {type(written).__name__}")
        call = current.call()
        if call is not None:
            call.write(self.stream, written)
        else:
            self.pass_on(written.encode("utf-8", "replace"))
        return len(written)

    def pass_on(self, data):
        while data:
            try:
                data = data[os.write(self.descriptor, data) :]
            except InterruptedError:
                continue
            except OSError:
                return

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        return self.descriptor

    def flush(self):
        call = current.call()
        if call is not None:
            call.flush(self.stream)


class Raw(io.RawIOBase):
    """The bytes beneath a writer."""

    def __init__(self, writer):
        self.writer = writer

    def writable(self):
        return True

    def write(self, data):
        self.writer.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class Notes(logging.Handler):
    """Passes log lines on to the host."""

    LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))

    def __init__(self, bridge):
        super().__init__(logging.INFO)
        self.bridge = bridge

    def emit(self, record):
        try:
            message = record.getMessage()
            if record.exc_info and record.exc_info[1] is not None:
                message += f": {type(record.exc_info[1]).__name__}: {shown(record.exc_info[1])}"
        except Exception:
            message = shown(record.msg)
        level = next((word for least, word in self.LEVELS if record.levelno >= least), "debug")
        self.bridge.note(level, f"{record.name}: {message}", log=True)


def install(bridge):
    sys.stdout = sys.__stdout__ = Writer("stdout", 1)
    sys.stderr = sys.__stderr__ = Writer("stderr", 2)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    root = logging.getLogger()
    root.addHandler(Notes(bridge))
    root.setLevel(logging.INFO)
