"""What the tests of a host share: a host per class, clients that are checked at the end, and an end to waiting."""

import signal
import unittest

import wire
from client import Client
from host import FIXTURE, TOOLPOST, Host, Place, path_of, start_on_stdio
from over_http import HttpTransport
from over_stdio import StdioTransport

TEST_SECONDS, CLEANUP_SECONDS = 30, 15


class TestTookTooLong(BaseException):
    """Not an `Exception`, so that no test takes it for the failure that it expects."""


def _ring(*_):
    raise TestTookTooLong(f"over {TEST_SECONDS} s")


class TimedCase(unittest.TestCase):
    """No test runs for ever, whatever it waits for."""

    def run(self, result=None):
        before = signal.signal(signal.SIGALRM, _ring)
        # It rings again for a clean-up that hangs too.
        signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS, CLEANUP_SECONDS)
        try:
            return super().run(result)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


class ProcessCase(TimedCase):
    """Tests that start hosts of their own."""

    program = TOOLPOST

    def setUp(self):
        if not path_of(self.program):
            self.skipTest(f"{self.program} is not set")

    def new_place(self):
        place = Place()
        self.addCleanup(place.remove)
        return place

    def new_host(self, *arguments, program=None, place=None, config=None, environment=None, token=None):
        """A host of this test alone."""
        place = place or self.new_place()
        words = list(arguments) + (place.config(config) if config else [])
        words += place.token_file(token) if token else []
        host = Host(program or self.program, place, words, environment)
        self.addCleanup(host.kill)
        return host.start()

    def new_client(self, host, connect=True, token=None, caps=("tools",), **misbehavior):
        """A client over HTTP whose every received message is checked by the end of the test."""
        transport = HttpTransport(host.address, **misbehavior)
        client = Client(transport, host.token if token is None else token, caps)
        self.addCleanup(client.check)
        self.addCleanup(transport.abandon)
        return client.connect() if connect else client

    def new_session(self, host, token=None):
        """A session with a handshake and without a client."""
        session = wire.Session(host.address, host.token if token is None else token)
        self.addCleanup(session.close)
        return session

    def new_stdio_client(self, *arguments, connect=True, place=None, environment=None, token="", **options):
        """A client of a host of its own over stdio."""
        place = place or self.new_place()
        transport = StdioTransport(start_on_stdio(self.program, place, arguments, environment), **options)
        client = Client(transport, token, ("tools",))
        self.addCleanup(client.check)
        self.addCleanup(transport.abandon)
        return client.connect() if connect else client

    def open_stream(self, session, *arguments, **options):
        stream = session.stream(*arguments, **options)
        self.addCleanup(stream.close)
        return stream

    def assert_over(self, host, session_id):
        """The session is gone, for both routes."""
        header = {"X-Session-Id": session_id}
        self.assertEqual(wire.request(host.address, "GET", "/stream", headers=header).status, 404)
        self.assertEqual(wire.request(host.address, "POST", "/send", b"{}", header).status, 404)

    def assert_failed(self, result, code):
        """A result that says no, and how."""
        self.assertEqual((result["success"], result.get("error_code")), (False, code), result)


class HostCase(ProcessCase):
    """Tests that share a host, which must outlive all of them."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        if not path_of(cls.program):
            raise unittest.SkipTest(f"{cls.program} is not set")
        cls.place = Place()
        cls.addClassCleanup(cls.place.remove)
        cls.host = Host(cls.program, cls.place, cls.arguments)
        cls.addClassCleanup(cls.host.kill)
        cls.host.start()

    def tearDown(self):
        self.assertTrue(self.host.is_alive, "the host died: " + "".join(self.host.last_words))

    def connected(self, **options):
        return self.new_client(self.host, **options)

    def session(self):
        return self.new_session(self.host)


class FixtureCase(HostCase):
    """Tests on the host of test tools: `slow`, `chatty`, `boom`, `big`, `image`, `nested`."""

    program = FIXTURE
