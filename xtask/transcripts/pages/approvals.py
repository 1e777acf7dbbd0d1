"""An operator's answers on the command line and over HTTP, to an agent that wants to push, build and remove."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

CONFIG = """\
rules:
  - { rule: "ask shell(git push *)", reason: "pushes are looked at" }
tokens:
  - { name: olga, role: operator, sha256: HASH }
"""
# A server that claims of two of its tools that they only read.
MCP = """\
mcp:
  servers:
    notes: { command: python3, args: [./notes.py] }
"""
NOTES = """\
import json, sys

def tool(name, description, reads):
    hints = {"readOnlyHint": reads, "openWorldHint": False}
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, "annotations": hints}

TOOLS = [
    tool("list_notes", "Lists the notes.", True),
    tool("read_note", "Shows a note.", True),
    tool("save_note", "Writes a note.", False),
]

def answer(method, params):
    if method == "initialize":
        info = {"name": "notes", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "done"}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
# Calls of the agent wait in the background; its answers are not on the page.
ASK = """\
curl $URL/tools/shell/call -H "$AUTH" --json '{"command":"%s"}' >/dev/null &
until toolpost approvals | grep -q '%s'; do sleep 0.1; done
"""
LIST_NOTES = """\
curl $URL/tools/notes__list_notes/call -H "$AUTH" --json '{}' >/dev/null &
until toolpost approvals | grep -q list_notes; do sleep 0.1; done
"""
NEWEST = "toolpost approvals 2>/dev/null | tail -n 1 | cut -c1-8"
PUSH = ASK % ("git push origin main:mian", "main:mian")
# The numbers of records are on the page, so that calls must not overlap.
UNTIL_IDLE = """until curl $URL/health | grep -q '"running":0,'; do sleep 0.1; done"""

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={"toolpost.yaml": CONFIG + MCP, "notes.py": NOTES},
            setup="""\
sed -i "s/HASH/$(printf the-token-of-olga | sha256sum | cut -d' ' -f1)/" toolpost.yaml
git init -q .
toolpost trust
""",
            host="",
            prelude="""\
URL=http://127.0.0.1:8765
AUTH="Authorization: Bearer $(cat ~/.local/state/toolpost/*/token)"
OPERATOR=the-token-of-olga
export EDITOR="sed -i s/mian/main/"
""",
        ),
    },
    blocks={
        "toolpost approvals\n": BlockStage(setup=PUSH),
        "toolpost approvals allow f01373e7": BlockStage(cleanup=UNTIL_IDLE),
        "toolpost approvals allow 301712da --edit": BlockStage(
            setup=PUSH, learn={"301712da": NEWEST}, cleanup=UNTIL_IDLE
        ),
        "toolpost approvals allow 62541be9": BlockStage(
            setup=ASK % ("cargo build --release", "cargo build"), learn={"62541be9": NEWEST}, cleanup=UNTIL_IDLE
        ),
        "toolpost approvals show 5c1e90d2": BlockStage(
            setup=LIST_NOTES, learn={"5c1e90d2": NEWEST}, cleanup=UNTIL_IDLE
        ),
        'curl -H "Authorization: Bearer $OPERATOR" $URL/approvals': BlockStage(
            setup=ASK % ("rm -r build", "rm -r build")
        ),
    },
)
