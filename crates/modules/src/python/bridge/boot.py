"""The first code of a bridge process. It takes the private channel out of everybody's reach before anything else is
imported, then reads the bridge's own files from it: nothing of the bridge lies on disk."""

import os
import sys

# Standard input is the channel. It moves to a high descriptor that no child inherits; whoever reads standard input from
# now on finds the end of it.
_channel = os.dup(0)
for _number in range(64, 256):
    try:
        os.fstat(_number)
    except OSError:
        os.dup2(_channel, _number, inheritable=False)
        os.close(_channel)
        _channel = _number
        break
_nothing = os.open("/dev/null", os.O_RDWR)
os.dup2(_nothing, 0)
os.close(_nothing)

# The digests of modules are checked by whoever fetched them; a compiled file more would change them.
sys.dont_write_bytecode = True

import importlib.abc
import importlib.machinery
import json


class Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports modules from a table of their texts."""

    def __init__(self, texts):
        self.texts = texts
        self.packages = {name.rpartition(".")[0] for name in texts}

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self.texts:
            return None
        is_package = fullname in self.packages
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=f"<{fullname}>", is_package=is_package)
        return spec

    def get_source(self, fullname):
        return self.texts[fullname]

    def is_package(self, fullname):
        return fullname in self.packages

    def get_code(self, fullname):
        return compile(self.texts[fullname], f"<{fullname}>", "exec", dont_inherit=True)


def _first_line(descriptor):
    pieces = []
    while True:
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            os._exit(0)
        head, newline, tail = piece.partition(b"\n")
        pieces.append(head)
        if newline:
            return b"".join(pieces), tail


_line, _rest = _first_line(_channel)
_boot = json.loads(_line)
sys.meta_path.insert(0, Sources({n: t for n, t in _boot["files"].items() if n.startswith("toolpost_bridge")}))

# Files in site-packages may run code of their own; they do so only now that the channel is safe.
import site

site.main()

from toolpost_bridge import main

main.run(_channel, _rest, _boot, Sources)
