"""Goes beyond what a module should have, and wants to end more than itself."""

import asyncio
import os
import pathlib
import subprocess
import sys


class Unruly:
    """One tool for each name."""

    description = "Goes too far"
    input_schema = {"type": "object"}

    def __init__(self, coordinator, name):
        self.coordinator = coordinator
        self.name = name

    async def execute(self, input):
        return await getattr(self, self.name)(input)

    def place(self, name):
        return pathlib.Path(self.coordinator.get_capability("session.working_dir"), name)

    async def long_number(self, input):
        return {"number": 10**5000}

    async def endless(self, input):
        value = []
        value += [value, value]
        return {"value": value}

    async def perhaps(self, input):
        return {"success": input["success"], "output": "done", "error": None}

    async def flood(self, input):
        for number in range(input["count"]):
            await self.coordinator.hooks.emit("unruly:event", {"number": number})
        return "flooded"

    async def wander(self, input):
        before = os.getcwd()
        os.chdir("/")
        return before

    async def large_ask(self, input):
        call_tool = self.coordinator.get_capability("toolpost.call_tool")
        return await call_tool("wander", {"padding": "x" * (5 << 20)})

    async def large_capability(self, input):
        self.coordinator.register_capability("unruly.large", "x" * (300 << 10))
        return len(self.coordinator.get_capability("unruly.large"))

    async def emit(self, input):
        result = await self.coordinator.hooks.emit("unruly:asked", {"wish": input["wish"]})
        return str(result.action)

    async def sprout(self, input):
        """Mounts a tool, and ends when it is told to."""
        await self.coordinator.mount("tools", Unruly(self.coordinator, "wander"), name="grown_unruly")
        self.place("met-unruly").touch()
        while not self.place("go").exists():
            await asyncio.sleep(0.01)

    async def leave_behind(self, input):
        subprocess.Popen(["sleep", input["mark"]], start_new_session=True)


class Large(Unruly):
    """Too large for the list."""

    description = "é" * (10 << 10)
    input_schema = {"type": "object", "description": "x" * (300 << 10)}

    async def large(self, input):
        return "large"


async def mount(coordinator, config=None):
    for name, value in vars(Unruly).items():
        if asyncio.iscoroutinefunction(value) and name != "execute":
            await coordinator.mount("tools", Unruly(coordinator, name), name=name)
    await coordinator.mount("tools", Large(coordinator, "large"), name="large")
    working = coordinator.get_capability("session.working_dir")

    def farewell():
        pathlib.Path(working, "farewell").touch()

    async def cancel_itself():
        raise asyncio.CancelledError

    # Backwards: the last is the first.
    coordinator.register_cleanup(farewell)
    coordinator.register_cleanup(cancel_itself)
    coordinator.register_cleanup(lambda: sys.exit(5))
