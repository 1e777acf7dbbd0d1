"""Processes in sessions of their own, children in the background, and much noise."""

import asyncio
import os
import signal
import sys

from amplifier_core import ToolResult


class Shell:
    name = "shell"
    description = "Runs a command"
    input_schema = {
        "type": "object",
        "properties": {"command": {"type": "string"}, "run_in_background": {"type": "boolean"}},
        "required": ["command"],
    }

    async def execute(self, input):
        background = input.get("run_in_background", False)
        out = asyncio.subprocess.DEVNULL if background else asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "/bin/bash", "-c", input["command"], stdout=out, stderr=out, start_new_session=True
        )
        if background:
            return ToolResult(output={"pid": process.pid, "message": "started"})
        stdout, stderr = await process.communicate()
        output = {"stdout": stdout.decode(), "stderr": stderr.decode(), "returncode": process.returncode}
        return ToolResult(success=process.returncode == 0, output=output)


class Noise:
    name = "noise"
    description = "Prints on every way there is, and lets a child read what it likes"

    async def execute(self, input):
        print("printed by python")
        sys.stderr.write("complained by python\n")
        os.write(1, b"written past python\n")
        process = await asyncio.create_subprocess_exec("head", "-n", "3")
        await process.wait()
        await (await asyncio.create_subprocess_exec("echo", "said by a child")).wait()
        return ToolResult(output=f"child ended with {process.returncode}")


class Shielded:
    name = "shielded"
    description = "Starts a child that hears no polite word, and hears none itself"

    async def execute(self, input):
        mark = input["mark"]
        ignore = f"trap '' TERM INT HUP; (trap '' TERM; setsid sleep {mark}) & sleep {mark}"
        process = await asyncio.create_subprocess_exec("/bin/bash", "-c", ignore, start_new_session=True)
        try:
            await process.wait()
        except asyncio.CancelledError:
            os.kill(process.pid, signal.SIGTERM)
            raise
        return ToolResult(output="never")


class Daemon:
    name = "daemon"
    description = "Leaves an orphan without a name behind, and waits"

    async def execute(self, input):
        mark = input["mark"]
        command = f"env -i setsid setsid sh -c 'sleep {mark} & exit' & sleep {mark}"
        process = await asyncio.create_subprocess_exec("/bin/bash", "-c", command, start_new_session=True)
        await process.wait()
        return ToolResult(output="never")


async def mount(coordinator, config=None):
    for tool in (Shell(), Noise(), Shielded(), Daemon()):
        await coordinator.mount("tools", tool, name=tool.name)
