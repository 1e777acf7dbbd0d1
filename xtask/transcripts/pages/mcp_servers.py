"""A list of one MCP server, and an editor's list."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

LIST = '{ "mcpServers": { "rev": { "command": "python3", "args": ["./server.py"] } } }\n'
SERVER = '''\
import json, sys

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

def answer(method, params):
    if method == "initialize":
        info = {"name": "rev", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "reverse", "description": "Turns a text round.", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"][::-1]}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={
                "mcp.json": LIST,
                ".mcp.json": LIST,
                "server.py": SERVER,
                "~/.config/some-program/config.json": LIST.replace("./server.py", "/home/me/project/server.py"),
            },
        ),
    },
    blocks={
        "toolpost tools accept": BlockStage(
            reason="forms of a command; crates/toolpost/tests/it/mcp_servers.rs accepts definitions"
        ),
    },
)
