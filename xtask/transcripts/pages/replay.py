"""A session of a small agent, recorded and served again."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

AGENT = """\
import os, urllib.request

request = urllib.request.Request(
    os.environ["TOOLPOST_URL"] + "/tools/read_file/call",
    b'{"path":"notes.md"}',
    {"Authorization": "Bearer " + os.environ["TOOLPOST_TOKEN"], "Content-Type": "application/json"},
)
urllib.request.urlopen(request).read()
"""

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"my_agent.py": AGENT, "notes.md": "# Notes\n"})},
    blocks={
        "toolpost capture": BlockStage(serves=("toolpost journal replay session.json",)),
        "toolpost journal replay last": BlockStage(
            setup="toolpost call read_file path=notes.md",
            serves=("toolpost journal replay last",),
            # The session of the command line.
            learn={"01a1e178-8bea-76ab-b7f3-8ce1209dbf75": "echo default:operator:local"},
        ),
    },
)
