"""What an official client does with a host, whatever the client, the revision and the transport."""

import asyncio
import json
import subprocess
import unittest

from clients import FastMcp, OverHttp, OverStdio, Sdk
from hosting import (
    CONFORMANCE,
    OPERATOR_TOKEN,
    conformance_at,
    on_stdio,
    place_with,
    processes,
    start,
    start_conformance,
)
from waiting import until

PATIENCE = 40


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


class Talk(unittest.IsolatedAsyncioTestCase):
    """Tests that have a client to talk with; `client`, `era` and the way are chosen below."""

    client, era = None, None

    def way(self, token=None):
        raise NotImplementedError

    def connect(self, token=None, answer=None):
        return self.client.connect(self.way(token), self.era, answer)

    async def within(self, work):
        return await asyncio.wait_for(work, PATIENCE)


class Everywhere:
    """What holds over either transport."""

    async def test_the_list_has_schemas_and_hints(self):
        async with self.connect() as client:
            revision = self.era if self.era != "auto" else "2026-07-28"
            self.assertEqual(client.revision, revision)
            tools = {tool.name: tool for tool in await self.within(client.tools())}
            again = [tool.name for tool in await self.within(client.tools())]
        self.assertEqual(list(tools), again)
        self.assertIn("path", tools["read_file"].input_schema["properties"])
        self.assertTrue(tools["read_file"].annotations.read_only_hint)
        self.assertFalse(tools["write_file"].annotations.read_only_hint)
        self.assertNotIn("list_directory", tools)
        self.assertIn("search_tools", tools)
        self.assertIn("test_simple_text", tools)

    async def test_a_call_has_text_and_structured_content(self):
        async with self.connect() as client:
            result = await self.within(client.call("read_file", {"path": "lines.txt"}))
        self.assertFalse(result.is_error, result)
        self.assertIn("two", text(result))
        self.assertEqual(len(result.structured_content["sha256"]), 64)

    async def test_a_failure_is_the_tools_and_not_the_protocols(self):
        async with self.connect() as client:
            missing = await self.within(client.call("read_file", {"path": "missing.txt"}))
            wrong = await self.within(client.call("read_file", {"pth": "lines.txt"}))
            upstream = await self.within(client.call("test_error_handling"))
        self.assertTrue(missing.is_error and wrong.is_error and upstream.is_error)
        self.assertIn("missing.txt", text(missing))
        self.assertIn("pth", text(wrong))
        self.assertIn("intentionally", text(upstream))

    async def test_an_upstreams_progress_comes_through(self):
        seen = []

        async def on_progress(progress, total, _message):
            seen.append((progress, total))

        async with self.connect() as client:
            result = await self.within(client.call("test_tool_with_progress", {}, on_progress))
        self.assertFalse(result.is_error, result)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(seen[-1], (100, 100))

    async def test_an_upstreams_pictures_resources_and_prompts_come_through(self):
        async with self.connect() as client:
            mixed = await self.within(client.call("test_multiple_content_types"))
            [read] = await self.within(client.read("test://static-text"))
            [message] = await self.within(client.prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}))
        self.assertEqual([part.type for part in mixed.content], ["text", "image", "resource"])
        self.assertEqual(read.text, "This is the content of the static text resource.")
        self.assertIn("arg1='a', arg2='b'", message.content.text)

    async def test_a_call_that_is_canceled_stops(self):
        word = f"3{abs(hash((type(self).__name__))) % 10**6:06}"
        async with self.connect() as client:
            call = asyncio.create_task(client.call("shell", {"command": f"sleep {word}"}))
            await asyncio.to_thread(until, lambda: processes(word), 20, "the command runs")
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.to_thread(until, lambda: not processes(word), 20, "the command is gone")

    async def test_a_large_result_is_a_link_that_is_read_in_ranges(self):
        async with self.connect() as client:
            result = await self.within(client.call("shell", {"command": "seq 1 100000"}))
            [link] = [part for part in result.content if part.type == "resource_link"]
            whole = "".join(f"{number}\n" for number in range(1, 100_001))
            [head] = await self.within(client.read(f"{link.uri}?offset=0&length=20"))
            [part] = await self.within(client.read(f"{link.uri}?offset=100000&length=1000"))
        self.assertGreaterEqual(link.size, len(whole))
        self.assertTrue(head.text.startswith("1\n2\n3\n"), head)
        self.assertEqual(part.text, whole[100_000:101_000])

    async def test_what_is_deferred_is_found_and_called(self):
        async with self.connect() as client:
            found = await self.within(client.call("search_tools", {"query": "list what is in a directory"}))
            self.assertIn("list_directory", json.dumps(found.structured_content) + text(found))
            called = await self.within(client.call("list_directory", {"path": "."}))
        self.assertFalse(called.is_error, called)
        self.assertIn("lines.txt", text(called))

    async def test_an_upstreams_question_reaches_the_client(self):
        asked = []

        def answer(params):
            asked.append(params.message)
            return {"action": "accept", "content": {"username": "ada", "email": "ada@example.org"}}

        async with self.connect(answer=answer) as client:
            result = await self.within(client.call("test_elicitation", {"message": "Who is it?"}))
        self.assertEqual(asked, ["Who is it?"])
        self.assertIn("ada@example.org", text(result))


class OnHttp:
    """What needs tokens."""

    @classmethod
    def setUpClass(cls):
        cls.host = start(cls, CONFORMANCE)

    def way(self, token=None):
        return OverHttp(self.host, token)

    async def test_an_operator_is_asked_by_the_client(self):
        asked = []

        def answer(params):
            asked.append(params.message)
            return {"action": "accept", "content": {"decision": "allow"}}

        name = f"{type(self).__name__}.txt"
        async with self.connect(OPERATOR_TOKEN, answer) as client:
            result = await self.within(client.call("write_file", {"path": name, "content": "x"}))
        self.assertFalse(result.is_error, result)
        self.assertEqual(len(asked), 1)
        self.assertIn("write_file", asked[0])
        self.assertEqual(self.host.place.read(name), "x")

    async def test_an_operator_says_no(self):
        def answer(_params):
            return {"action": "accept", "content": {"decision": "deny", "reason": "use another name"}}

        async with self.connect(OPERATOR_TOKEN, answer) as client:
            result = await self.within(client.call("write_file", {"path": "no.txt", "content": "x"}))
        self.assertTrue(result.is_error, result)
        self.assertIn("use another name", text(result))
        self.assertFalse((self.host.place.workspace / "no.txt").exists())

    async def test_an_agent_is_not_asked_and_hears_that_it_waits(self):
        asked = []

        def answer(params):
            asked.append(params.message)
            return {"action": "accept", "content": {"decision": "allow"}}

        async with self.connect(answer=answer) as client:
            result = await self.within(client.call("write_file", {"path": "agent.txt", "content": "x"}))
        self.assertEqual(asked, [])
        self.assertIn("approval", text(result).lower())
        self.assertFalse((self.host.place.workspace / "agent.txt").exists())

    async def test_nobody_comes_in_without_a_token(self):
        with self.assertRaises(BaseException):
            async with self.connect("tp_wrong") as client:
                await self.within(client.tools())


class OnStdio:
    """A host of its own, started by the client. Importing the SDK for a server of its own would take longer than a test."""

    @classmethod
    def setUpClass(cls):
        cls.upstream = start_conformance(cls)

    def setUp(self):
        self.place, words = place_with(conformance_at(self.upstream))
        self.addCleanup(self.place.remove)
        self.ended = on_stdio(self.place, words)

    def way(self, token=None):
        return OverStdio(*self.ended, self.place.workspace)

    async def test_the_host_ends_with_its_client(self):
        async with self.connect() as client:
            await self.within(client.tools())
            [pid] = processes(str(self.place.data_dir))
        await asyncio.to_thread(until, lambda: pid not in processes(str(self.place.data_dir)), 20, "the host is gone")


class OnJoined(OnStdio):
    """A process started by the client, in a folder where a host runs already."""

    def setUp(self):
        super().setUp()
        program, arguments, environment = self.ended
        self.first = subprocess.Popen(
            [program, *arguments],
            cwd=self.place.workspace,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(self.first.wait)
        self.addCleanup(self.first.stdin.close)
        until((self.place.data_dir / "socket").exists, 20, "the first host is there")

    async def test_the_host_ends_with_its_client(self):
        async with self.connect() as client:
            await self.within(client.tools())
            [pid] = set(processes(str(self.place.data_dir))) - {self.first.pid}
        await asyncio.to_thread(until, lambda: pid not in processes(str(self.place.data_dir)), 20, "it is gone")
        self.assertIsNone(self.first.poll())

    async def test_the_client_goes_on_when_the_first_host_is_killed(self):
        async with self.connect() as client:
            before = [tool.name for tool in await self.within(client.tools())]
            self.first.kill()
            await asyncio.to_thread(self.first.wait)
            result = await self.within(client.call("read_file", {"path": "lines.txt"}))
            self.assertFalse(result.is_error, result)
            self.assertEqual([tool.name for tool in await self.within(client.tools())], before)


def cases(client):
    """The classes of tests for a client: every revision over every transport."""
    made = {}
    for era in ("2025-11-25", "2026-07-28", "auto"):
        for transport in (OnHttp, OnStdio, OnJoined):
            name = f"{client.__name__}{transport.__name__}{era.replace('-', '')}"
            made[name] = type(name, (transport, Everywhere, Talk), {"client": client, "era": era})
    return made


__all__ = ["FastMcp", "Sdk", "cases"]
