"""An MCP server on the standard library alone. Its tools stand in `tools.json` beside it, so that a test can change them.

`value` gives back a variable of its environment, whatever it is called, and those that begin with `read` a file; every other tool says its name
and arguments.
"""

import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def tools():
    with open(os.path.join(FOLDER, "tools.json"), encoding="utf-8") as file:
        return json.load(file)


def answer(method, params):
    if method == "initialize":
        version = params.get("protocolVersion", "2025-11-25")
        return {
            "protocolVersion": version if version < "2026" else "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "demo", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        arguments = params.get("arguments") or {}
        if params["name"] == "value":
            text = os.environ.get(arguments.get("name", ""), "nothing")
        elif params["name"].startswith("read"):
            try:
                with open(arguments["path"], encoding="utf-8") as file:
                    text = file.read()
            except OSError as problem:
                text = "refused: " + problem.__class__.__name__
        else:
            text = params["name"] + " " + json.dumps(arguments, sort_keys=True)
        return {"content": [{"type": "text", "text": text}]}
    if method == "ping":
        return {}
    return None


if len(sys.argv) > 1:
    # Tells that it was started at all, in a file or in a folder.
    marker = os.path.join(sys.argv[1], "marker") if os.path.isdir(sys.argv[1]) else sys.argv[1]
    with open(marker, "a", encoding="utf-8") as file:
        file.write("started\n")

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
