"""Single commands without a host, and `doctor` beside one."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

FILES = {"notes.md": "# Notes\n\nThe lathe holds the work.\nThe toolpost holds the tool.\n"}

STAGE = PageStage(
    places={MAIN: PlaceStage(files=FILES), "served": PlaceStage(files=FILES, host="")},
    blocks={"toolpost doctor": BlockStage(place="served")},
)
