"""A2A 0.3 over JSON-RPC."""

import unittest

from peer_0_3 import Peer
from suite import Suite, call


class OverJsonRpc(Suite, unittest.IsolatedAsyncioTestCase):
    peer = Peer

    async def test_only_the_last_status_of_a_stream_is_final(self):
        items = await self.items(self.client.stream(call("top_lines", {"count": 2})))
        finals = [body["final"] for kind, body in items if kind == "status"]
        self.assertEqual(finals, [False] * (len(finals) - 1) + [True])


if __name__ == "__main__":
    unittest.main()
