"""Replaces everything that differs between two runs of one binary by stable placeholders.

Every capture has its own numbering: the first id of a file is `<id-1>`, the next new one `<id-2>`. The same id has the
same placeholder within a file, so a file still shows which records belong together. Digests of stable things, such as
tool definitions and file contents, stay as they are: a refactoring must not change them.
"""

import json
import re

from place import Ran

# JSON members whose numbers are measured.
MEASURED = {
    "total_us", "queued_us", "execute_us", "at_us", "took_us", "duration_ms", "durationMs", "took_ms",
    "duration_us", "transitions", "uptime_seconds", "elapsed_ms", "pid", "process", "uptime_s", "waited_us", "mtime",
}  # fmt: skip
# The digest of a request covers its arguments. Captures whose arguments name an id mark their request ids so.
NAMES_AN_ID = "names-an-id-"
REQUEST_DIGESTS = {"digest", "request_digest"}
# The folder of a search that its deadline stops: how far it came is measured.
LONG_SEARCH = "many"
# JSON members whose digests cover ids or times.
CHAINED = {"hash", "previous_hash", "head", "prev", "chain", "up_to_hash"}

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_EDGE, _END = r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?"
_MEASURED_TEXT = r'(\\*"(?:' + "|".join(sorted(MEASURED)) + r')\\*": ?)-?\d+(?:\.\d+)?'
_CHAINED_TEXT = r'(\\*"(?:' + "|".join(sorted(CHAINED)) + r')\\*": ?\\*")((?:\d+:)?[0-9a-f]{12,64})'

# Texts that are replaced without a number, in this order.
PLAIN = [
    (re.compile(_TIME), "<time>"),
    (re.compile(_EDGE + r"1[6-9]\d{8}(?:\.\d+)?" + _END), "<time>"),
    (re.compile(_MEASURED_TEXT), r"\1<measured>"),
    (re.compile(_CHAINED_TEXT), r"\1<digest>"),
    (re.compile(r" *\d+\.\d+ ms"), " <measured> ms"),
    (re.compile(r"\d+\.\d+ waiting, \d+\.\d+ in the tool"), "<measured> waiting, <measured> in the tool"),
    (re.compile(r"\|[ #]{30}\|"), "|<bar>|"),
    (re.compile(r"((?:127\.0\.0\.1|localhost|\[::1\]):)\d{2,5}"), r"\1<port>"),
    (re.compile(r"(process )\d+"), r"\1<pid>"),
    # Over A2E a deadline is what is left of the agent's patience; configured ones are whole or half seconds.
    (re.compile(r"(deadline(?: of|\s) *)(?!\d*[05]00 ms)\d+ ms"), r"\1<measured> ms"),
    (re.compile(r"(^(?:done|failed) .*?  in )\d+ ms", re.M), r"\1<measured> ms"),
    (re.compile(r"\b\d+ (s|min) left"), r"<measured> \1 left"),
    (re.compile(r"((?:expires|waits?)\s+(?:in|for|since) )\d+ (s|min|h)"), r"\1<measured> \2"),
    (re.compile(r"(head |removed_head |head `|^)(\d+):[0-9a-f]{64}", re.M), r"\1\2:<digest>"),
    # Protocol versions are days too, so a day is replaced only in the sentence of a remembered rule.
    (re.compile(r"(by \w+ on )\d{4}-\d\d-\d\d"), r"\1<day>"),
    # A server that cannot be started is tried again by the clock.
    (re.compile(r"(: failing, .*started again )\d+ times"), r"\1<measured> times"),
    (re.compile(r"(toolpost-)[0-9a-f]{8}(-\d+)"), r"\1<connection>\2"),
    (re.compile(r"(since |up )\d+(\.\d+)? ?(s|ms)\b"), r"\1<measured>"),
]
NUMBERED = [
    ("id", re.compile(_UUID)),
    ("id32", re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")),
    # Behind a slash it is the name of a data directory, which depends on the workspace's path alone.
    ("span", re.compile(r"(?<![0-9A-Za-z/])[0-9a-f]{16}(?![0-9A-Za-z])")),
    ("process", re.compile(_EDGE + r"p[0-9a-f]{12}" + _END)),
    ("id8", re.compile(r"(?<![0-9A-Za-z_.:/-])[0-9a-f]{8}(?![0-9A-Za-z.])")),
]


def _measured_members(value):
    """Members that are measured in an object of this kind, and settings or promises in others."""
    if value.get("by") == "patience" and "ms" in value:
        yield "ms"  # a deadline that is what is left of the caller's patience
    if value.get("state") == "failing" and "restarts" in value:
        yield "restarts"
    if "searched_files" in value and value.get("path") == LONG_SEARCH:
        yield "searched_files"
    if "after_ms" in value and "safe" not in value:
        yield "after_ms"  # when a recorded event came, where it is no advice to wait


class Normaliser:
    """The rules of a run: known paths and tokens, and the patterns above."""

    def __init__(self):
        self._literals = {}

    def add_literal(self, text, placeholder):
        """Replaces a text that is known to belong to this run, such as a path."""
        if text:
            self._literals[text] = placeholder

    def start_file(self):
        return FileNormaliser(self._literals)


class FileNormaliser:
    """The numbering of one capture file."""

    def __init__(self, literals):
        self._literals = sorted(literals.items(), key=lambda item: -len(item[0]))
        self._numbers = {}

    def text(self, text):
        for literal, placeholder in self._literals:
            text = text.replace(literal, placeholder)
        for kind, pattern in NUMBERED[:-1]:
            text = pattern.sub(lambda found: self._placeholder(kind, found[0]), text)
        for pattern, replacement in PLAIN:
            text = pattern.sub(replacement, text)
        kind, pattern = NUMBERED[-1]
        return pattern.sub(lambda found: self._placeholder(kind, found[0]), text)

    def value(self, value, member=""):
        """A JSON value with everything replaced; the order of members stays."""
        if isinstance(value, dict):
            if "output_bytes" in value and "duration_ms" in value and "output_lines" not in value:
                # A line of the audit file: the size counts the digits of measured times.
                value = value | {"output_bytes": "<measured>"}
            value = value | {key: "<measured>" for key in _measured_members(value)}
            if any(str(value.get(name, "")).startswith(NAMES_AN_ID) for name in ("id", "request")):
                value = {key: "<digest>" if key in REQUEST_DIGESTS else one for key, one in value.items()}
            return {self.text(key): self.value(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value(one, member) for one in value]
        if isinstance(value, str):
            if member in CHAINED and re.fullmatch(r"(\d+:)?(sha256:)?[0-9a-f]{12,64}", value):
                return re.sub(r"[0-9a-f]{12,64}$", "<digest>", value)
            return self.text(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        if member in MEASURED:
            return "<measured>"
        if any(1.6 * 10**power < value < 2.0 * 10**power for power in (9, 12, 15, 18)):
            return "<time>"
        return value

    def page(self, content):
        """A text, a command that has ended, or a JSON value as the text of a capture file."""
        if isinstance(content, Ran):
            return self._command_page(content)
        if isinstance(content, str):
            return self.text(content) + ("" if content.endswith("\n") else "\n")
        return json.dumps(self.value(content), indent=1, ensure_ascii=False) + "\n"

    def _command_page(self, ran):
        """Lines of compact JSON become indented JSON, so that a difference is one short line."""
        shape, values = ran.json_values()
        stdout = self.text(ran.stdout)
        if values:
            shape = f" ({shape})"
            pages = [json.dumps(self.value(value), indent=1, ensure_ascii=False) for value in values]
            stdout = "\n".join(pages) + "\n"
        words = self.text(" ".join(ran.words))
        stderr = self.text(ran.stderr)
        return f"$ toolpost {words}\nexit code {ran.code}\n--- stdout{shape}\n{stdout}\n--- stderr\n{stderr}\n"

    def _placeholder(self, kind, found):
        of_kind = self._numbers.setdefault(kind, {})
        return f"<{kind}-{of_kind.setdefault(found, len(of_kind) + 1)}>"
