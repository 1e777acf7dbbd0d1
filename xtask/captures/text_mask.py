"""Captures without the texts that people and models read.

Two binaries whose texts differ can then be compared by the rest: statuses, codes, names, numbers, the members of JSON.
A text in JSON is a string with a blank in it. Of other output, a section keeps the facts that a text carries: numbers,
flags, codes, and the placeholders of ids and times; in which order is up to the text.
"""

import re

_MARKER = re.compile(r"\$ |exit code |--- |[A-Z]+ /|HTTP/|event: |id: ")
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_JSON_LINE = re.compile(r'\s*(?:[\[\]{}]+,?|(?:"(?:[^"\\]|\\.)*": )?(?:"(?:[^"\\]|\\.)*"|-?[\d.e+-]+|true|false|null|[\[{][\]}]?),?)$')
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])")
_FACT = re.compile(r"<[a-z][a-z0-9-]*>|--[a-z][a-z-]*|\b[a-z]+(?:_[a-z]+)+\b|\b\d+(?:\.\d+)?\b")


def masked(text):
    """The lines of a capture without its texts."""
    lines, facts = [], set()
    for line in text.splitlines():
        line = _DIGEST.sub("<digest>", line)
        if _MARKER.match(line):
            _flush(lines, facts)
            lines.append(_without_texts(line))
        elif _JSON_LINE.match(line) or '{"' in line:
            lines.append(_without_texts(line))
        else:
            facts.update(_FACT.findall(line))
    _flush(lines, facts)
    return lines


def _flush(lines, facts):
    lines.extend(sorted(facts))
    facts.clear()


def _without_texts(line):
    return _JSON_STRING.sub(lambda found: '"<text>"' if re.search(r"\s|\\n", found[0]) else found[0], line)
