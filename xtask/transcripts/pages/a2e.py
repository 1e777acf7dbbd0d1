"""Calls of an A2E agent over HTTP and pipes."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"notes.md": "# Notes\nbuy milk\n"}, host="")},
    blocks={
        "URL=": BlockStage(awaits={"curl -sN $URL/stream": ": still here"}),
        ": still here": BlockStage(continues="curl -sN $URL/stream"),
        "toolpost serve --a2e-config": BlockStage(reason="needs A2E's Python SDK; tests/it/a2e_plugins.rs loads plugins"),
    },
)
