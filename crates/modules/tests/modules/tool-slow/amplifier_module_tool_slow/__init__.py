"""Takes its time to be mounted from the second time on, and tells of every mount."""

import asyncio

from amplifier_core import ToolResult

MOUNTS = []


class Slow:
    name = "slow"
    description = "How often it was mounted"

    def __init__(self, coordinator, at_mount):
        self.coordinator = coordinator
        self.at_mount = at_mount

    async def execute(self, input):
        now = self.coordinator.session_id
        return ToolResult(output={"mounts": len(MOUNTS), "at_mount": self.at_mount, "now": now})


class Remove:
    name = "remove"
    description = "Takes itself away, and a guard with it"

    def __init__(self, coordinator):
        self.coordinator = coordinator

    async def execute(self, input):
        if input.get("guard"):
            self.coordinator.hooks.unregister("guard")
        else:
            await self.coordinator.unmount("tools", "slow")
        return ToolResult(output="removed")


async def mount(coordinator, config=None):
    MOUNTS.append(1)
    if len(MOUNTS) > 1:
        await asyncio.sleep((config or {}).get("seconds", 0))
    await coordinator.mount("tools", Slow(coordinator, coordinator.session_id), name="slow")
    await coordinator.mount("tools", Remove(coordinator), name="remove")
