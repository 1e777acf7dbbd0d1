"""Decisions without a host, in a project with a version history."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

NEEDS_OPA = "needs `opa`, or another engine for Rego"
AUTHORITY = """\
rules:
  - delegate opa shell(git push *)
authorities:
  opa: { url: "http://127.0.0.1:8181/v1/data/toolpost/decision", timeout: 2s }
"""

STAGE = PageStage(
    places={
        MAIN: PlaceStage(files={"../trusted.yaml": AUTHORITY}, setup="git init -q . && mkdir src"),
        "untrusted": PlaceStage(
            files={
                "toolpost.yaml": (
                    "mode: edits\nrules:\n  - allow write_file\n"
                    '  - { rule: deny echo, reason: "not in this project" }\n'
                ),
            },
        ),
        "hooks": PlaceStage(
            setup="""\
mkdir examples generated && cp -r "$CLONE/examples/hooks" examples/
toolpost call --config examples/hooks/toolpost.yaml write_file path=generated/a.txt content=x || true
""",
        ),
    },
    ports=(8181,),
    blocks={
        "cat toolpost.yaml": BlockStage(place="untrusted"),
        "toolpost explain 01a1f221-d4ed": BlockStage(
            place="hooks",
            learn={
                "01a1f221-d4ed-7395-8d2d-7b201ae13b17": (
                    "toolpost journal search --tool write_file --json -n 1"
                    """ | grep -o '"invocation_id":"[^"]*"' | head -n 1 | cut -d'"' -f4"""
                )
            },
        ),
        "toolpost call shell command='git push' --config": BlockStage(
            # It listens and never answers.
            setup="""\
python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 8181)); time.sleep(600)' &
until (exec 7<>/dev/tcp/127.0.0.1/8181) 2>/dev/null; do sleep 0.1; done
""",
        ),
        "opa run": BlockStage(reason=NEEDS_OPA),
        "curl -X PUT": BlockStage(reason=NEEDS_OPA),
    },
)
