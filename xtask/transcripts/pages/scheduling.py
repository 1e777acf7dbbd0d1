"""A write into a folder with a version history."""

from stage import MAIN, PageStage, PlaceStage

STAGE = PageStage(places={MAIN: PlaceStage(setup="git init -q .")}, programs=("git",))
