"""Runs the whole suite.

    TOOLPOST_BIN=… TOOLPOST_A2E_FIXTURE=… python3 crates/toolpost/tests/a2e [-v] [-k NAME]
"""

import os
import sys
import unittest

from host import FIXTURE, TOOLPOST, path_of

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    missing = [name for name in (TOOLPOST, FIXTURE) if not path_of(name)]
    if missing:
        print(f"error: {' and '.join(missing)} must name the programs to test", file=sys.stderr)
        print("hint: `python3 -m unittest discover` leaves out what it has no program for", file=sys.stderr)
        return 2
    unittest.main(module=None, argv=["a2e", "discover", "-s", HERE, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
