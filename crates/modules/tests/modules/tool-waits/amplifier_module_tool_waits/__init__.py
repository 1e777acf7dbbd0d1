"""A module that needs another one which the plan has after it: to be imported, then to be mounted."""

import sys
import time

while "amplifier_module_tool_follows" not in sys.modules:
    time.sleep(0.01)


class Named:
    description = "Says whose it is"

    def __init__(self, name):
        self.name = name

    async def execute(self, input):
        return "of tool-waits"


async def mount(coordinator, config=None):
    while coordinator.get_capability("follower.mounted") is None:
        time.sleep(0.01)
    for name in ("waits", "wanted_by_both"):
        await coordinator.mount("tools", Named(name), name=name)
