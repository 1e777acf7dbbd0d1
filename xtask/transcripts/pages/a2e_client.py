"""One call each on other A2E hosts."""

from stage import MAIN, PageStage, PlaceStage

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={"notes.md": "# Notes\n\nThe lathe holds the work.\n", "ws/notes.md": ""},
            host="",
            prelude="cp ~/.local/state/toolpost/*/token ~/token; TOKEN=$(cat ~/token)",
        ),
    },
)
