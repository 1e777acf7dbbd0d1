"""Three tools in one module, mounted without a return value, as file tools are."""

from pathlib import Path

import amplifier_core
from amplifier_core import ModuleCoordinator, ToolResult
from amplifier_core.events import ARTIFACT_READ, ARTIFACT_WRITE

MOUNTS = 0


class Desk:
    def __init__(self, coordinator, config):
        self.coordinator = coordinator
        self.folder = Path(config.get("working_dir") or coordinator.get_capability("session.working_dir") or ".")

    def place(self, name):
        return self.folder / name.strip()


class ReadNote(Desk):
    name = "read_note"
    description = "Reads a note"
    input_schema = {
        "type": "object",
        "properties": {"file_path": {"type": "string"}, "offset": {"type": "integer"}},
        "required": ["file_path"],
    }

    async def execute(self, input):
        place = self.place(input["file_path"])
        if not place.exists():
            message = f"Path not found: {place.name}"
            return ToolResult(success=False, output=message, error={"message": message})
        text = place.read_text()
        await self.coordinator.hooks.emit(ARTIFACT_READ, {"path": place.name, "bytes": len(text)})
        return ToolResult(success=True, output={"file_path": place.name, "content": text, "a_last": 1})


class WriteNote(Desk):
    name = "write_note"
    description = "Writes a note"
    input_schema = {"type": "object", "properties": {"file_path": {}, "content": {"type": "string"}}}

    async def execute(self, input):
        place = self.place(input["file_path"])
        place.write_text(input.get("content", ""))
        await self.coordinator.hooks.emit(ARTIFACT_WRITE, {"path": place.name, "bytes": 1})
        return ToolResult(output={"file_path": place.name})


class CountMounts(Desk):
    name = "count_mounts"
    description = "How often the module was mounted in this process, and for whom"

    async def execute(self, input):
        state = self.coordinator.session_state
        state["calls"] = state.get("calls", 0) + 1
        return {"mounts": MOUNTS, "session": self.coordinator.session_id, "calls": state["calls"]}


class WhichCore(Desk):
    name = "which_core"
    description = "Whether this is the real package"

    async def execute(self, input):
        return {"real": not hasattr(amplifier_core, "__toolpost_stand_in__")}


async def mount(coordinator: ModuleCoordinator, config: dict | None = None):
    global MOUNTS
    MOUNTS += 1
    config = config or {}
    for kind in (ReadNote, WriteNote, CountMounts, WhichCore):
        tool = kind(coordinator, config)
        await coordinator.mount("tools", tool, name=tool.name)
