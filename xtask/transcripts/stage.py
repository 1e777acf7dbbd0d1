"""What a page needs so that its commands can run: the vocabulary of `pages/*.py`."""

from dataclasses import dataclass, field

# The place of blocks that name no other.
MAIN = "main"
# The terminal of `toolpost serve`, and the one of all other commands.
HOST_TERMINAL, SHELL = "host", "shell"


@dataclass(frozen=True)
class PlaceStage:
    """A home folder with a workspace, and a host in it."""

    # Files by their path in the workspace; `~/name` is in the home folder.
    files: dict[str, str] = field(default_factory=dict)
    # Where terminals begin, below the home folder. Nothing begins in the clone.
    folder: str | None = "project"
    # Bash that prepares the place before its host starts.
    setup: str = ""
    # The arguments of a host that runs beside the page's commands; nothing if the page starts its own or needs none.
    host: str | None = None
    # Bash that every terminal begins with, such as variables that the page takes for granted.
    prelude: str = ""


@dataclass(frozen=True)
class BlockStage:
    """How one block runs, if not as a plain sequence of commands in the main place."""

    place: str = MAIN
    # All commands of the block run in this terminal, hosts too.
    terminal: str = ""
    # Bash that runs before the block in a terminal of its own, such as a call that has to wait for an operator.
    setup: str = ""
    # Ids that the block's commands show for the first time: the shown id and the bash that prints the real one.
    learn: dict[str, str] = field(default_factory=dict)
    # Bash that runs before a command, in the terminal of the block: by the beginning of the command.
    before: dict[str, str] = field(default_factory=dict)
    # The block is the text of this file.
    saves: str = ""
    # The beginnings of commands that later blocks act on: their outputs are compared when they have ended.
    late: tuple[str, ...] = ()
    # The beginnings of commands that wait: they go on beside the later ones. `continues` names one for its rest.
    waits: tuple[str, ...] = ()
    # The beginnings of commands that serve, beside `toolpost serve`.
    serves: tuple[str, ...] = ()
    # Texts that a command in the background prints before the next command runs: by the beginning of the command.
    awaits: dict[str, str] = field(default_factory=dict)
    # Bash that runs once the commands that wait have begun.
    meanwhile: str = ""
    # For a block without commands: it shows the rest of this command.
    continues: str = ""
    # For a block without commands: it shows what the host printed since.
    watches: bool = False
    # What a person types there, once the prompt is on the screen.
    prompt: str = ""
    types: str = ""
    # The beginnings of commands that do not run, with the reason.
    skip: dict[str, str] = field(default_factory=dict)
    # Why nothing of the block runs.
    reason: str = ""
    # Bash that runs after the block.
    cleanup: str = ""


@dataclass(frozen=True)
class PageStage:
    places: dict[str, PlaceStage] = field(default_factory=lambda: {MAIN: PlaceStage()})
    # By the beginning of a block. Blocks of other languages than `console` run only if they are named here.
    blocks: dict[str, BlockStage] = field(default_factory=dict)
    # Whether a person sits at the terminal of the host, so that it asks there.
    person: bool = False
    # Ports of the page, beside that of the host; each is replaced by a free one.
    ports: tuple[int, ...] = ()
    # Programs that the page needs beside bash and curl.
    programs: tuple[str, ...] = ()
