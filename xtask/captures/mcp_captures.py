"""MCP in both eras, over streamable HTTP and over pipes."""

import journal_captures
import stage
from peer import poll
from pipes import PipedHost

BOTH = {"Accept": "application/json, text/event-stream"}
OLDER, NEWER = "2025-11-25", "2026-07-28"
CLIENT = {"name": "capture", "version": "1"}
CALLS = [
    ("read", "read_file", {"path": "notes.txt"}),
    ("failed", "read_file", {"path": "missing.txt"}),
    ("denied", "read_file", {"path": "secret.txt"}),
    ("invalid", "read_file", {"path": 7}),
    ("unknown", "no_such_tool", {}),
    ("deferred", "file_info", {"path": "notes.txt"}),
    ("preview", "demo__read_preview", {"path": "large.txt"}),
    ("ref-only", "demo__read_ref", {"path": "large.txt"}),
    ("redacted", "demo__read_redact", {"path": "large.txt"}),
    ("empty", "list_directory", {"path": "hollow"}),
    ("hook-denies", "echo", {"message": "vote no"}),
    ("secret", "echo", {"message": stage.SECRET}),
    ("server", "demo__add", {"a": 1, "b": 2}),
    ("server-fails", "demo__fail", {}),
    ("module", "read_note", {"file_path": "notes.txt"}),
    ("shell", "shell", {"command": "sleep 0; echo said"}),
    ("pending", "write_file", {"path": "p.txt", "content": "x"}),
]
REQUESTS = [
    ("ping", "ping", {}),
    ("tools", "tools/list", {}),
    ("resources", "resources/list", {}),
    ("resource", "resources/read", {"uri": "demo://notes"}),
    ("resource-missing", "resources/read", {"uri": "demo://none"}),
    ("resource-artifact-missing", "resources/read", {"uri": "toolpost://artifacts/none"}),
    ("templates", "resources/templates/list", {}),
    ("prompts", "prompts/list", {}),
    ("prompt", "prompts/get", {"name": "greet", "arguments": {"who": "you"}}),
    ("prompt-missing", "prompts/get", {"name": "none"}),
    ("bad-cursor", "tools/list", {"cursor": "zzz"}),
    ("no-method", "tools/dance", {}),
    ("search-tools", "tools/call", {"name": "search_tools", "arguments": {"query": "file info"}}),
    ("call-tool", "tools/call", {"name": "call_tool", "arguments": {"name": "file_info", "arguments": {
        "path": "notes.txt"}}}),
]  # fmt: skip


def conversation(newer):
    """Every request of an era: its name, its method and its parameters."""
    first = [("discover", "server/discover", {})] if newer else []
    calls = [(f"call-{name}", "tools/call", {"name": tool, "arguments": sent}) for name, tool, sent in CALLS]
    progress = {"name": "echo", "arguments": {"message": "x"}, "_meta": {"progressToken": "t1"}}
    return first + REQUESTS + calls + [("call-progress", "tools/call", progress)]


def message(name, method, params, newer):
    if newer:
        meta = {
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = params | {"_meta": meta | params.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": name, "method": method, "params": params}


def initialize(version=OLDER):
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return {"jsonrpc": "2.0", "id": "initialize", "method": "initialize", "params": params}


def capture(group):
    stage.prepare(group.place)
    host = stage.serve(group.place)
    group.keep_token()
    _older_over_http(group, host.agent)
    _newer_over_http(group, host.agent)
    _refusals(group, host)
    host.stop()
    for newer, name in ((False, "stdio-older"), (True, "stdio-newer")):
        _over_pipes(group, name, newer)
    _operator_over_pipes(group)
    journal_captures.save_record(group, "record")


def _operator_over_pipes(group):
    """The person behind the client is asked with a form; a call that runs is canceled."""
    piped = PipedHost(group.place, ["serve", "--stdio", "mcp", "--operator", *group.place.words])
    first = initialize()
    first["params"]["capabilities"] = {"elicitation": {}}
    piped.send(first)
    group.save("operator/initialize", piped.until(lambda one: one.get("id") == "initialize"))
    piped.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for name, told in {
        "allow": {"action": "accept", "content": {"decision": "allow"}},
        "deny": {"action": "accept", "content": {"decision": "deny", "reason": "not today"}},
        "decline": {"action": "decline"},
    }.items():
        sent = {"name": "write_file", "arguments": {"path": f"form-{name}.txt", "content": "x"}}
        piped.send(message(f"form-{name}", "tools/call", sent, newer=False))
        asked = piped.until(lambda one: one.get("method") == "elicitation/create")
        piped.send({"jsonrpc": "2.0", "id": asked[-1]["id"], "result": told})
        got = piped.until(lambda one, request=f"form-{name}": one.get("id") == request and "method" not in one)
        group.save(f"operator/form-{name}", {"asked": asked, "got": got})
    piped.send(message("stopped", "tools/call", {"name": "shell", "arguments": {"command": "sleep 600"}}, newer=False))
    running = lambda: group.place.operator.json("GET", "/health")["running"] == 1
    poll(running, "the call runs")
    piped.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "stopped"}})
    poll(lambda: not running(), "the call has stopped")
    piped.send(message("after", "ping", {}, newer=False))
    group.save("operator/after-cancel", piped.until(lambda one: one.get("id") == "after"))
    group.save("operator/end", piped.close())


def _older_over_http(group, agent):
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "1999-01-01"):
        group.save(f"http-older/initialize-{version}", agent.exchange("POST", "/mcp", initialize(version), BOTH))
    opened = agent.exchange("POST", "/mcp", initialize(), BOTH)
    group.save("http-older/initialize", opened)
    headers = BOTH | {"Mcp-Session-Id": opened["headers"]["mcp-session-id"], "MCP-Protocol-Version": OLDER}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    group.save("http-older/initialized", agent.exchange("POST", "/mcp", ready, headers))
    for name, method, params in conversation(newer=False):
        sent = message(name, method, params, newer=False)
        group.save(f"http-older/{name}", agent.exchange("POST", "/mcp", sent, headers))
    group.save("http-older/delete", agent.exchange("DELETE", "/mcp", None, headers))
    sent = message("late", "ping", {}, newer=False)
    group.save("http-older/after-delete", agent.exchange("POST", "/mcp", sent, headers))


def _newer_over_http(group, agent):
    for name, method, params in conversation(newer=True):
        headers = BOTH | {"MCP-Protocol-Version": NEWER, "Mcp-Method": method}
        if "name" in params or "uri" in params:
            headers["Mcp-Name"] = params.get("name") or params.get("uri")
        group.save(f"http-newer/{name}", agent.exchange("POST", "/mcp", message(name, method, params, True), headers))
    ping = message("x", "tools/list", {}, newer=True)
    headers = BOTH | {"MCP-Protocol-Version": NEWER, "Mcp-Method": "ping"}
    group.save("http-newer/headers-disagree", agent.exchange("POST", "/mcp", ping, headers))
    group.save("http-newer/get", agent.exchange("GET", "/mcp", None, headers))


def _refusals(group, host):
    agent = host.agent
    listing = message("x", "tools/list", {}, newer=False)
    for name, exchange in {
        "no-token": host.caller(None).exchange("POST", "/mcp", initialize(), BOTH),
        "no-session": agent.exchange("POST", "/mcp", listing, BOTH),
        "unknown-session": agent.exchange("POST", "/mcp", listing, BOTH | {"Mcp-Session-Id": "none"}),
        "no-accept": agent.exchange("POST", "/mcp", initialize(), {"Accept": "text/html"}),
        "batch": agent.exchange("POST", "/mcp", [initialize()], BOTH),
        "not-json": agent.exchange("POST", "/mcp", "{", BOTH | {"Content-Type": "application/json"}),
        "bad-version": agent.exchange("POST", "/mcp", listing, BOTH | {"MCP-Protocol-Version": "2030-01-01"}),
    }.items():
        group.save(f"refusals/{name}", exchange)


def _over_pipes(group, folder, newer):
    piped = PipedHost(group.place, ["serve", "--stdio", "mcp", *group.place.words])
    requests = [message(*one, newer) for one in conversation(newer)]
    if not newer:
        requests.insert(0, initialize())
    for sent in requests:
        piped.send(sent)
        got = piped.until(lambda one, request=sent["id"]: one.get("id") == request)
        group.save(f"{folder}/{sent['id']}", {"sent": sent, "got": got})
        if sent["id"] == "initialize":
            piped.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    piped.send("{")
    group.save(f"{folder}/broken", piped.until(lambda _: True))
    group.save(f"{folder}/end", piped.close())
