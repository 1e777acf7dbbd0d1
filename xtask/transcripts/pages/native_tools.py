"""The tools, called without a host."""

from stage import MAIN, PageStage, PlaceStage

STAGE = PageStage(places={MAIN: PlaceStage(files={"notes.md": "# Notes\none\ntwo\none\n"})})
