"""Calls of an A2A client."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"notes.md": "# Notes\nbuy milk\n"}, host="")},
    blocks={
        '{"jsonrpc":"2.0","id":1,"result"': BlockStage(continues="curl -s $URL/a2a"),
    },
)
