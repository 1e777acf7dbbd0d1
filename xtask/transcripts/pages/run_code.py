"""Code that reads two files."""

from stage import MAIN, PageStage, PlaceStage

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"notes.txt": "one\n", "w.yaml": "word: " * 22 + "\n"})},
)
