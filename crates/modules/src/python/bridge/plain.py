"""Any Python value as JSON that every reader takes: no lone surrogates, no NaN, no number or nesting beyond reach."""

import base64
import dataclasses
import datetime
import decimal
import enum
import math
import os

DEEPEST = 60
LARGEST = 1 << 63
# The most values that one thing may have in it, counted where they are found: one list may be found very often.
MOST = 2 << 20


def plain(value):
    """The value as JSON. It never fails and comes to an end, whatever a module's own methods do."""
    try:
        return _Reading().plain(value)
    except BaseException:
        return shown(value)


class _Reading:
    """One value on its way to JSON."""

    def __init__(self):
        # What is being read, from the outermost to the innermost.
        self.path = set()
        self.left = MOST

    def plain(self, value):
        if value is None or value is True or value is False:
            return value
        self.left -= 1
        kind = type(value)
        if kind is str:
            return text(value)
        if kind is int:
            return value if -LARGEST <= value <= LARGEST else shown(value)
        if kind is float:
            return value if math.isfinite(value) else str(value)
        if len(self.path) > DEEPEST or id(value) in self.path or self.left < 0:
            return self._not_read(value)
        self.path.add(id(value))
        try:
            return self._other(value)
        except BaseException:
            return shown(value)
        finally:
            self.path.discard(id(value))

    def _not_read(self, value):
        """Also what a container says of itself may be without end."""
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            return f"<{type(value).__name__} of {len(value)}>"
        return shown(value)

    def _other(self, value):
        if isinstance(value, enum.Enum):
            return self.plain(value.value)
        if isinstance(value, (str, int, float)):
            base = next(base for base in (str, int, float) if isinstance(value, base))
            return self.plain(base(value))
        if isinstance(value, dict):
            return self._table(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._list(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return of_bytes(bytes(value))
        if isinstance(value, decimal.Decimal):
            return str(value)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, os.PathLike):
            return text(os.fspath(value)) if isinstance(os.fspath(value), str) else of_bytes(os.fspath(value))
        if isinstance(value, BaseException):
            return text(f"{type(value).__name__}: {value}")
        if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
            return self.plain(value.model_dump())
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: self.plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return shown(value)

    def _table(self, table):
        read = {}
        for count, (key, value) in enumerate(table.items()):
            if self.left < 0:
                read["…"] = f"<{len(table) - count} more>"
                break
            read[_key(key)] = self.plain(value)
        return read

    def _list(self, values):
        read = []
        for count, value in enumerate(values):
            if self.left < 0:
                read.append(f"<{len(values) - count} more>")
                break
            read.append(self.plain(value))
        return read


def _key(key):
    if isinstance(key, str):
        return text(str(key))
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    return shown(key)


def of_bytes(raw):
    """Bytes as text where they are text, else in base64 with a word about it."""
    try:
        return text(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": base64.b64encode(raw).decode("ascii")}


def text(value):
    """Text that can be written: halves of surrogate pairs are left out, as Amplifier does."""
    return value if value.isascii() else value.encode("utf-8", "ignore").decode("utf-8")


def shown(value):
    """What an object says of itself, or its type where it cannot."""
    try:
        return text(str(value))[:10_000]
    except BaseException:
        if isinstance(value, int):
            # Python does not write very long numbers.
            return f"<a number of {value.bit_length()} bits>"
        return f"<{type(value).__name__}>"
