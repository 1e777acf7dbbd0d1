"""The values that differ from run to run, such as ids and times, and how a shown one is recognised in a real output.

An id is bound: the same shown id stands for the same real id all over a page. Of the others only the form counts.
"""

import re
from dataclasses import dataclass

_MEASURED = (
    "total_us|queued_us|execute_us|at_us|took_us|took_ms|duration_ms|durationMs|duration_us|waited_us|elapsed_ms|"
    "uptime_s|uptime_seconds|mtime|pid"
)
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?"
_HTTP_DATE = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"


def _hex(digits):
    return rf"(?<![0-9a-f])[0-9a-f]{{{digits}}}(?![0-9a-f])"


# A short id stands alone; other words of eight hexadecimal digits are parts of something.
_SHORT = r"(?<![\w.:/-])(?=[a-f]*[0-9])[0-9a-f]{8}(?![\w.])"

# The kinds in the order in which they are tried: a name, a pattern, and whether values are bound.
_KINDS = [
    # A page may cut an id: `6799f9d3-1c49-…`.
    ("cut_uuid", r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){0,3}…", False),
    ("uuid", _UUID, True),
    ("hash", _hex(64), True),
    ("id32", _hex(32), True),
    ("surface", r"(?<=surface-)[0-9a-f]{24}", True),
    ("workspace", _hex(16), True),
    ("call_hash", r"(?<=call hash )[0-9a-f]{12}", True),
    ("short", _SHORT, True),
    ("time", _TIME, False),
    ("http_date", _HTTP_DATE, False),
    ("day", r"(?<= on )\d{4}-\d\d-\d\d(?=,|$)", False),
    ("epoch", r"(?<![\w.])1[6-9]\d{8}\.\d+", False),
    ("measured", rf'\\?"(?:{_MEASURED})\\?": ?\d+(?:\.\d+)?', False),
    ("milliseconds", r" *(?<![\d.])\d+\.\d+ ms", False),
    ("spent", r"\d+\.\d+ waiting, \d+\.\d+ in the tool", False),
    ("whole", r"(?:(?<=\bin )|(?<=after ))\d+ ms", False),
    ("seconds", r"(?:(?<= in )|(?<=running ))\d+\.\d+ ?s\b", False),
    ("left", r" *\b\d+ (?:s|min) left", False),
    ("expiry", r"(?<=expires    in )\d+ (?:s|min)", False),
    ("process", r"(?<=process )\d+", False),
    # What the machine can confine.
    ("tier", r"(?<=sandbox        )tier [ABCN]: [^\n]*", False),
    ("bar", r"\|[ #]{30}\|", False),
]
VARYING = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in _KINDS))
_PATTERNS = {name: pattern for name, pattern, _ in _KINDS}
_BOUND = {name for name, _, is_bound in _KINDS if is_bound}
# What the real value of a shown one may look like, where that is not the pattern itself.
_REAL = {"cut_uuid": _UUID, "day": r"\d{4}-\d\d-\d\d", "bar": _PATTERNS["bar"]}


@dataclass(frozen=True)
class VaryingValue:
    kind: str
    text: str

    @property
    def is_bound(self):
        return self.kind in _BOUND

    def real_pattern(self):
        """The pattern of the real values that this shown one may stand for."""
        if self.kind == "time":
            seconds = r":\d\d(?:\.\d+)?" if re.search(r":\d\d:\d\d\.", self.text) else ""
            seconds = seconds or (r":\d\d" if self.text.count(":") == 2 else "")
            return rf"\d{{4}}-\d\d-\d\d{self.text[10]}\d\d:\d\d{seconds}{'Z' if self.text.endswith('Z') else ''}"
        if self.kind == "measured":
            return re.sub(r"\d+(?:\\\.\d+)?$", lambda _: r"\d+(?:\.\d+)?", re.escape(self.text))
        if self.kind in ("left", "whole", "expiry"):
            unit = "ms" if self.kind == "whole" else "(?:s|min)"
            return rf" *\d+ {unit}" + (" left" if self.kind == "left" else "")
        if self.kind == "seconds":
            return r"\d+\.\d+" + re.sub(r"^[\d.]+", "", self.text)
        return _REAL.get(self.kind, _PATTERNS[self.kind])


def varying_at(found):
    """The value of a match of `VARYING`; nothing if it is a digest of a content, which does not vary."""
    kind = found.lastgroup
    if kind == "hash" and re.search(r"sha256\W{0,3}$", found.string[: found.start()]):
        return None
    return VaryingValue(kind, found[0])


class Bindings:
    """Which real id each shown id of a page stands for."""

    def __init__(self):
        self._real, self._shown = {}, {}

    def real(self, shown):
        return self._real.get(shown)

    def shown(self, real):
        return self._shown.get(real)

    def bind(self, shown, real):
        """Whether the pair fits what is known; if so, it is known from now on."""
        if self._real.get(shown, real) != real or self._shown.get(real, shown) != shown:
            return False
        self._real[shown], self._shown[real] = real, shown
        return True

    def as_real(self, text):
        """A shown text with the real ids. Those that no earlier output has shown are reported."""
        unknown = []

        def replace(found):
            value = varying_at(found)
            if value is None or not value.is_bound:
                return found[0]
            real = self._real.get(value.text)
            if real is None:
                unknown.append(value.text)
            return real or value.text

        return VARYING.sub(replace, text), unknown

    def as_shown(self, text):
        """A real text with the ids that the page shows."""
        return VARYING.sub(lambda found: self._shown.get(found[0], found[0]), text)
