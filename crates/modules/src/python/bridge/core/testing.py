"""Doubles for the tests of tools and orchestrators, as Amplifier's own package has them."""

import types
from unittest.mock import AsyncMock

from .coordinator import ModuleCoordinator
from .hooks import HookRegistry, HookResult
from .models import ToolResult


class MockTool:
    """A tool that always succeeds with one output and counts its calls."""

    def __init__(self, name="mock_tool", output="Success"):
        self.name = name
        self.description = f"Mock tool: {name}"
        self.input_schema = {"type": "object", "properties": {}}
        self.output = output
        self.call_count = 0
        self.execute = AsyncMock(side_effect=self._execute)

    async def _execute(self, input):
        self.call_count += 1
        return ToolResult(success=True, output=self.output)


class MockCoordinator(ModuleCoordinator):
    """A coordinator without a host that remembers the mounts."""

    def __init__(self):
        session = types.SimpleNamespace(session_id="test-session", parent_id=None, config={})
        super().__init__(session)
        self.session = session
        self.session_id = session.session_id
        self.parent_id = None
        self.hooks = self.mount_points["hooks"] = HookRegistry()
        self.mount_history = []
        self.unmount_history = []
        self._cleanups = []

    async def mount(self, mount_point, module, name=None):
        await super().mount(mount_point, module, name)
        self.mount_history.append({"mount_point": mount_point, "module": module, "name": name})

    async def unmount(self, mount_point, name=None):
        await super().unmount(mount_point, name)
        self.unmount_history.append({"mount_point": mount_point, "name": name})

    async def collect_contributions(self, channel):
        collected = []
        for contributor in self.channels.get(channel, []):
            given = contributor["callback"]()
            given = await given if hasattr(given, "__await__") else given
            if given is not None:
                collected.append(given)
        return collected

    def register_cleanup(self, cleanup):
        self._cleanups.append(cleanup)

    async def cleanup(self):
        while self._cleanups:
            done = self._cleanups.pop()()
            if hasattr(done, "__await__"):
                await done


class EventRecorder:
    """Remembers events, and lets all of them pass."""

    def __init__(self):
        self.events = []

    async def record(self, event, data):
        self.events.append((event, dict(data)))
        return HookResult(action="continue")

    emit = record

    def get_events(self, event_type=None):
        return [each for each in self.events if event_type in (None, each[0])]

    def clear(self):
        self.events.clear()
