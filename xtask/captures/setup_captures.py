"""Configurations, good and bad, the trust in a workspace's own file, and `doctor`."""

GOOD = """\
mode: edits
rules:
  - allow shell(cargo test *)
  - { rule: deny read_file(secret.txt), reason: it is secret }
limits: { deadline: 30s, concurrency: 8 }
tools:
  write_file: { defaults: { create_directories: true } }
  glob: { deferred: true }
http: { patience: 5s }
approvals: { timeout: 2m }
"""

BAD = {
    "unknown-key": "mode: default\nrulse: []\n",
    "unknown-inner-key": "limits: { deadlin: 3s }\n",
    "wrong-type": "limits: 7\n",
    "wrong-type-of-list": "rules: allow shell\n",
    "out-of-range": "limits: { concurrency: 0 }\n",
    "out-of-range-large": "limits: { concurrency: 99999999999 }\n",
    "bad-duration": "limits: { deadline: soon }\n",
    "bad-size": "limits: { journal: many }\n",
    "bad-mode": "mode: yolo\n",
    "bad-rule": "rules: ['allow shell(']\n",
    "bad-class": "rules: ['allow class:odd']\n",
    "bad-address": "http: { listen: nowhere }\n",
    "not-yaml": "mode: [default\n",
    "not-a-mapping": "- mode\n",
    "duplicate-key": "mode: default\nmode: edits\n",
    "several": "mod: default\nlimits: { deadline: soon, queue: -1 }\n",
    "token-in-the-clear": "tokens: [{ name: ci, token: abcdef }]\n",
    "bad-token-hash": "tokens: [{ name: ci, sha256: abc }]\n",
    "bad-command": "commands: { c: { argv: [] } }\n",
    "bad-command-parameter": (
        "commands: { c: { description: d, argv: [wc, '{path}'], parameters: { path: { type: odd } } } }\n"
    ),
    "command-without-parameter": "commands: { c: { description: d, argv: [wc, '{path}'] } }\n",
    "bad-hook": "hooks: [{ name: h, event: sometimes, command: [sh] }]\n",
    "unknown-authority": "rules: ['delegate nobody shell']\n",
    "setting-of-unknown-tool": "tools: { no_such_tool: { deferred: true } }\n",
    "retention-over-limit": "limits: { journal: 1GiB }\nretention: { journal: { size: 2GiB } }\n",
    "missing-include": "include: [absent.yaml]\n",
    "bad-mcp-server": "mcp: { servers: { demo: { args: [x] } } }\n",
    "bad-sandbox": "sandbox: { profile: soft }\n",
    "empty": "",
}


def capture(group):
    place = group.place
    place.write("notes.txt", "one\n")
    group.run("doctor/fresh", "doctor")
    group.run("doctor/fresh-json", "doctor", "--json")
    place.write("../good.yaml", GOOD)
    for command in (["doctor"], ["doctor", "--json"], ["tools", "--json"], ["explain", "glob", "pattern=*"]):
        name = "-".join(word.strip("-") for word in command[:2])
        group.run(f"good/{name}", *command, "--config", "../good.yaml")
    for name, text in BAD.items():
        place.write(f"../{name}.yaml", text)
        group.run(f"bad/{name}", "tools", "--limit", "1", "--config", f"../{name}.yaml")
        group.run(f"bad/{name}-doctor", "doctor", "--config", f"../{name}.yaml")
    place.write("../retries.yaml", "tools: { read_file: { retries: 2 } }\n")
    group.run("retries/doctor", "doctor", "--config", "../retries.yaml")
    group.run("retries/explain", "explain", "read_file", "path=notes.txt", "--config", "../retries.yaml")
    group.run("bad/absent-file", "tools", "--config", "../none.yaml")
    _trust(group)
    _policy(group)


def _trust(group):
    """A workspace's own file counts in part until the operator trusts it."""
    group.run("trust/nothing", "trust")
    group.place.write("toolpost.yaml", "mode: bypass\nrules:\n  - allow shell\n  - deny read_file(secret.txt)\n")
    call = ["call", "write_file", "path=x", "content=y", "--no-prompt"]
    group.run("trust/untrusted-doctor", "doctor")
    group.run("trust/untrusted-call", *call)
    group.run("trust/untrusted-explain", "explain", "shell", "command=ls > x", "--json")
    group.run("trust/trust", "trust")
    group.run("trust/again", "trust")
    group.run("trust/list", "trust", "--list")
    group.run("trust/trusted-call", *call)
    group.run("trust/trusted-doctor", "doctor")
    group.place.write("toolpost.yaml", "mode: bypass\n")
    group.run("trust/changed-call", *call)
    group.run("trust/forget", "trust", "--forget")
    (group.place.workspace / "toolpost.yaml").unlink()


def _policy(group):
    group.place.write("../policy.yaml", "rules:\n  - deny shell(rm *)\nmode: default\n")
    group.run("policy/doctor", "doctor", "--policy", "../policy.yaml")
    words = ["shell", "command=rm x", "--mode", "bypass", "--policy", "../policy.yaml"]
    group.run("policy/explain", "explain", *words)
    group.run("policy/call-json", "call", *words, "--json", "--no-prompt")
