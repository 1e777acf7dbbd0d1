"""A command in a folder with a version history."""

from stage import MAIN, PageStage, PlaceStage

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={"hello.txt": "hello\n", "new.md": "# New\n"},
            setup="git init -q .",
        ),
    },
    programs=("git",),
)
