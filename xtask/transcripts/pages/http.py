"""Requests to a host whose agent may run `make`, with a token of an operator beside the host's own."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

CONFIG = """\
rules: [allow shell(make *), allow shell(sleep *)]
tokens:
  - { name: olga, role: operator, sha256: HASH }
"""
LONG_CALL = "01a1f22c-9635-7593-93ee-16055d92b769"

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={
                "toolpost.yaml": CONFIG,
                "notes.md": "# Notes\n\nThe lathe holds the work.\nThe toolpost holds the tool.\n",
                "notes.txt": "one two three\n",
                "Makefile": "all:\n\t@echo made\n",
            },
            setup="""\
sed -i "s/HASH/$(printf the-token-of-olga | sha256sum | cut -d' ' -f1)/" toolpost.yaml
toolpost trust
""",
            host="",
            prelude="""\
URL=http://127.0.0.1:8765
AUTH="Authorization: Bearer $(cat ~/.local/state/toolpost/*/token)"
OPERATOR_TOKEN=the-token-of-olga
""",
        ),
    },
    blocks={
        # It ends when the next block cancels it.
        "curl -N": BlockStage(late=("curl -N",)),
        f'curl -H "$AUTH" $URL/invocations/{LONG_CALL}\n': BlockStage(
            learn={
                LONG_CALL: """
until curl $URL/health | grep -q '"running":1,'; do sleep 0.1; done
toolpost journal tail -n 1 | grep -o '[0-9a-f]\\{8\\}-[0-9a-f-]\\{27\\}'"""
            },
        ),
        'curl -i -H "$AUTH" -H \'Idempotency-Key: k7\'': BlockStage(),
        'curl -H "$AUTH" -H "Toolpost-Session': BlockStage(
            before={
                'curl -H "$AUTH" -H "Toolpost-Session: $S" $URL/tools/file_info/call': (
                    """[ -n "$S" ] || S=$(curl -H "$AUTH" $URL/sessions --json '{}' | cut -d'"' -f4)"""
                )
            },
        ),
    },
)
