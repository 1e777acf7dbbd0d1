"""The reference servers from npm behind the real binary, used by the official client: as anybody would set them up."""

import asyncio
import contextlib
import json
import os
import signal
import unittest
import urllib.request

from clients import OverHttp, Sdk
from hosting import NODE, processes, start
from suite import PATIENCE, text
from waiting import until

SCRIPT = NODE / "node_modules/@modelcontextprotocol/server-{}/dist/index.js"


def server(name, *arguments):
    """In the sandbox that programs are in by default; only the packages' folder is opened."""
    words = json.dumps([str(SCRIPT).format(name), *arguments])
    return f"""
    {name}:
      command: {NODE / "bin/node"}
      args: {words}
      readable: [{NODE}]
"""


RULES = """
rules:
  - allow everything.*
  - allow filesystem.*
"""


class Servers(unittest.IsolatedAsyncioTestCase):
    """One host with both servers behind it, for clients of either revision."""

    @classmethod
    def setUpClass(cls):
        cls.host = start(cls, server("everything", "stdio") + server("filesystem", "."), RULES)

    def connect(self, era, answer=None):
        return Sdk.connect(OverHttp(self.host), era, answer)

    async def within(self, work):
        return await asyncio.wait_for(work, PATIENCE)

    async def in_both(self, work):
        for era in ("2025-11-25", "2026-07-28"):
            with self.subTest(era):
                async with self.connect(era) as client:
                    await self.within(work(client))

    async def test_their_tools_are_listed_under_their_names(self):
        async def work(client):
            names = {tool.name: tool for tool in await client.tools()}
            self.assertLessEqual({"everything__echo", "filesystem__read_text_file", "read_file"}, set(names))
            self.assertEqual(names["everything__get-sum"].input_schema["required"], ["a", "b"])

        await self.in_both(work)

    async def test_text_pictures_and_structured_content(self):
        async def work(client):
            self.assertEqual(text(await client.call("everything__echo", {"message": "hi"})), "Echo: hi")
            picture = await client.call("everything__get-tiny-image")
            self.assertEqual([part.type for part in picture.content], ["text", "image", "text"])
            self.assertEqual(picture.content[1].mime_type, "image/png")
            weather = await client.call("everything__get-structured-content", {"location": "New York"})
            self.assertEqual(set(weather.structured_content), {"temperature", "conditions", "humidity"})

        await self.in_both(work)

    async def test_progress(self):
        async def work(client):
            seen = []

            async def on_progress(progress, total, _message):
                seen.append((progress, total))

            arguments = {"duration": 1, "steps": 4}
            result = await client.call("everything__trigger-long-running-operation", arguments, on_progress)
            self.assertIn("completed", text(result))
            self.assertEqual(seen[-1], (4, 4))

        await self.in_both(work)

    async def test_resources_are_read(self):
        async def work(client):
            [read] = await client.read("demo://resource/static/document/architecture.md")
            self.assertIn("Architecture", read.text)
            [made] = await client.read("demo://resource/dynamic/text/1")
            self.assertIn("Resource 1", made.text)

        await self.in_both(work)

    async def test_wrong_arguments_are_told_by_the_host(self):
        async def work(client):
            result = await client.call("everything__get-sum", {"a": 1})
            self.assertTrue(result.is_error)
            self.assertIn("b", text(result))

        await self.in_both(work)

    async def test_files_within_the_workspace_and_no_further(self):
        async def work(client):
            read = await client.call("filesystem__read_text_file", {"path": "lines.txt"})
            self.assertIn("two", text(read))
            written = await client.call("filesystem__write_file", {"path": "by-it.txt", "content": "by it"})
            self.assertFalse(written.is_error, written)
            self.assertEqual(self.host.place.read("by-it.txt"), "by it")
            outside = await client.call("filesystem__read_text_file", {"path": "/etc/hostname"})
            self.assertTrue(outside.is_error)

        await self.in_both(work)

    async def test_a_server_that_is_killed_is_there_again(self):
        async def work(client):
            await client.call("everything__echo", {"message": "before"})
            before = self.children("everything")
            self.assertTrue(before)
            ready = self.ready_servers()
            for pid in before:
                # One of them may end with another that is its parent.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            # A process leaves the process table before the kernel closes its pipes. A call in between is sent into a
            # pipe that nobody reads and ends as unknown, so the test waits until the host has noticed.
            await asyncio.to_thread(until, lambda: self.ready_servers() < ready, 20, "the host notices")
            self.assertEqual(text(await client.call("everything__echo", {"message": "after"})), "Echo: after")
            self.assertFalse(set(before) & set(self.children("everything")))
            read = await client.call("filesystem__read_text_file", {"path": "lines.txt"})
            self.assertIn("two", text(read))

        await self.in_both(work)

    def ready_servers(self):
        """The number of servers that the host counts as connected."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.host.port}/health", timeout=10) as answer:
            return json.load(answer)["sources"]["states"].get("ready", 0)

    @staticmethod
    def children(name):
        return processes(str(SCRIPT).format(name))


if __name__ == "__main__":
    unittest.main()
