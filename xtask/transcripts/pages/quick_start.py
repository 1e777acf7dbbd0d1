"""The quick start, from an empty home folder: the operator in one terminal, the agent in a second one."""

from stage import HOST_TERMINAL, MAIN, BlockStage, PageStage, PlaceStage

STAGE = PageStage(
    # The page begins in the clone; the second terminal goes on in the copy.
    places={MAIN: PlaceStage(folder=None, prelude="[ ! -d ~/first-agent ] || cd ~/first-agent")},
    person=True,
    ports=(8000, 8001),
    blocks={
        "cargo build": BlockStage(
            terminal=HOST_TERMINAL,
            skip={"cargo build": "the binary is given", "export PATH": "the binary's folder is on the path"},
        ),
        "toolpost call write_file": BlockStage(waits=("toolpost call write_file",)),
        "approval needed": BlockStage(watches=True, prompt="? help] ", types="y\n"),
        "wrote 5 bytes": BlockStage(continues="toolpost call write_file"),
        "python3 -m http.server": BlockStage(),
    },
)
