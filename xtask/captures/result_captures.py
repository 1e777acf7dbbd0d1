"""Every outcome and disposition over plain HTTP, with the record of all of them."""

import json
import urllib.parse

import journal_captures
import stage
from calls import asked, call, ended, invocation_of, wait_for_stage

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

PLAIN = [
    ("empty", "list_directory", {"path": "hollow"}),
    ("partial", "grep?timeout=1", {"pattern": "[a-z] [a-z]+[0-9]|needle", "path": "many"}),
    ("failed", "count_words", {"path": "missing.txt"}),
    ("failed-in-tool", "read_file", {"path": "missing.txt"}),
    ("classified", "shell", {"command": "cat notes.txt"}),
    ("invalid", "read_file", {"path": 7}),
    ("invalid-unknown-member", "read_file", {"pth": "notes.txt"}),
    ("unknown-tool", "no_such_tool", {"path": "notes.txt"}),
    ("almost-known-tool", "read_fil", {"path": "notes.txt"}),
    ("denied-by-rule", "read_file", {"path": "secret.txt"}),
    ("denied-command", "shell", {"command": "rm notes.txt"}),
    ("outside", "read_file", {"path": "/etc/passwd"}),
    ("delegated", "write_file", {"path": "desk/a.txt", "content": "x"}),
    ("delegated-denied", "write_file", {"path": "closed/a.txt", "content": "x"}),
    ("hook-denies", "echo", {"message": "vote no"}),
    ("hook-withholds", "echo", {"message": "keep this"}),
    ("secret", "echo", {"message": f"it is {stage.SECRET}, and sk-ant-api03-{'A1b2' * 24}"}),
    ("nested", "run_code", {"code": 'print(read_file("notes.txt"))'}),
    ("nested-fails", "run_code", {"code": 'read_file("secret.txt")'}),
    ("preview", "demo__read_preview", {"path": "large.txt"}),
    ("preview-read-file", "read_file", {"path": "large.txt", "limit": 3}),
    ("ref-only", "demo__read_ref", {"path": "large.txt"}),
    ("redacted", "demo__read_redact", {"path": "large.txt"}),
    ("dropped", "demo__read_drop", {"path": "large.txt"}),
    ("server", "demo__add", {"a": 1, "b": 2}),
    ("server-fails", "demo__fail", {}),
    ("module", "read_note", {"file_path": "notes.txt"}),
    ("module-fails", "read_note", {"file_path": "none.txt"}),
    ("command", "count_words", {"path": "notes.txt"}),
    ("not-discovered", "file_info", {"path": "notes.txt"}),
    ("large-output", "shell", {"command": "seq 1 30000"}),
    ("exit-code", "shell?correlation_id=mark-1", {"command": "sleep 0; exit 3"}),
    ("timed-out", "shell?timeout=1", {"command": "sleep 600"}),
]

QUESTIONS = [
    ("edited", {"path": "model.txt", "content": "model"}, {"decision": "allow", "arguments": {
        "path": "model.txt", "content": "person", "create_directories": True}}),
    ("allowed", {"path": "yes.txt", "content": "model"}, {"decision": "allow"}),
    ("rejected-by-person", {"path": "no.txt", "content": "model"}, {"decision": "deny", "feedback": "not today"}),
    ("rule-asks", {"path": ".ask/a.txt", "content": "model"}, {"decision": "allow"}),
    ("caution", {"path": ".git/config", "content": "model"}, {"decision": "deny"}),
]  # fmt: skip


def capture(group):
    place = group.place
    stage.prepare(place)
    stage.write_long_search(place)
    host = stage.serve(place)
    group.keep_token()
    group.save("banner", host.banner())
    agent, operator = host.agent, host.operator
    headers = {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7"}
    group.save("inline", call(agent, "read_file", {"path": "notes.txt"}, "inline", headers))
    for name, tool, arguments in PLAIN:
        group.save(name, call(agent, tool, arguments, name))
    _artifacts(group, agent)
    group.save("discovery", agent.exchange("GET", "/tools?query=file_info&include_deferred=true&limit=1"))
    group.save("discovered", call(agent, "file_info", {"path": "notes.txt"}, "discovered"))
    tenant = host.caller(stage.TENANT_TOKEN)
    group.save("tenant", call(tenant, "read_file", {"path": "notes.txt"}, "tenant"))
    for name, arguments, verdict in QUESTIONS:
        asked(group, host, name, "write_file", arguments, verdict)
    asked(group, host, "opaque", "shell", {"command": "$(printf ls)"}, {"decision": "deny"}, tenant)
    impatient = call(agent, "write_file?patience=0.1", {"path": "never.txt", "content": "x"}, "impatient")
    group.save("approval-pending", impatient)
    for name, stopper in (("canceled", agent), ("canceled-by-operator", operator)):
        begun = call(agent, "shell?background=true", {"command": "sleep 601"}, name)
        wait_for_stage(agent, invocation_of(begun), "execute")
        canceled = stopper.exchange("POST", f"/invocations/{invocation_of(begun)}/cancel")
        end = ended(agent, invocation_of(begun))
        again = stopper.exchange("POST", f"/invocations/{invocation_of(begun)}/cancel")
        group.save(name, {"begun": begun, "cancel": canceled, "end": end, "again": again})
    _batch(group, agent)
    group.save("health", operator.exchange("GET", "/health"))
    group.save("stopped", f"exit code {host.stop()}\n{host.log()}")
    journal_captures.save_record(group, "record")


def _artifacts(group, agent):
    """Reads a kept result, whole, in part, and through the tools for it."""
    kept = call(agent, "demo__read_preview", {"path": "large.txt"}, "kept")
    [artifact] = kept["body"]["artifacts"]
    path = f"/artifacts/{artifact['id']}"
    for name, headers in {"part": {"Range": "bytes=0-99"}, "no-range": {"Range": "bytes=99999999-"}}.items():
        group.save(f"artifact/{name}", agent.exchange("GET", path, None, headers))
    whole = agent.exchange("GET", path)
    whole["body"] = {"length": len(whole["body"]), "start": whole["body"][:60]}
    group.save("artifact/whole", whole)
    group.save("artifact/unknown", agent.exchange("GET", "/artifacts/none"))
    read = call(agent, "read_result", {"ref": artifact["id"], "limit": 2}, "read_result")
    group.save("artifact/read-result", read)
    found = call(agent, "search_result", {"ref": artifact["id"], "pattern": "line 29.. of"}, "search_result")
    group.save("artifact/search-result", found)
    group.run("artifact/list", "artifacts", "list")
    group.run("artifact/get", "artifacts", "get", artifact["id"])


def _batch(group, agent):
    """A call that is canceled because the call before it in its turn failed."""
    for name, index, depends, path in (("first", 0, [], "missing.txt"), ("sibling-canceled", 1, [0], "notes.txt")):
        place = {"id": "turn-1", "index": index, "depends_on": depends, "on_failure": "cancel_dependent"}
        batch = urllib.parse.quote(json.dumps(place))
        group.save(f"batch-{name}", call(agent, f"read_file?batch={batch}", {"path": path}, name))
