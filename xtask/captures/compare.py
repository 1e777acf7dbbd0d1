"""Compares two folders of captures and leaves out the differences that are allowed.

    python3 xtask/captures/compare.py OLD_FOLDER NEW_FOLDER [--allow FILE] [--without-texts]

Exit code 0 where nothing else differs, 1 where something does, 2 where the folders or the list cannot be read.
"""

import argparse
import difflib
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import text_mask

ALLOWED = Path(__file__).parent / "allowed.txt"
# Before a regex: it is about lines that differ in digests alone, where each old digest has one new one and no other.
DIGESTS = "<digests>"
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])")
_LAST_COMMA = re.compile(r"(?<=.),$")
CONTEXT = 2


class AllowedDifference:
    """One line of the list: where it holds, what a changed line looks like, and why it may differ."""

    def __init__(self, glob, pattern, reason):
        self.glob, self.reason, self.uses = glob, reason, 0
        self.of_digests = pattern.startswith(DIGESTS)
        self._pattern = re.compile(pattern.removeprefix(DIGESTS))

    def covers(self, name, line, of_digests=False):
        """Whether it covers a changed line, which begins with `-` or `+`, or one that differs in digests alone."""
        fits = self.of_digests == of_digests and fnmatchcase(name, self.glob)
        found = fits and self._pattern.search(line) is not None
        self.uses += found
        return found


class DigestPairs:
    """Which new digest stands where an old one stood, over all files."""

    def __init__(self):
        self._new_of, self._old_of = {}, {}

    def __len__(self):
        return len(self._new_of)

    def fit(self, old, new):
        """Whether two lines that are equal apart from digests fit to all lines before them."""
        pairs = list(zip(_DIGEST.findall(old), _DIGEST.findall(new)))
        return all(self._new_of.setdefault(a, b) == b and self._old_of.setdefault(b, a) == a for a, b in pairs)


class Comparison:
    """The differences of two folders."""

    def __init__(self, allowed):
        self._allowed, self._pairs = allowed, DigestPairs()
        self.equal, self.allowed, self.different = [], [], []

    def add(self, name, old, new):
        """Compares one capture; either text may be missing. Gives the difference that is not allowed, as text."""
        if old == new:
            self.equal.append(name)
            return ""
        if old is None or new is None:
            sign, where = ("-", "old") if new is None else ("+", "new")
            line = f"{sign}only in the {where} captures"
            hunks = [] if self._is_allowed(name, line) else [[line]]
        else:
            hunks = self._hunks(name, old.splitlines(), new.splitlines())
        (self.different if hunks else self.allowed).append(name)
        if not hunks:
            return ""
        return f"--- old/{name}\n+++ new/{name}\n" + "".join("@@\n" + "\n".join(one) + "\n" for one in hunks)

    def _is_allowed(self, name, line, of_digests=False):
        return any([one.covers(name, line, of_digests) for one in self._allowed])

    def _hunks(self, name, old, new):
        """The changes that are not allowed, each with some lines around it."""
        matcher = difflib.SequenceMatcher(None, _masked(old), _masked(new), autojunk=False)
        hunks = []
        for kind, first, last, new_first, new_last in matcher.get_opcodes():
            if kind == "equal":
                pairs = zip(old[first:last], new[new_first:new_last])
                changed = [lines for a, b in pairs if not self._same(name, a, b) for lines in (f"-{a}", f"+{b}")]
            else:
                lines = [f"-{one}" for one in old[first:last]] + [f"+{one}" for one in new[new_first:new_last]]
                changed = [one for one in lines if not self._is_allowed(name, one)]
            if changed:
                before = [f" {one}" for one in old[max(0, first - CONTEXT) : first]] if kind != "equal" else []
                after = [f" {one}" for one in old[last : last + CONTEXT]] if kind != "equal" else []
                hunks.append(before + changed + after)
        return hunks

    def _same(self, name, old, new):
        """Whether two lines that are equal when masked may count as equal."""
        if _LAST_COMMA.sub("", old) == _LAST_COMMA.sub("", new):
            return True
        if self._is_allowed(name, old, of_digests=True):
            return self._pairs.fit(old, new)
        return self._is_allowed(name, f"-{old}") and self._is_allowed(name, f"+{new}")

    def summary(self):
        counts = {"equal": self.equal, "allowed": self.allowed, "different": self.different}
        total = sum(map(len, counts.values()))
        told = ", ".join(f"{len(names)} {word}" for word, names in counts.items())
        return f"{total} files compared: {told}; {len(self._pairs)} digests have another value"


def _masked(lines):
    """Lines without digests, and without the comma that depends on whether a member is the last one."""
    return [_LAST_COMMA.sub("", _DIGEST.sub("<digest>", line)) for line in lines]


def read_allowed(path):
    """The entries of a list: a glob of captures, a regex of a changed line and a reason, with tabs between them."""
    entries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3:
            sys.exit(f"{path}:{number}: {len(fields)} fields instead of three with tabs between them")
        entries.append(AllowedDifference(*fields))
    return entries


def captures(folder):
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def compare(old, new, allowed, without_texts):
    """Prints the differences that are not allowed and a summary; gives whether there were none."""
    comparison = Comparison(allowed)
    old_files, new_files = captures(old), captures(new)

    def read(path):
        if path is None:
            return None
        text = path.read_text(encoding="utf-8")
        return "\n".join(text_mask.masked(text)) if without_texts else text

    for name in sorted(old_files.keys() | new_files.keys()):
        text = comparison.add(name, read(old_files.get(name)), read(new_files.get(name)))
        if text:
            print(text)
    for name in comparison.allowed:
        print(f"allowed: {name}")
    for entry in allowed:
        if not entry.uses:
            print(f"not used: {entry.glob}: {entry.reason}")
    print(comparison.summary())
    return not comparison.different


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", type=Path, help="captures of the old binary")
    parser.add_argument("new", type=Path, help="captures of the new binary")
    parser.add_argument("--allow", type=Path, default=ALLOWED, help="the list of allowed differences")
    parser.add_argument("--without-texts", action="store_true", help="leave out the texts that people and models read")
    options = parser.parse_args()
    for folder in (options.old, options.new):
        if not folder.is_dir() or not any(folder.iterdir()):
            parser.error(f"there are no captures in {folder}")
    sys.exit(0 if compare(options.old, options.new, read_allowed(options.allow), options.without_texts) else 1)


if __name__ == "__main__":
    main()
