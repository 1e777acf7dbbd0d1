"""Mistakes in a configuration. The examples of the page are checked by tests of the crate `toolpost-config`."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

WRONG_PARAMETER = """\
commands:
  count_words:
    description: Counts the words of a file.
    argv: [wc, -w, "{pth}"]
    parameters:
      path: { type: path }
"""

STAGE = PageStage(
    places={
        MAIN: PlaceStage(files={"toolpost.yaml": "mode: edit\nlimts:\n  concurrency: 16\n"}),
        "command": PlaceStage(files={"toolpost.yaml": WRONG_PARAMETER}),
    },
    blocks={
        "toolpost tools\nerror: `{pth}`": BlockStage(place="command"),
    },
)
