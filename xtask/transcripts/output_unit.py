"""The parts of an output that are compared with each other: a line, a JSON value over several lines, or a cut."""

import re
from dataclasses import dataclass
from functools import cached_property

from varying import VARYING, VaryingValue, varying_at

CUT = "…"
_JSON_START = re.compile(r"""(data: ?)?([\[{]\s*["…\[\]{}]|[\[{]$)""", re.M)
_JSON_MORE = re.compile(r"[ \]}]")
_PIECES = re.compile(r"…|[^\W_]+|\s+|.", re.S)


@dataclass(frozen=True)
class Token:
    """A piece of a unit, with the blanks in front of it that do not count."""

    text: str
    lead: str = ""
    varying: VaryingValue | None = None

    @property
    def is_cut(self):
        return self.text == CUT and self.varying is None


class OutputUnit:
    """A line of an output, or a JSON value with all of its lines."""

    def __init__(self, lines, line):
        self.lines, self.line = lines, line
        self.text = "\n".join(lines)
        self.is_json = bool(_JSON_START.match(self.text))

    @property
    def is_cut(self):
        """Whether it stands for any number of lines."""
        return self.text.strip() == CUT

    @cached_property
    def tokens(self):
        return list(_json_tokens(self.text) if self.is_json else _tokens(self.text))

    @cached_property
    def form(self):
        """The text with the kinds of its varying values, to tell changed lines from others."""
        return "".join(token.varying.kind if token.varying else token.text for token in self.tokens)

    @cached_property
    def canonical(self):
        """The text as it is compared: JSON without the blanks between its tokens."""
        return "".join(token.text for token in self.tokens) if self.is_json else self.text


def output_units(lines, first_line=1):
    """Lines that go on with a JSON value belong to the line where it begins."""
    units = []
    for number, line in enumerate(lines, first_line):
        # Blanks at the end of a line cannot be seen on the page.
        line = line.rstrip(" ")
        is_more = bool(units) and units[-1].is_json and _JSON_MORE.match(line)
        if is_more:
            units[-1] = OutputUnit([*units[-1].lines, line], units[-1].line)
        else:
            units.append(OutputUnit([line], number))
    return units


def _tokens(text):
    position = 0
    while position < len(text):
        found = VARYING.match(text, position)
        value = varying_at(found) if found else None
        found = found if value else _PIECES.match(text, position)
        yield Token(found[0], varying=value)
        position = found.end()


def _json_tokens(text):
    """Blanks outside of strings become the lead of the next token; a line break inside a string is a blank."""
    is_string, lead, is_escaped = False, "", False
    for token in _tokens(text):
        blank = token.text.isspace()
        if blank and not is_string:
            lead += token.text
            continue
        if blank and "\n" in token.text:
            yield Token(" ", lead=token.text)
        else:
            yield Token(token.text, lead, token.varying)
        lead = ""
        if token.varying is None and token.text == '"' and not is_escaped:
            is_string = not is_string
        is_escaped = token.text == "\\" and not is_escaped
    if lead:
        yield Token("", lead)


def token_source(token):
    """The token as it stands in the text."""
    return token.lead if token.text == " " and token.lead else token.lead + token.text
