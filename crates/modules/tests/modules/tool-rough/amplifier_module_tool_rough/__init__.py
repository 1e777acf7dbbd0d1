"""Everything that a tool should not do."""

import asyncio
import datetime
import decimal
import os
import pathlib
import sys
import time

from amplifier_core import ToolResult


class Rough:
    """One tool for each name, so that each way of going wrong can be called."""

    description = "Behaves badly"
    input_schema = {"type": "object"}

    def __init__(self, coordinator, name):
        self.coordinator = coordinator
        self.name = name

    async def execute(self, input):
        return await getattr(self, self.name)(input)

    def place(self, name):
        return pathlib.Path(self.coordinator.get_capability("session.working_dir"), name)

    async def block(self, input):
        """Blocks its loop until a file is there, or for ever."""
        if "until" in input:
            self.place("asleep").touch()
        while "until" not in input or not self.place(input["until"]).exists():
            time.sleep(0.01)
        return "awake"

    async def meet(self, input):
        """Ends when so many calls have come as far as this."""
        self.place(f"met-{input['name']}").touch()
        while len(list(self.place(".").glob("met-*"))) < input["count"]:
            await asyncio.sleep(0.01)
        return "met"

    async def spin(self, input):
        await asyncio.to_thread(time.sleep, 3600)

    async def deaf(self, input):
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    async def nap(self, input):
        await asyncio.sleep(input.get("seconds", 3600))
        return "rested"

    async def crash(self, input):
        sys.stderr.write("about to go\n")
        sys.stderr.flush()
        os.write(2, b"last words\n")
        os._exit(7)

    async def leave(self, input):
        sys.exit(3)

    async def wrong_type(self, input):
        return input["file_path"].strip()

    async def own_cancel(self, input):
        raise asyncio.CancelledError

    async def nothing(self, input):
        return None

    async def raw_bytes(self, input):
        return b"caf\xc3\xa9" if input.get("text") else b"\xff\xfe"

    async def odd(self, input):
        return {
            "path": pathlib.Path("/x"),
            "when": datetime.date(2020, 1, 2),
            "price": decimal.Decimal("1.10"),
            "set": {1},
            "nan": float("nan"),
            "huge": 1 << 80,
            "half": "a\ud800b",
            3: object,
        }

    async def deep(self, input):
        value = []
        for _ in range(5000):
            value = [value]
        return value

    async def huge(self, input):
        return "x" * input["size"]

    async def image(self, input):
        block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
        return {"success": True, "output": None, "error": None, "content": [block]}

    async def grow(self, input):
        await self.coordinator.mount("tools", Rough(self.coordinator, "nothing"), name="grown")
        return "grown"

    async def ask(self, input):
        answer = await self.coordinator.approval_system.request_approval(
            "may I?", ["Allow", "Deny"], timeout=60.0, default="deny"
        )
        return answer

    async def call(self, input):
        return await self.coordinator.get_capability("toolpost.call_tool")(input["tool"], input["arguments"])

    async def show(self, input):
        self.coordinator.display_system.show_message("look here", "info", "rough")
        await self.coordinator.hooks.emit("rough:shown", {"n": 1})
        return sorted(await self.coordinator.collect_contributions("observability.events"))

    async def remember(self, input):
        found = self.coordinator.get_capability("rough.memory")
        if "value" in input:
            self.coordinator.register_capability("rough.memory", input["value"])
        return found

    async def environment(self, input):
        return sorted(os.environ)

    async def process(self, input):
        """Which process this is: started when, under which number."""
        with open("/proc/self/stat") as file:
            return f"{os.getpid()}.{file.read().split()[21]}"

    async def dispatch(self, input):
        return self.coordinator._tool_dispatch_contexts[asyncio.current_task()][input.get("key", "tool_call_id")]


NAMES = [name for name in vars(Rough) if not name.startswith("_") and name not in ("execute", "place")]
NAMES = [name for name in NAMES if callable(getattr(Rough, name))]


async def mount(coordinator, config=None):
    coordinator.register_contributor("observability.events", "rough", lambda: ["rough:shown"])
    for name in NAMES:
        # Past the coordinator, as some modules do.
        coordinator.mount_points["tools"][name] = Rough(coordinator, name)
    coordinator.rough_state = []

    async def cleanup():
        if (config or {}).get("farewell"):
            pathlib.Path(config["farewell"]).write_text("cleaned up")

    return cleanup
