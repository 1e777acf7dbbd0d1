"""The official SDK's client and FastMCP's, so that one suite can use either."""

from contextlib import asynccontextmanager

import fastmcp
import httpx2
import mcp
import mcp_types as types
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

# How either client is told which revision to speak.
MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28", "auto": "auto"}


class OverHttp:
    """At a host's address, with a token."""

    def __init__(self, host, token=None):
        self.url = f"http://127.0.0.1:{host.port}/mcp"
        self.headers = {"Authorization": f"Bearer {token or host.token}"}

    @asynccontextmanager
    async def for_sdk(self):
        async with httpx2.AsyncClient(headers=self.headers, timeout=30) as http:
            yield streamable_http_client(self.url, http_client=http)

    def for_fastmcp(self):
        return StreamableHttpTransport(self.url, headers=self.headers)


class OverStdio:
    """A host of its own as a child."""

    def __init__(self, program, arguments, environment, folder):
        self.words = {"command": program, "args": arguments, "env": environment, "cwd": str(folder)}

    @asynccontextmanager
    async def for_sdk(self):
        yield StdioServerParameters(**self.words)

    def for_fastmcp(self):
        return StdioTransport(**self.words, keep_alive=False)


class Sdk:
    """`mcp.Client`."""

    @staticmethod
    @asynccontextmanager
    async def connect(way, era, answer=None):
        async def elicit(_context, params):
            return types.ElicitResult(**answer(params))

        async with way.for_sdk() as server:
            callback = elicit if answer else None
            client = mcp.Client(server, mode=MODES[era], elicitation_callback=callback, cache=None)
            async with client:
                yield Sdk(client)

    def __init__(self, client):
        self.client = client

    @property
    def revision(self):
        return self.client.protocol_version

    async def tools(self):
        found, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found, cursor = found + page.tools, page.next_cursor
            if cursor is None:
                return found

    async def call(self, name, arguments=None, on_progress=None):
        return await self.client.call_tool(name, arguments or {}, progress_callback=on_progress)

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages


class FastMcp:
    """`fastmcp.Client`."""

    @staticmethod
    @asynccontextmanager
    async def connect(way, era, answer=None):
        async def elicit(_message, _type, params, _context):
            return types.ElicitResult(**answer(params))

        handler = {"elicitation_handler": elicit} if answer else {}
        async with fastmcp.Client(way.for_fastmcp(), mode=MODES[era], **handler) as client:
            yield FastMcp(client)

    def __init__(self, client):
        self.client = client

    @property
    def revision(self):
        return self.client.session.protocol_version

    async def tools(self):
        return await self.client.list_tools()

    async def call(self, name, arguments=None, on_progress=None):
        return await self.client.call_tool_mcp(name, arguments or {}, progress_handler=on_progress)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages
