"""Commands on a machine of tier A."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

NO_NAMESPACES = "needs a machine without user namespaces"

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={"hello.txt": "hello\\n", "new.md": "# New\\n"},
            setup="git init -q . && git config user.name me && git config user.email me@example.org",
        ),
    },
    programs=("git",),
    blocks={
        "toolpost call shell command=id": BlockStage(reason=NO_NAMESPACES),
        "toolpost doctor                 ": BlockStage(reason=NO_NAMESPACES),
    },
)
