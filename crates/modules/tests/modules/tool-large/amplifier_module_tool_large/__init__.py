"""Results that are too large in every way."""

from amplifier_core import ToolResult


class Large:
    name = "large"
    description = "A large result"

    async def execute(self, input):
        text = "x" * 200_000
        if input["what"] == "failed":
            return ToolResult(success=False, output=text, error={"message": "short"})
        if input["what"] == "image":
            source = {"type": "base64", "media_type": "image/png", "data": text}
            return {"success": True, "output": None, "content": [{"type": "image", "source": source}]}
        return ToolResult(output=text)


class Odd:
    description = "With a schema that means nothing"
    input_schema = {"type": "object", "properties": "nope"}

    def __init__(self, name):
        self.name = name

    async def execute(self, input):
        return None


async def mount(coordinator, config=None):
    for tool in (Large(), Odd("odd_a"), Odd("odd_b"), Odd("odd_c")):
        await coordinator.mount("tools", tool, name=tool.name)
