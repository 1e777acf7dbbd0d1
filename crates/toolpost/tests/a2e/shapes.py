"""The checks a value can be put to: what the client's validator takes, and what the host promises.

Two readings of every type. LENIENT is the client's: numbers may come as text, 2.0 is a whole number, "yes" is a
boolean, null only where it is named. EXACT is the host's own promise: whole numbers are JSON integers, booleans are
true and false. Used by `strict`, which names the messages.
"""

import math
import re
from dataclasses import dataclass, field

LENIENT = "lenient"
EXACT = "exact"

_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+(_[0-9]+)*(\.0+)?", re.ASCII)
_TRUE_TEXTS = {"1", "true", "t", "yes", "y", "on"}
_FALSE_TEXTS = {"0", "false", "f", "no", "n", "off"}
_LARGEST_WHOLE_FLOAT = 2.0**63


class Rejected(AssertionError):
    """A message the client would drop, or one that breaks the host's word. Always a failed test."""

    def __init__(self, place, reason):
        super().__init__(f"{place or 'message'}: {reason}")
        self.place = place
        self.reason = reason


def shown(value):
    """A value for an error text, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Anything:
    """No check, null included."""

    def check(self, value, place, reading):
        pass


class Text:
    """A string. Numbers are never turned into one."""

    def __init__(self, pattern=None):
        self.pattern = re.compile(pattern, re.ASCII) if pattern else None

    def check(self, value, place, reading):
        if not isinstance(value, str):
            raise Rejected(place, f"should be a string, is {shown(value)}")
        if reading == EXACT and self.pattern and not self.pattern.fullmatch(value):
            raise Rejected(place, f"should look like {self.pattern.pattern}, is {shown(value)}")


class Choice:
    """One of a few strings. An open choice is only held to by EXACT."""

    def __init__(self, *values, open=False):
        self.values = frozenset(values)
        self.open = open

    def check(self, value, place, reading):
        if not isinstance(value, str):
            raise Rejected(place, f"should be a string, is {shown(value)}")
        if value not in self.values and not (self.open and reading == LENIENT):
            raise Rejected(place, f"should be one of {sorted(self.values)}, is {shown(value)}")


class Whole:
    """An integer field."""

    def check(self, value, place, reading):
        if not (_is_integer(value) or (reading == LENIENT and _passes_for_whole(value))):
            raise Rejected(place, f"should be a whole number, is {shown(value)}")


class Number:
    """A float field."""

    def check(self, value, place, reading):
        if reading == EXACT:
            fits = _is_integer(value) or (isinstance(value, float) and math.isfinite(value))
        else:
            fits = _passes_for_number(value)
        if not fits:
            raise Rejected(place, f"should be a number, is {shown(value)}")


class Flag:
    """A boolean field."""

    def check(self, value, place, reading):
        if not (isinstance(value, bool) or (reading == LENIENT and _passes_for_flag(value))):
            raise Rejected(place, f"should be a boolean, is {shown(value)}")


@dataclass(frozen=True)
class ListOf:
    """A JSON array."""

    item: object

    def check(self, value, place, reading):
        if not isinstance(value, list):
            raise Rejected(place, f"should be a list, is {shown(value)}")
        for number, item in enumerate(value):
            self.item.check(item, f"{place}[{number}]", reading)


@dataclass(frozen=True)
class MapOf:
    """A JSON object with free keys."""

    item: object

    def check(self, value, place, reading):
        if not isinstance(value, dict):
            raise Rejected(place, f"should be an object, is {shown(value)}")
        for key, item in value.items():
            self.item.check(item, f"{place}.{key}", reading)


@dataclass(frozen=True)
class Field:
    """What a key of a record holds.

    `promised` means that the client does not ask for it, but the host always sends it. `ours` means that the client
    does not know it, so only the EXACT reading looks at it.
    """

    kind: object
    required: bool = False
    nullable: bool = False
    promised: bool = False
    ours: bool = False


@dataclass
class Record:
    """A JSON object with known keys. Keys that are not known are ignored, as the client does."""

    fields: dict = field(default_factory=dict)

    def check(self, value, place, reading):
        if not isinstance(value, dict):
            raise Rejected(place, f"should be an object, is {shown(value)}")
        for name, wanted in self.fields.items():
            if wanted.ours and reading == LENIENT:
                continue
            here = f"{place}.{name}" if place else name
            if name not in value:
                if wanted.required or (wanted.promised and reading == EXACT):
                    raise Rejected(here, "is missing")
            elif value[name] is not None or not wanted.nullable:
                wanted.kind.check(value[name], here, reading)


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _passes_for_whole(value):
    if isinstance(value, (int, bool)):
        return True
    if isinstance(value, float):
        return math.isfinite(value) and value.is_integer() and abs(value) < _LARGEST_WHOLE_FLOAT
    return isinstance(value, str) and _WHOLE_TEXT.fullmatch(value.strip()) is not None


def _passes_for_number(value):
    if isinstance(value, (int, str)):
        try:
            float(value)
        except (ValueError, OverflowError):
            return False
        return not isinstance(value, str) or value.strip().isascii()
    return isinstance(value, float)


def _passes_for_flag(value):
    if isinstance(value, (int, float)):
        return value in (0, 1)
    return isinstance(value, str) and value.lower() in _TRUE_TEXTS | _FALSE_TEXTS
