"""Ends its process while it is mounted: the first time, or a later one."""

import os

from amplifier_core import ToolResult


class Fragile:
    name = "fragile"
    description = "Is there"

    async def execute(self, input):
        return ToolResult(output="there")


async def mount(coordinator, config=None):
    if (config or {}).get("die", True):
        os._exit(7)
    await coordinator.mount("tools", Fragile(), name="fragile")
