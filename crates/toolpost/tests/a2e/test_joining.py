"""Two agents in one folder: the second host joins the first, and its agent stays when the first one ends."""

import signal

from case import ProcessCase
from client import Refused


class Joining(ProcessCase):
    def test_the_second_agent_goes_on_when_the_first_host_ends(self):
        for end in (signal.SIGKILL, signal.SIGTERM, None):
            with self.subTest(end=end):
                place = self.new_place()
                first = self.new_stdio_client(place=place)
                second = self.new_stdio_client(place=place)
                third = self.new_stdio_client(place=place)
                for client in (first, second, third):
                    self.assertEqual(client.call("echo", {"message": "hi"})["data"], {"text": "hi"})
                if end:
                    first.transport.process.send_signal(end)
                else:
                    first.transport.process.stdin.close()
                first.transport.process.wait(10)
                for client in (second, third):
                    self.assertEqual(client.call("echo", {"message": "still"})["data"], {"text": "still"})
                    self.assertIn("echo", client.list())
                self.assertEqual(second.disconnect(), 0)
                self.assertEqual(third.call("echo", {"message": "alone"})["data"], {"text": "alone"})
                self.assertEqual(third.disconnect(), 0)

    def test_an_agent_that_leaves_does_not_end_the_host_that_it_joined(self):
        place = self.new_place()
        first = self.new_stdio_client(place=place)
        second = self.new_stdio_client(place=place)
        self.assertEqual(second.disconnect(), 0)
        self.assertIsNone(second.transport.forced)
        self.assertTrue(first.call("echo", {"message": "hi"})["success"])
        self.assertEqual(first.disconnect(), 0)

    def test_a_token_that_is_not_known_is_refused_here_too(self):
        place = self.new_place()
        self.new_stdio_client(place=place)
        with self.assertRaises(Refused) as caught:
            self.new_stdio_client(place=place, token="not known here")
        self.assertEqual(caught.exception.reason.split(":")[0], "auth_failed")

    def test_a_host_with_other_settings_is_not_joined(self):
        place = self.new_place()
        first = self.new_stdio_client("--mode", "edits", place=place)
        with self.assertRaises(Refused) as caught:
            self.new_stdio_client("--mode", "plan", place=place)
        self.assertIn("(mode)", caught.exception.reason)
        self.assertIn("--data-dir", caught.exception.reason)
        self.assertTrue(first.call("echo", {"message": "hi"})["success"])
