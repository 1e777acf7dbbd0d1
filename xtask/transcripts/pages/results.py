"""A failure, and two large results that are kept."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

LOG = "python3 -c 'print(*[f\"line {n} of a long log\" for n in range(4001)], sep=\"\\n\", end=\"\")'"
NEWEST = "toolpost artifacts list -n 1 | cut -d_ -f2"

STAGE = PageStage(
    places={
        MAIN: PlaceStage(files={"notes.md": "# Notes\none\ntwo\none\n"}),
        "served": PlaceStage(
            host="--allow shell",
            prelude="""\
URL=http://127.0.0.1:8765
AUTH="Authorization: Bearer $(cat ~/.local/state/toolpost/*/token)"
""",
        ),
    },
    blocks={
        "curl -i": BlockStage(
            place="served",
            setup="""\
curl $URL/tools/shell/call -H "$AUTH" --json '{"command":"seq -f \\"line %.0f of a long log\\" 0 4000"}' >/dev/null
""",
            learn={"01a1f22590d571cdb81b50b283494b68": NEWEST},
        ),
        "toolpost artifacts list": BlockStage(
            place="served",
            setup=f'toolpost call echo "message=$({LOG})" >/dev/null',
        ),
    },
)
