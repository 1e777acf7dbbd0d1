"""The example of hooks."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

STAGE = PageStage(
    places={MAIN: PlaceStage(setup='mkdir examples generated && cp -r "$CLONE/examples/hooks" examples/')},
    blocks={
        "python3 -c": BlockStage(
            setup="toolpost call --config examples/hooks/toolpost.yaml read_file path=notes.txt",
        ),
    },
)
