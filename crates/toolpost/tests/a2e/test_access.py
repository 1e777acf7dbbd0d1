"""Who may come in, and who may come back: tokens that change over a restart, and tokens of a host on stdio."""

import hashlib
import time

from case import ProcessCase
from client import Refused
from waiting import until

FIRST, SECOND = "the-first-of-the-tokens", "the-second-of-the-tokens"


def named(**tokens):
    """A configuration with named tokens."""
    entries = (f"  - {{ name: {name}, sha256: {hashlib.sha256(token.encode()).hexdigest()} }}\n"
               for name, token in tokens.items())
    return "tokens:\n" + "".join(entries)


class AfterARestart(ProcessCase):
    """The id of a session opens nothing that its agent's token would not open any more."""

    def read_session(self, host, token):
        """A session whose agent was let in and has read that."""
        session = self.new_session(host, token)
        stream = self.open_stream(session)
        self.assertTrue(stream.next().message.get("ok", True))
        stream.close()
        session.close()
        return session

    def restart(self, host, arguments):
        host.stop()
        host.arguments = arguments
        host.start()

    def assert_open(self, session):
        stream = self.open_stream(session)
        self.assertEqual(stream.status, 200)
        answer = stream.answer(session.call("echo", {"message": "still here"}))
        self.assertTrue(answer["data"]["success"])

    def test_a_door_that_was_open(self):
        host = self.new_host("--no-token")
        session = self.read_session(host, "anything")
        self.restart(host, host.place.token_file(FIRST))
        self.assert_over(host, session.id)

    def test_a_door_that_is_open_now(self):
        host = self.new_host(token=FIRST)
        session = self.read_session(host, FIRST)
        self.restart(host, ["--no-token"])
        self.assert_over(host, session.id)

    def test_the_same_door(self):
        for arguments, token in ((["--no-token"], ""), ([], FIRST)):
            with self.subTest(arguments=arguments):
                host = self.new_host(*arguments, token=token)
                session = self.read_session(host, token)
                self.restart(host, host.arguments)
                self.assert_open(session)

    def test_a_named_token_that_was_taken_away(self):
        host = self.new_host(config=named(stays=FIRST, goes=SECOND))
        stays, goes = self.read_session(host, FIRST), self.read_session(host, SECOND)
        self.restart(host, host.place.config(named(stays=FIRST)))
        self.assert_over(host, goes.id)
        self.assert_open(stays)

    def test_a_token_that_was_replaced(self):
        host = self.new_host(token=FIRST)
        session = self.read_session(host, FIRST)
        self.restart(host, host.place.token_file(SECOND))
        self.assert_over(host, session.id)

    def test_a_named_token_that_was_replaced(self):
        host = self.new_host(config=named(somebody=FIRST))
        session = self.read_session(host, FIRST)
        self.restart(host, host.place.config(named(somebody=SECOND)))
        self.assert_over(host, session.id)

    def test_a_session_that_was_read_in_silence_comes_back(self):
        host = self.new_host(config="limits: { session_idle: 2s }\n")
        session = self.new_session(host)
        stream = self.open_stream(session)
        stream.next()
        end = time.monotonic() + 3
        until(lambda: time.monotonic() > end, 5, "time passes", pause=0.5)
        stream.answer(session.ping())
        session.close()
        host.kill()
        host.start()
        self.assertEqual(self.open_stream(session).status, 200)

    def test_a_pause_longer_than_a_session_may_idle(self):
        host = self.new_host(config="limits: { session_idle: 1s }\n")
        session = self.read_session(host, host.token)
        host.kill()
        end = time.monotonic() + 2.5
        until(lambda: time.monotonic() > end, 5, "time passes", pause=0.5)
        host.start()
        self.assert_over(host, session.id)


class OnStdio(ProcessCase):
    """A host that is started with a token in its file asks for it, though its client started it."""

    def connect(self, token):
        place = self.new_place()
        path = place.folder / "host.yaml"
        path.write_text(
            "server: {host: 127.0.0.1, port: 0}\n"
            f"auth_token: {FIRST}\n"
            "transport: {type: subprocess, config: {}}\n"
            "plugins: []\n"
        )
        return self.new_stdio_client("--a2e-config", str(path), place=place, token=token)

    def test_the_right_token(self):
        client = self.connect(FIRST)
        self.assertTrue(client.call("echo", {"message": "hello"})["success"])
        self.assertEqual(client.disconnect(), 0)

    def test_any_other_and_none(self):
        for token in ("", SECOND, FIRST + "x", FIRST[:-1]):
            with self.subTest(token=token):
                with self.assertRaises(Refused) as caught:
                    self.connect(token)
                self.assertEqual(caught.exception.reason.split(":")[0], "auth_failed")

    def test_without_a_file_none_is_needed(self):
        self.assertIn("echo", self.new_stdio_client(token="").list())
