"""Calls that are watched. The cards on a terminal are drawn again and again: crates/toolpost/tests/terminal watches them."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

NOTES = "# Notes\n\nThe lathe holds the work.\nThe toolpost holds the tool.\n"
LIST = "sleep 1\ntoolpost call list_directory"

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"notes.md": NOTES}, host="", setup="printf x > ~/token")},
    blocks={
        "toolpost watch\n✓": BlockStage(reason="cards on a terminal change with the clock; tests/terminal draws them"),
        "toolpost watch http": BlockStage(
            skip={"toolpost watch https": "needs another host"},
            waits=("toolpost watch",),
            setup="cp ~/.local/state/toolpost/*/token ~/token",
            learn={
                "01a1e569-25f0-7047-a39c-ffa7689c21c5": (
                    """curl http://127.0.0.1:8765/sessions -H "Authorization: Bearer $(cat ~/token)" --json '{}'"""
                    """ | cut -d'"' -f4"""
                )
            },
        ),
        "toolpost watch | tee": BlockStage(
            waits=("toolpost watch",),
            meanwhile=LIST + "\ntoolpost call write_file path=/etc/motd content=hello || true",
        ),
        "toolpost watch --json": BlockStage(waits=("toolpost watch",), meanwhile=LIST),
    },
)
