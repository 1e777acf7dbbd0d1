"""Compares a shown output with a real one, and makes the shown output that the page should have.

`…` alone on a line stands for any number of lines, within a line for any text. Values of `varying.py` need the same form,
and bound ones stand for the same real id everywhere. Everything else is compared exactly.
"""

import os
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from output_unit import output_units, token_source

# What alignment costs: a line without a counterpart, and two lines with different words. A line beside a cut that was
# reworded is thus taken for a changed one and not for one that is gone.
_LONE, _CHANGED = 1.0, 0.8
# Lines that have less in common are not taken for one changed line.
_ALIKE = 0.45
_BEGINNING = 10
# A report of a difference shows so much of a text.
LONG = 300


@dataclass(frozen=True)
class Difference:
    """A shown text and the one that the page should show; one of them is empty if there is nothing in its place."""

    line: int
    shown: str
    wanted: str

    def __str__(self):
        shown, wanted = self._excerpts() if self.shown and self.wanted else (self.shown, self.wanted)
        parts = ["differs"]
        for mark, text in (("shown", shown), ("real", wanted)):
            parts += [f"  {mark:5}: {part}" for part in text.split("\n") if text]
        return "\n".join(parts)

    def _excerpts(self):
        """Long texts from a little before the first difference on."""
        start = len(os.path.commonprefix([self.shown, self.wanted]))
        start = start - 30 if start > 100 else 0
        mark = "…" if start else ""
        return tuple(mark + _shortened(text[start:]) for text in (self.shown, self.wanted))


class ShownOutput:
    """The output below a command of a page."""

    def __init__(self, lines, line, bindings):
        self._lines, self._bindings = lines, bindings
        self._end_line = line + len(lines)
        self._units = output_units(lines, line)

    def matches(self, real):
        """Whether the whole real output is as shown; if so, its ids are known from now on."""
        pattern = _PatternWriter(self._bindings)
        found = re.fullmatch(pattern.units(self._units), _canonical(real), re.S)
        return bool(found) and all(
            self._bindings.bind(shown, found[name]) for shown, name in pattern.names.items()
        )

    def align(self, real):
        """The differences, and the lines that the page should show instead."""
        differences, lines = [], []
        for shown, units in self._aligned(output_units(_lines(real))):
            if shown is not None and shown.is_cut:
                lines += shown.lines
            elif shown is None:
                text = self._bindings.as_shown(units[0].text)
                differences.append(Difference(self._line_of(lines), "", text))
                lines += text.split("\n")
            elif not units:
                differences.append(Difference(shown.line, shown.text, ""))
            elif self._unit_matches(shown, units[0]):
                lines += shown.lines
            else:
                merged = self._merged(shown, units[0])
                differences.append(Difference(shown.line, shown.text, merged))
                lines += merged.split("\n")
        return differences, lines

    def _line_of(self, lines):
        return min(self._end_line, self._end_line - len(self._lines) + len(lines))

    def _unit_matches(self, shown, real):
        """Compares one unit, and binds its ids."""
        pattern = _PatternWriter(self._bindings)
        found = re.fullmatch(pattern.unit(shown), real.canonical, re.S)
        return bool(found) and all(
            self._bindings.bind(name_of, found[name]) for name_of, name in pattern.names.items()
        )

    def _aligned(self, real):
        """Pairs of a shown unit and the real units it stands for, on the cheapest path."""
        shown = self._units
        patterns = [re.compile(_PatternWriter(self._bindings).unit(unit), re.S) for unit in shown]
        rows, columns = len(shown) + 1, len(real) + 1
        cost = [[0.0] * columns for _ in range(rows)]
        move = [[""] * columns for _ in range(rows)]
        for row in range(rows):
            for column in range(columns):
                choices = []
                if row and column and not shown[row - 1].is_cut:
                    price = _price(patterns[row - 1], shown[row - 1], real[column - 1])
                    choices.append((cost[row - 1][column - 1] + price, "pair"))
                if row:
                    price = 0.0 if shown[row - 1].is_cut else _LONE
                    choices.append((cost[row - 1][column] + price, "shown"))
                if column:
                    price = 0.0 if row and shown[row - 1].is_cut else _LONE
                    choices.append((cost[row][column - 1] + price, "real"))
                if choices:
                    cost[row][column], move[row][column] = min(choices, key=lambda choice: choice[0])
        return _walk_back(move, shown, real)

    def _merged(self, shown, real):
        """The real unit in the shape of the shown one: cuts, line breaks and known ids stay."""
        pieces = []
        for token, real_token in _aligned_tokens(shown.tokens, real.tokens, self._bindings):
            if token is not None and (token.is_cut or real_token is not None):
                if token.varying is not None and token.varying.is_bound:
                    # Later commands name ids of changed lines too.
                    self._bindings.bind(token.text, real_token.text)
                pieces.append(token_source(token))
            elif token is None:
                pieces.append(self._bindings.as_shown(token_source(real_token)))
        return "".join(pieces)


def _shortened(text):
    return text if len(text) <= LONG else text[:LONG] + "…"


def _walk_back(move, shown, real):
    row, column = len(shown), len(real)
    pairs = []
    while row or column:
        step = move[row][column]
        if step == "pair":
            row, column = row - 1, column - 1
            pairs.append((shown[row], [real[column]]))
        elif step == "shown":
            row -= 1
            pairs.append((shown[row], []))
        else:
            column -= 1
            if not (row and shown[row - 1].is_cut):
                pairs.append((None, [real[column]]))
    return reversed(pairs)


def _price(pattern, shown, real):
    if pattern.fullmatch(real.canonical):
        return 0.0
    matcher = SequenceMatcher(None, shown.form[:400], real.form[:400], autojunk=False)
    alike = matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE
    alike = alike or shown.form.strip()[:_BEGINNING] == real.form.strip()[:_BEGINNING]
    return _CHANGED if alike else 3 * _LONE


def _aligned_tokens(shown, real, bindings):
    """Pairs of a shown and a real token, one of which may be missing; a cut stands for any number of real ones."""
    rows, columns = len(shown) + 1, len(real) + 1
    move = [bytearray(columns) for _ in range(rows)]
    previous = []
    for row in range(rows):
        current = [0] * columns
        is_cut = bool(row) and shown[row - 1].is_cut
        for column in range(columns):
            best, step = (0, 0) if not row and not column else (1 << 30, 0)
            if row and previous[column] + (not is_cut) < best:
                best, step = previous[column] + (not is_cut), 1
            if column and current[column - 1] + (not is_cut) < best:
                best, step = current[column - 1] + (not is_cut), 2
            if row and column and not is_cut and previous[column - 1] < best:
                if _is_same(shown[row - 1], real[column - 1], bindings):
                    best, step = previous[column - 1], 3
            current[column], move[row][column] = best, step
        previous = current
    row, column = len(shown), len(real)
    pairs = []
    while row or column:
        step = move[row][column]
        row, column = row - (step in (1, 3)), column - (step in (2, 3))
        absorbed = step == 2 and row and shown[row - 1].is_cut
        if not absorbed:
            pairs.append((shown[row] if step != 2 else None, real[column] if step != 1 else None))
    return reversed(pairs)


def _is_same(token, real, bindings):
    if token.varying is None:
        return token.text == real.text
    known = bindings.real(token.text) if token.varying.is_bound else None
    if known is not None or not real.text:
        return known == real.text
    if token.varying.is_bound and bindings.shown(real.text) is not None:
        return False
    return bool(re.fullmatch(token.varying.real_pattern(), real.text))


class _PatternWriter:
    """Writes the regular expression of shown units, with a group for each id that is not bound yet."""

    def __init__(self, bindings):
        self._bindings = bindings
        self.names = {}

    def units(self, units):
        """Lines, each with its end. What follows a cut is searched at its first place only, so that a search ends."""
        pattern, is_open = "", False
        for unit in units:
            if unit.is_cut:
                pattern += ")" if is_open else ""
                pattern += r"(?>(?:[^\n]*\n)*?" if unit is not units[-1] else r"(?:[^\n]*\n)*"
                is_open = unit is not units[-1]
            else:
                pattern += self.unit(unit) + r"\n"
        if is_open:
            # The last part ends where the output ends.
            pattern += ")"
            last = pattern.rindex(r"(?>(?:[^\n]*\n)*?")
            pattern = pattern[:last] + "(?:" + pattern[last + 3 :]
        return pattern

    def unit(self, unit):
        parts = [[]]
        for token in unit.tokens:
            if token.is_cut:
                parts.append([])
            else:
                parts[-1].append(self._token(token))
        first, *rest = ["".join(part) for part in parts]
        anything = r"[^\n]*?"
        middle = "".join(f"(?>{anything}{part})" for part in rest[:-1])
        return first + middle + (f"{anything}{rest[-1]}" if rest else "")

    def _token(self, token):
        value = token.varying
        if value is None:
            return re.escape(token.text)
        if not value.is_bound:
            return value.real_pattern()
        real = self._bindings.real(value.text)
        if real is not None:
            return re.escape(real)
        if value.text in self.names:
            return f"(?P={self.names[value.text]})"
        self.names[value.text] = f"id{len(self.names)}"
        return f"(?P<{self.names[value.text]}>{value.real_pattern()})"


def _lines(text):
    """Blank lines at the end cannot be seen on the page."""
    text = text.rstrip("\n")
    return text.split("\n") if text else []


def _canonical(real):
    return "".join(unit.canonical + "\n" for unit in output_units(_lines(real)))
