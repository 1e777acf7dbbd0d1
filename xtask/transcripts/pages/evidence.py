"""An export of the calls of the hooks page."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

CALLS = """\
mkdir examples generated && cp -r "$CLONE/examples/hooks" examples/
call="toolpost call --config examples/hooks/toolpost.yaml"
$call write_file path=notes.txt content=hello
$call write_file path=generated/a.txt content=x || true
$call read_file path=notes.txt
"""

STAGE = PageStage(
    places={MAIN: PlaceStage(setup=CALLS)},
    programs=("jq",),
    blocks={
        "jq -c": BlockStage(setup="toolpost journal export --format jsonl -o record.jsonl"),
    },
)
