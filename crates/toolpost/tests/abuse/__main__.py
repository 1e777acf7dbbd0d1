"""Runs the whole suite.

    TOOLPOST_BIN=… python3 crates/toolpost/tests/abuse [-v] [-k NAME]

The host, its processes and the A2E client come from the suite beside this one.
"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "a2e"))


def main():
    if not os.environ.get("TOOLPOST_BIN"):
        print("error: TOOLPOST_BIN must name the program to test", file=sys.stderr)
        return 2
    unittest.main(module=None, argv=["abuse", "discover", "-s", HERE, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
