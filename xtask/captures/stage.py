"""A host with everything around it: rules, hooks, an authority, an MCP server, a module, a command, a tenant."""

import os
import shutil
from hashlib import sha256
from pathlib import Path

from peer import poll

FIXTURES = Path(__file__).parent / "fixtures"
SECRET = "a-secret-of-the-host-s-environment"
TENANT_TOKEN, OPERATOR_TOKEN = "the token of ci", "the token of olga"

CONFIG = f"""\
mode: default
rules:
  - deny read_file(secret.txt)
  - ask write_file(.ask/**)
  - deny shell(rm *)
  - allow shell(sleep *)
  - allow shell(seq *)
  - allow shell(touch *)
  - {{ rule: allow shell, principal: ci }}
  - allow demo.*
  - allow tool-note.*
  - delegate desk write_file(desk/**)
  - delegate closed write_file(closed/**)
authorities:
  desk: {{ command: [sh, ./desk.sh], timeout: 50s }}
  closed: {{ command: [sh, ./closed.sh], timeout: 50s }}
hooks:
  - {{ name: rename, event: before, tools: write_file, when: 'write_file(model.txt)', command: [sh, ./rename.sh], timeout: 50s }}
  - {{ name: voter, event: before, tools: echo, command: [sh, ./voter.sh], timeout: 50s }}
  - {{ name: withholder, event: after, tools: echo, command: [sh, ./withholder.sh], timeout: 50s }}
tools:
  write_file: {{ defaults: {{ create_directories: true }} }}
  file_info: {{ deferred: true }}
  demo.read_preview: {{ max_inline_chars: 1000 }}
  demo.read_ref: {{ keep: ref_only }}
  demo.read_redact: {{ keep: redact }}
  demo.read_drop: {{ max_inline_chars: 1000, keep: drop }}
mcp:
  approval_wait: 1s
  servers:
    demo: {{ command: python3, args: [./mcp_server.py] }}
commands:
  count_words:
    description: Counts the words of a file.
    argv: [wc, -w, "{{path}}"]
    parameters: {{ path: {{ type: path }} }}
    class: read
tokens:
  - {{ name: ci, tenant: acme, sha256: "{sha256(TENANT_TOKEN.encode()).hexdigest()}" }}
  - {{ name: olga, role: operator, sha256: "{sha256(OPERATOR_TOKEN.encode()).hexdigest()}" }}
include: [plan.yaml]
amplifier: {{ core: stand_in, install: offline }}
"""

PROGRAMS = {
    "desk.sh": """echo '{"decision":"allow","reason":"the desk is open"}'""",
    "closed.sh": """echo '{"decision":"deny","reason":"the desk is closed"}'""",
    "rename.sh": (
        """sed 's/.*"content": *"\\([^"]*\\)".*/{"arguments":{"path":"model.txt","content":"by-hook","""
        """"create_directories":true},"reason":"one name for all"}/'"""
    ),
    "voter.sh": (
        """read -r call; case "$call" in *"vote no"*) echo '{"decision":"deny","reason":"the voter says no"}';; esac"""
    ),
    "withholder.sh": (
        """read -r call; case "$call" in *"keep this"*) """
        """echo '{"continue":false,"reason":"not for the model"}';; esac"""
    ),
}


def prepare(place):
    """Writes the configuration, its programs and the workspace."""
    for name, text in PROGRAMS.items():
        place.write(f"../{name}", text + "\n")
    shutil.copy(FIXTURES / "mcp_server.py", place.folder / "mcp_server.py")
    shutil.copytree(FIXTURES / "tool-note", place.folder / "tool-note")
    place.write("../plan.yaml", "tools:\n  - { module: tool-note, source: ./tool-note }\n")
    place.configure(CONFIG)
    place.variables = {"DEMO_TOKEN": SECRET}
    place.write("notes.txt", "one two three\n")
    place.write("secret.txt", "the text of a denied file\n")
    place.write("large.txt", "".join(f"line {number} of a large file\n" for number in range(3000)))
    (place.workspace / "hollow").mkdir()


def write_long_search(place):
    """Far more text than a search reads before its deadline, on no more disk than one file needs."""
    first = place.write("many/0000.txt", "some words without an end \n" * 40_000)
    for number in range(1, 3000):
        os.link(first, first.with_name(f"{number:04}.txt"))


def serve(place, *words):
    """Starts the host and waits until its MCP server is ready."""
    host = place.serve(*words)
    operator = host.operator
    # A server whose tools are known from an earlier start is `idle` until its first call.
    ready = lambda: all(one.get("state") in ("ready", "idle") for one in operator.json("GET", "/sources").get("sources", []))
    try:
        poll(ready, "the MCP server is ready", 10)
    except TimeoutError as late:
        raise TimeoutError(f"{late}: {operator.json('GET', '/sources')}") from None
    return host
