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


def plain(value, depth=0):
    """The value as JSON. It never fails, whatever a module's own methods do."""
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return text(value)
    if kind is int:
        return value if -LARGEST <= value <= LARGEST else str(value)
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if depth > DEEPEST:
        return shown(value)
    try:
        return _other(value, depth + 1)
    except Exception:
        return shown(value)


def _other(value, depth):
    if isinstance(value, enum.Enum):
        return plain(value.value, depth)
    if isinstance(value, (str, int, float)):
        base = next(base for base in (str, int, float) if isinstance(value, base))
        return plain(base(value), depth)
    if isinstance(value, dict):
        return {_key(key): plain(each, depth) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each, depth) for each in value]
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
        return plain(value.model_dump(), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), depth) for field in dataclasses.fields(value)}
    return shown(value)


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
    """Text that can be written: a lone half of a surrogate pair becomes a question mark."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def shown(value):
    """What an object says of itself, or its type where it cannot."""
    try:
        return text(str(value))[:10_000]
    except Exception:
        return f"<{type(value).__name__}>"
