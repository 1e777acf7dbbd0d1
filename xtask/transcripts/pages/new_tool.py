"""A new tool in Python, from its first line to its first call, and a module with faults."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

USER_CONFIG = {"~/.config/toolpost/toolpost.yaml": "amplifier: { core: stand_in, install: offline }\n"}
HELLO = '''\
import logging
from amplifier_core import ToolResult

class Hello:
    name, description = "hello", "Says hello to somebody."
    async def execute(self, input):
        print("on the way")
        if not isinstance(input.get("name", ""), str):
            return ToolResult(success=False, error={"message": "`name` is a text"})
        logging.getLogger(__name__).info("hello")
        return {"hello": input.get("name")}

    input_schema = {"type": "object", "properties": {"name": {"type": "string"}}}


async def mount(coordinator, config):
    await coordinator.mount("tools", Hello(), name="hello")
'''

STAGE = PageStage(
    places={
        MAIN: PlaceStage(folder="", files=USER_CONFIG),
        "hello": PlaceStage(
            files=USER_CONFIG
            | {
                "tool-hello/amplifier_module_tool_hello/__init__.py": HELLO,
            },
        ),
    },
    blocks={
        "toolpost serve --mount-plan": BlockStage(before={"toolpost serve": "cd tool-word-count"}),
        "toolpost validate PATH": BlockStage(reason="the form of the command"),
        "toolpost validate tool-hello": BlockStage(place="hello"),
    },
)
