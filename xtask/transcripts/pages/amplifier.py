"""Plans: one of two modules, others whose names are taken, whose modules are missing, or come from git."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

# No part of Amplifier is fetched.
USER_CONFIG = {"~/.config/toolpost/toolpost.yaml": "amplifier: { core: stand_in, install: offline }\n"}


def tool_module(package, tool, text):
    return f"""\
from amplifier_core import ToolResult

class Tool:
    name = "{tool}"
    description = "Answers."
    input_schema = {{"type": "object", "properties": {{"name": {{"type": "string"}}, "path": {{"type": "string"}}}}}}

    def __init__(self, config):
        self.config = config

    async def execute(self, input):
        return ToolResult(success=True, output=f"{text}")

async def mount(coordinator, config):
    await coordinator.mount("tools", Tool(config or {{}}), name="{tool}")
"""


GREET = tool_module("greet", "greet", "{self.config.get('greeting', 'Hello')}, {input['name']}!")
AUDIT = """\
from amplifier_core import HookResult

async def mount(coordinator, config):
    async def look(event, data):
        return HookResult(action="continue")
    coordinator.hooks.register("tool:pre", look, priority=0, name="audit")
"""
GREET_FILE = "greet/amplifier_module_tool_greet/__init__.py"

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            folder="work",
            files=USER_CONFIG | {GREET_FILE: GREET, "audit/amplifier_module_hooks_audit/__init__.py": AUDIT},
        ),
        "names": PlaceStage(
            folder="work",
            files=USER_CONFIG
            | {
                "plan.yaml": "tools:\n  - { module: tool-files, source: ./files }\n",
                "files/amplifier_module_tool_files/__init__.py": tool_module("files", "read_file", "read"),
            },
        ),
        "missing": PlaceStage(
            folder="work",
            files=USER_CONFIG
            | {
                "plan.yaml": (
                    "tools:\n  - { module: tool-greet, source: ./greet }\n  - { module: tool-gone, source: ./gone }\n"
                ),
                GREET_FILE: GREET,
            },
        ),
        "hook": PlaceStage(
            folder="work",
            files=USER_CONFIG | {"plan.yaml": "hooks:\n  - { module: hooks-gone, source: ./hgone }\n"},
        ),
        "git": PlaceStage(
            folder="work",
            files=USER_CONFIG
            | {
                "plan.yaml": (
                    "tools:\n  - module: tool-hello\n"
                    '    source: "git+file:///srv/modules@main#subdirectory=tool-hello"\n'
                ),
                "~/../srv/modules/tool-hello/amplifier_module_tool_hello/__init__.py": (
                    tool_module("hello", "hello", "hello")
                ),
            },
            # The commit is named by its content and these.
            setup="""\
cd "$HOME/../srv/modules"
export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
git init -q -b main . && git add .
git -c user.name=me -c user.email=me@example.org commit -qm hello
""",
        ),
    },
    programs=("git",),
    blocks={
        "# plan.yaml": BlockStage(saves="plan.yaml"),
        "toolpost tools --mount-plan plan.yaml\n": BlockStage(place="names"),
        "toolpost tools --mount-plan plan.yaml --replace": BlockStage(place="names"),
        "toolpost modules list --mount-plan plan.yaml\ntool-greet": BlockStage(place="missing"),
        "toolpost call --mount-plan plan.yaml echo": BlockStage(place="hook"),
        "toolpost modules list --mount-plan plan.yaml\ntool-hello": BlockStage(place="git"),
    },
)
