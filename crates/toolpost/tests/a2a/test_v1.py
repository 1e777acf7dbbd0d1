"""A2A 1.0 over JSON-RPC and over REST."""

import unittest
import uuid

from peer_1 import Peer, RestPeer
from suite import Suite, call


class OverJsonRpc(Suite, unittest.IsolatedAsyncioTestCase):
    peer = Peer

    async def test_tasks_are_listed_by_conversation_and_by_page(self):
        context = str(uuid.uuid4())
        made = [(await self.task(call("top_lines", {"count": 1}), context_id=context))["id"] for _ in range(3)]
        page = await self.client.list(context_id=context, page_size=2)
        self.assertEqual([task["id"] for task in page["tasks"]], made[:0:-1])
        self.assertEqual(page["totalSize"], 3)
        rest = await self.client.list(context_id=context, page_size=2, page_token=page["nextPageToken"])
        self.assertEqual(([task["id"] for task in rest["tasks"]], rest["nextPageToken"]), (made[:1], ""))

    async def test_a_task_that_has_ended_cannot_be_followed(self):
        task = await self.task(call("top_lines", {"count": 1}))
        with self.assertRaises(self.peer.UNSUPPORTED):
            await self.items(self.client.subscribe(task["id"]))

    async def test_a_version_that_is_not_spoken_is_refused(self):
        body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
        answer = await self.client.http.post(f"{self.base}/a2a", json=body, headers={"A2A-Version": "2.0"})
        self.assertEqual(answer.json()["error"]["code"], -32009)


class OverRest(OverJsonRpc):
    peer = RestPeer


if __name__ == "__main__":
    unittest.main()
