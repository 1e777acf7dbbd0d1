"""Recorded sessions as hosts: `toolpost journal replay` as a process, and a client of it.

For a test of an agent in Python:

    with replaying("session.json") as client:
        result = client.call("read_file", {"path": "notes.txt"})

The test fails where a call was made that is not in the recording, or one in it was not made.
"""

import json
import subprocess
from contextlib import contextmanager

from client import Client
from host import TOOLPOST, Host, Place, path_of
from over_http import HttpTransport

TOKEN = "a-token-for-a-recording"


class NotAsRecorded(AssertionError):
    """The calls were not those of the recording."""


def words(what, *arguments):
    """The command line that serves a recording: a file, or a session of a place."""
    return [path_of(TOOLPOST), "journal", "replay", str(what), *arguments]


class ReplayHost(Host):
    """A recording that listens on HTTP."""

    stdout = subprocess.PIPE

    def __init__(self, place, what, arguments=()):
        super().__init__(TOOLPOST, place, arguments)
        self.what = what

    def words(self, face):
        place = ["--workspace", str(self.place.workspace), "--data-dir", str(self.place.data_dir)]
        return words(self.what, *face, *place, *self.place.token_file(TOKEN), "--json", *self.arguments)

    def kill(self):
        super().kill()
        if self.process:
            self.process.stdout.close()

    @property
    def token(self):
        return TOKEN

    def finish(self):
        """Ends it; gives its exit code and what became of the recorded calls."""
        code = self.stop()
        return code, json.loads(self.process.stdout.read())


@contextmanager
def replaying(cassette, *arguments):
    """A client of a host that answers as the cassette says. At the end the calls must have been those of the cassette."""
    place = Place()
    host = ReplayHost(place, cassette, ["--complete", *arguments])
    try:
        host.start()
        client = Client(HttpTransport(host.address), host.token, ("tools",)).connect()
        try:
            yield client
            client.check()
        finally:
            client.transport.abandon()
        code, report = host.finish()
        if code != 0:
            raise NotAsRecorded(json.dumps(report, indent=2))
    finally:
        host.kill()
        place.remove()
