"""Those who have not said who they are: however many they are and whatever they send, they cost little."""

import json

import wire
from case import HostCase, ProcessCase
from client import message

MEGABYTE = 1 << 20
LIMIT, TOO_MANY = 256, 290


class Crowds(ProcessCase):
    def setUp(self):
        super().setUp()
        self.host = self.new_host()

    def listening_stranger(self):
        session = wire.Session(self.host.address)
        self.addCleanup(session.close)
        return session, self.open_stream(session)

    def test_strangers_that_listen_lock_nobody_out(self):
        inside = self.new_client(self.host)
        crowd = [self.listening_stranger() for _ in range(TOO_MANY)]
        newcomer = wire.Session(self.host.address)
        self.addCleanup(newcomer.close)
        # Somebody else comes between the newcomer's first request and its handshake.
        self.listening_stranger()
        shake = message("handshake/req", agent_id="late", agent_caps=["tools"], auth_token=self.host.token)
        newcomer.send(shake)
        stream = self.open_stream(newcomer)
        self.assertTrue(stream.answer(shake["id"]).get("ok", True))
        self.assertTrue(stream.answer(newcomer.call("echo", {"message": "hello"}))["data"]["success"])
        self.assertTrue(inside.call("echo", {"message": "still here"})["success"])
        # Whoever gave way hears the end of its stream, and is not left to listen for ever.
        for session, stream in crowd[: TOO_MANY - LIMIT]:
            self.assertEqual(stream.rest(), [])
            self.assertEqual(session.post(message("ping")).status, 404)


class LargeMessages(HostCase):
    def setUp(self):
        super().setUp()
        self.sender = wire.Session(self.host.address)
        self.addCleanup(self.sender.close)

    def bodies(self):
        padding = "A" * (4 * MEGABYTE - 4096)
        yield json.dumps({"type": "handshake/req", "id": "x", "agent_caps": padding})
        yield json.dumps({"type": "handshake/req", "id": "x", "agent_caps": [5], "auth_token": padding})
        yield json.dumps({"type": "handshake/req", "id": "x", "surface": {"scope": padding}})
        yield json.dumps({"type": padding, "id": "x"})
        yield json.dumps({"type": "ping", "id": padding})
        yield json.dumps({"type": "shutdown", "id": "x", "timeout": padding})
        yield json.dumps({"type": "handshake/req", "id": "x", "surface": {padding: 1}})

    def test_they_do_not_come_back_in_errors(self):
        stream = self.open_stream(self.sender)
        for number, body in enumerate(self.bodies()):
            with self.subTest(number=number):
                self.sender.send(body)
                frame = stream.next()
                self.assertEqual(frame.message["type"], "error")
                self.assertLess(len(frame.raw), 2000)

    def test_they_are_not_kept(self):
        body = next(self.bodies())
        before = self.host.resident_bytes()
        for _ in range(20):
            self.sender.send(body)
        self.assertLess(self.host.resident_bytes() - before, 60 * MEGABYTE)


class Floods(HostCase):
    def test_what_a_stranger_does_not_read_is_little(self):
        stranger = wire.Session(self.host.address)
        self.addCleanup(stranger.close)
        statuses = [stranger.post(message("ping", id="x" * 200)).status for _ in range(300)]
        self.assertLessEqual(set(statuses), {200, 429})
        self.assertLess(statuses.count(200), 300, "the bound does not bite")
        stream = self.open_stream(stranger)
        for _ in range(statuses.count(200)):
            self.assertEqual(stream.next().message["type"], "pong")
        # Once it reads, it may come in.
        shake = message("handshake/req", agent_caps=["tools"], auth_token=self.host.token)
        stranger.send(shake)
        self.assertTrue(stream.answer(shake["id"]).get("ok", True))
