"""Uses the doubles of `amplifier_core.testing`, and contributes the name of an event."""

from amplifier_core import ToolResult
from amplifier_core.testing import MockCoordinator, MockTool


class UseKit:
    name = "use_kit"
    description = "Uses the test kit."
    input_schema = {"type": "object"}

    async def execute(self, input):
        coordinator, tool = MockCoordinator(), MockTool(name="test_tool", output="mock result")
        await coordinator.mount("tools", tool, name="test_tool")
        result = await coordinator.get("tools", "test_tool").execute({})
        assert result.success and result.error is None
        output = {
            "calls": tool.call_count,
            "output": result.output,
            "mounted": [each["name"] for each in coordinator.mount_history],
            "session": coordinator.session_id,
        }
        return ToolResult(success=True, output=output)


class Emit:
    name = "emit"
    description = "Emits an event of any name."
    input_schema = {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "object"}}}

    def __init__(self, coordinator):
        self.coordinator = coordinator

    async def execute(self, input):
        await self.coordinator.hooks.emit(input["event"], input["data"])
        return "emitted"


async def mount(coordinator, config=None):
    coordinator.register_contributor("observability.events", "tool-kit", lambda: ["kit:used"])
    await coordinator.mount("tools", UseKit(), name="use_kit")
    await coordinator.mount("tools", Emit(coordinator), name="emit")
