"""Runs the whole suite: the real binary on a terminal, with a person at it.

    TOOLPOST_BIN=… python3 crates/toolpost/tests/terminal [-v] [-k NAME]
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The suite shares its hosts and its patience with the one of the A2E face.
sys.path[:0] = [str(HERE), str(HERE.parent / "a2e")]

from host import TOOLPOST, path_of  # noqa: E402


def main():
    if not path_of(TOOLPOST):
        print(f"error: {TOOLPOST} must name the program to test", file=sys.stderr)
        return 2
    unittest.main(module=None, argv=["terminal", "discover", "-s", str(HERE), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
