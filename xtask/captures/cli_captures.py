"""The command line without a host: help, references, tools in every format, explanations, `connect` and `new`."""

import re

CLIENTS = ("claude-code", "claude-desktop", "vscode", "cursor", "codex", "goose", "a2e")
FORMATS = ("toolpost", "openai", "anthropic", "gemini", "mcp", "a2e")
REFERENCES = ("configuration", "config-schema", "errors", "cli", "openapi", "evidence-schema")
_COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*)(?:  |$)")

EVENTS = """\
{"type":"tool-call","toolCallId":"c1","toolName":"read_file","input":{"path":"a"},"startedAt":"2020-01-01T00:00:00.000Z"}
{"type":"tool-input-available","toolCallId":"c2","toolName":"shell","args":{"command":"ls"}}
{"type":"tool-result","toolCallId":"c1","toolName":"read_file","output":"text","durationMs":3}
{"type":"tool-error","toolCallId":"c2","toolName":"shell","error":{"message":"no"}}
"""


def capture(group):
    place = group.place
    place.write("notes.txt", "one two three\n")
    place.write("src/main.rs", "fn main() {}\n")
    _help(group, [])
    group.run("help/hidden-reference", "reference", "--help")
    group.run("version", "--version")
    group.run("welcome")
    for shell in ("bash", "zsh", "fish"):
        group.run(f"completions/{shell}", "completions", shell)
    for name in REFERENCES:
        group.run(f"reference/{name}", "reference", name)
    _tools(group)
    _explain(group)
    _call(group)
    for client in CLIENTS:
        group.run(f"connect/{client}-http", "connect", client, "--http")
        group.run(f"connect/{client}-stdio", "connect", client, "--stdio")
        group.run(f"connect/{client}-json", "connect", client, "--json")
    group.run("connect/all", "connect")
    group.run("connect/bad-name", "connect", "codex", "--name", "a name")
    _new(group)
    group.run("a2a/normalize-calls", "a2a", "normalize", stdin=EVENTS)
    group.run("a2a/normalize-parts", "a2a", "normalize", "--as", "parts", stdin=EVENTS)
    place.write("events.jsonl", EVENTS)
    group.run("watch/file", "watch", "events.jsonl", "--once")
    group.run("watch/file-json", "watch", "events.jsonl", "--once", "--json")
    group.run("watch/no-host", "watch")
    for name, words in {
        "unknown-command": ["srve"],
        "unknown-flag": ["tools", "--frmat", "x"],
        "bad-mode": ["call", "echo", "message=x", "--mode", "yolo"],
        "bad-rule": ["call", "echo", "message=x", "--allow", "shell("],
        "bad-profile": ["call", "echo", "message=x", "--sandbox", "soft"],
        "no-tool": ["call"],
    }.items():
        group.run(f"usage/{name}", *words)


def _help(group, words):
    ran = group.run("help/" + ("-".join(words) or "toolpost"), *words, "--help")
    group.run("help/short/" + ("-".join(words) or "toolpost"), *words, "-h")
    listed = ran.stdout.partition("\nCommands:\n")[2].partition("\n\n")[0]
    for line in listed.splitlines():
        found = _COMMAND.match(line)
        if found and found[1] != "help":
            _help(group, [*words, found[1]])


def _tools(group):
    group.run("tools/plain", "tools")
    group.run("tools/json", "tools", "--json")
    group.run("tools/deferred", "tools", "--deferred")
    group.run("tools/hidden", "tools", "--hidden", "--json", "--deny", "shell")
    for name in FORMATS:
        group.run(f"tools/format-{name}", "tools", "--format", name)
        group.run(f"tools/format-{name}-deferred", "tools", "--deferred", "--format", name)
    group.run("tools/bad-format", "tools", "--format", "xml")
    group.run("tools/search", "tools", "read", "file")
    group.run("tools/search-json", "tools", "search", "text", "--json", "--limit", "3", "--deferred")
    group.run("tools/search-nothing", "tools", "zebra")
    group.run("tools/by-kind", "tools", "--kind", "file")
    group.run("tools/by-tag", "tools", "--tag", "search", "--json")
    group.run("tools/accept-nothing", "tools", "accept")


def _explain(group):
    for name, words in {
        "read": ["read_file", "path=notes.txt"],
        "write": ["write_file", "path=x.txt", "content=y"],
        "write-allowed": ["write_file", "path=x.txt", "content=y", "--mode", "edits"],
        "outside": ["read_file", "path=/etc/shadow"],
        "shell-read": ["shell", "command=cat notes.txt | head -n 1"],
        "shell-write": ["shell", "command=rm -r src && git push origin main"],
        "shell-opaque": ["shell", "command=$(printf ls)"],
        "denied": ["read_file", "path=notes.txt", "--deny", "read_file(notes.txt)"],
        "plan-mode": ["write_file", "path=x", "content=y", "--mode", "plan"],
        "http": ["http_request", "url=https://example.com/a"],
        "unknown": ["read_fil", "path=x"],
        "invalid": ["read_file", "pth=x"],
        "no-such-call": ["01a1e2c0-1117-7159-9d5f-d91434b86c3e"],
    }.items():
        group.run(f"explain/{name}", "explain", *words)
        group.run(f"explain/{name}-json", "explain", *words, "--json")


def _call(group):
    for name, words in {
        "read": ["read_file", "path=notes.txt"],
        "by-id": ["files.read_file", "path=notes.txt"],
        "missing-file": ["read_file", "path=absent.txt"],
        "typed": ["read_file", "path=notes.txt", "limit:=1"],
        "bad-argument": ["read_file", "pth=notes.txt"],
        "wrong-type": ["read_file", "path=notes.txt", "limit=many"],
        "unknown-tool": ["no_such_tool", "a=b"],
        "asks": ["write_file", "path=x.txt", "content=y"],
        "denied-by-rule": ["read_file", "path=notes.txt", "--deny", "read_file"],
        "denied-by-mode": ["write_file", "path=x.txt", "content=y", "--mode", "plan"],
        "write": ["write_file", "path=new.txt", "content=y", "--mode", "edits"],
        "edit": ["edit_file", "path=new.txt", "old_string=y", "new_string=z", "--mode", "edits"],
        "outside": ["read_file", "path=../../x"],
        "list": ["list_directory", "path=."],
        "glob": ["glob", "pattern=**/*.rs"],
        "grep": ["grep", "pattern=main"],
        "shell": ["shell", "command=echo out; echo err >&2; exit 3", "--allow", "shell"],
        "shell-no-output": ["shell", "command=true", "--allow", "shell"],
        "timed-out": ["shell", "command=sleep 9", "--allow", "shell", "--timeout", "0.5"],
        "run-code": ["run_code", 'code=print(read_file("notes.txt"))', "--mode", "bypass"],
        "echo": ["echo", "message=hello"],
    }.items():
        if name == "edit":
            group.place.write("new.txt", "y")
        group.run(f"call/{name}", "call", *words, "--no-prompt")
        if name == "edit":
            group.place.write("new.txt", "y")
        group.run(f"call/{name}-json", "call", *words, "--no-prompt", "--json")
    group.run("call/arguments-from-stdin", "call", "echo", "--json", "-", stdin='{"message":"from stdin"}')
    group.run("call/arguments-not-json", "call", "echo", "--json", "{")
    group.run("call/session-without-host", "call", "echo", "message=x", "--session", "s")


def _new(group):
    for language in ("python", "rust", "wasm"):
        group.run(f"new/{language}", "new", "tool", f"word-{language}", "--lang", language)
        group.save(f"new/{language}-files", _files(group.place.workspace / f"tool-word-{language}"))
    group.run("new/testkit", "new", "testkit", "--path", "kit")
    group.save("new/testkit-files", _files(group.place.workspace / "kit"))
    group.run("new/again", "new", "tool", "word-python", "--lang", "python")
    group.run("new/bad-name", "new", "tool", "Word Count", "--lang", "python")
    module = str(group.place.workspace / "tool-word-python")
    group.run("validate/python", "validate", module)
    group.run("validate/python-json", "validate", module, "--json")
    group.run("validate/no-calls", "validate", module, "--no-calls")
    group.run("validate/absent", "validate", "absent")
    group.run("validate/no-module", "validate", "src")
    group.place.write("bad.py", "async def mount(coordinator, config):\n    raise ValueError('no mount today')\n")
    group.run("validate/mount-raises", "validate", "bad.py")
    plan = f"{module}/plan.yaml"
    group.run("modules/tools-of-plan", "tools", "word", "--json", "--mount-plan", plan)
    words = ["call", "word_python", "text=one two two", "--mount-plan", plan, "--mode", "bypass", "--json"]
    group.run("modules/call", *words)
    group.run("modules/list", "modules", "list", "--mount-plan", plan)


def _files(folder):
    """Every file of a folder with its content, as one text."""
    pages = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            pages.append(f"=== {path.relative_to(folder)}\n{path.read_text(encoding='utf-8')}")
    return "\n".join(pages)
