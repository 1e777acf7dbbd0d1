"""A host for the A2A clients to talk with, and the ways to look at it from outside."""

import http.client
import json
import os
import socket
import sys
from pathlib import Path

# The programs under test are started in one way, whatever speaks to them.
sys.path.insert(0, str(Path(__file__).parent.parent / "a2e"))

from host import TOOLPOST, Host, Place  # noqa: E402

CONFIG = """
rules:
  - allow shell(sleep *)
commands:
  top_lines:
    description: Shows the first lines of a file.
    argv: [head, -n, "{count}", lines.txt]
    parameters:
      count: { type: integer, minimum: 1, maximum: 1000 }
    class: read
    profile: read-only
"""


def start(test_class, more=""):
    """Starts a host for a class of tests, and has it ended with the class."""
    place = Place()
    test_class.addClassCleanup(place.remove)
    place.write("lines.txt", "one\ntwo\nthree\n")
    host = Host(TOOLPOST, place, place.config(CONFIG + more))
    test_class.addClassCleanup(host.kill)
    return host.start()


class Operator:
    """The way in for those who may decide: the socket of the data directory."""

    def __init__(self, place):
        self.socket = str(place.data_dir / "socket")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("localhost", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.connect(self.socket)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def decide(self, approval, decision):
        status, body = self.ask("POST", f"/approvals/{approval}", {"decision": decision})
        assert status == 200, body


def running(word):
    """Whether a process has that word on its command line."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            pass
    return False
