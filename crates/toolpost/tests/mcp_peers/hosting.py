"""The real binary for the clients to talk with, and the servers that stand behind it."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

# The programs under test are started in one way, whatever speaks to them.
sys.path.insert(0, str(Path(__file__).parent.parent / "a2e"))

from host import TOOLPOST, Host, Place, command  # noqa: E402

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[3] / "target"
NODE = ENVIRONMENTS / "peers-node"
OPERATOR_TOKEN = "tp_the-token-of-the-operator-of-this-suite"

CONFORMANCE = f"""
    conformance:
      command: {sys.executable}
      args: [{HERE / "conformance_server.py"}]
      sandbox: none
      naming: bare
"""



def conformance_at(url):
    """The same server behind a host, where it runs already: a host that is started for one test finds it at once."""
    return f"""
    conformance:
      url: {url}
      naming: bare
"""


def start_conformance(test_class):
    """Starts the server for a class of tests, and has it ended with the class. Gives its address."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "conformance_server.py"), "--http", "0"], stdout=subprocess.PIPE, text=True
    )
    test_class.addClassCleanup(server.stdout.close)
    test_class.addClassCleanup(server.wait)
    test_class.addClassCleanup(server.kill)
    return server.stdout.readline().strip()


CONFIG = f"""
rules:
  - allow shell(sleep *)
  - allow shell(seq *)
  - allow conformance.*
tokens:
  - name: boss
    role: operator
    sha256: {sha256(OPERATOR_TOKEN.encode()).hexdigest()}
approvals:
  timeout: 20s
tools:
  list_directory: {{ deferred: true }}
"""


def place_with(servers, more=CONFIG):
    """A place with a trusted configuration that names these servers, and the words that name it."""
    place = Place()
    place.write("lines.txt", "one\ntwo\nthree\n")
    text = more + "mcp:\n  approval_wait: 2s\n" + (f"  servers:\n{servers}" if servers else "")
    return place, place.config(text)


def start(test_class, servers, more=CONFIG):
    """Starts a host for a class of tests, and has it ended with the class."""
    place, words = place_with(servers, more)
    test_class.addClassCleanup(place.remove)
    host = Host(TOOLPOST, place, words)
    test_class.addClassCleanup(host.kill)
    return host.start()


def on_stdio(place, words):
    """The command line of a host over pipes, and its environment."""
    program, *arguments = command(TOOLPOST, place, ["--stdio", "mcp"], words)
    return program, arguments, place.environment({})


def processes(word):
    """The processes that have that word on their command line, without this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(pid) != os.getpid() and any(word.encode() == one for one in words):
            found.append(int(pid))
    return found
