"""A test kit for Amplifier tool modules in one file: lay it beside your tests and import it before your module.

    from toolpost_testkit import EventRecorder, MockCoordinator, MockTool
    import my_module

    coordinator = MockCoordinator()
    await my_module.mount(coordinator, {"some": "config"})
    result = await coordinator.get("tools", "my_tool").execute({"text": "hello"})
    assert result.success

It needs the standard library alone (Python 3.10 or later). Where `amplifier-core` is installed, modules under test use
the real one; where it is not, importing this file puts a small stand-in for it into `sys.modules`. `CORE` says which.
The names are those of `amplifier_core.testing`, and behave alike with both.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import types
from datetime import datetime, timezone
from typing import Any, Callable
from unittest.mock import AsyncMock

__all__ = ["CORE", "EventRecorder", "HookResult", "MockCoordinator", "MockTool", "ToolResult", "wait_for"]


class _ToolResult:
    """What a tool returns, where amplifier-core is not installed to bring its own."""

    def __init__(
        self,
        success: bool = True,
        output: Any = None,
        error: dict[str, Any] | None = None,
        content: list[dict[str, Any]] | None = None,
        **_ignored: Any,
    ) -> None:
        if not isinstance(success, bool):
            raise ValueError(f"`success` must be a bool, not {success!r}")
        if error is not None and not isinstance(error, dict):
            raise ValueError(f"`error` must be a dict or None, not {error!r}")
        if not success and output is None and error and error.get("message"):
            output = error["message"]
        self.success, self.output, self.error, self.content = success, output, error, content

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        dump = {"success": self.success, "output": self.output, "error": self.error}
        if self.content:
            dump["content"] = self.content
        return dump

    def get_serialized_output(self) -> str:
        """The text that a model is given."""
        if isinstance(self.output, (dict, list)):
            return json.dumps(self.output, default=str)
        if self.output is not None:
            return str(self.output)
        if self.success:
            return "Success"
        return f"Error: {(self.error or {}).get('message') or ('Unknown error' if self.error else 'Failed')}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ToolResult) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ToolResult(success={self.success!r}, output={self.output!r}, error={self.error!r})"


class _HookResult:
    """What a hook returns, where amplifier-core is not installed to bring its own."""

    def __init__(self, action: str = "continue", data: dict[str, Any] | None = None, **fields: Any) -> None:
        if action not in ("continue", "deny", "modify", "inject_context", "ask_user"):
            raise ValueError(f"`{action}` is no action of a hook")
        self.action, self.data, self.reason = action, data, fields.pop("reason", None)
        self.__dict__.update(fields)


_ToolResult.__name__, _HookResult.__name__ = "ToolResult", "HookResult"


def _stand_in() -> None:
    """Puts modules into `sys.modules` that have what tool modules import from amplifier-core."""
    core, events, models = (types.ModuleType(f"amplifier_core{part}") for part in ("", ".events", ".models"))
    core.__version__ = "stand-in"
    core.__path__ = []
    for module in (core, models):
        module.ToolResult, module.HookResult = _ToolResult, _HookResult
    core.ModuleCoordinator = MockCoordinator
    names = "tool:pre tool:post tool:error artifact:read artifact:write session:start session:end".split()
    for name in names:
        setattr(events, name.replace(":", "_").upper(), name)
    core.events, core.models = events, models
    sys.modules.update({module.__name__: module for module in (core, events, models)})


class EventRecorder:
    """Keeps the events it hears. As a handler: `coordinator.hooks.register("*", recorder.record)`."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    async def record(self, event: str, data: dict[str, Any]) -> Any:
        self.events.append((event, data))
        return HookResult(action="continue")

    #: In the place of a registry, for code that only emits.
    emit = record

    def get_events(self, event: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """All events, or those of one name."""
        return [entry for entry in self.events if event in (None, entry[0])]

    def names(self) -> list[str]:
        return [event for event, _ in self.events]

    def clear(self) -> None:
        self.events.clear()


class MockTool:
    """A tool that always succeeds and counts. `execute` is an `AsyncMock`, so `execute.call_args` works."""

    def __init__(self, name: str = "mock_tool", output: Any = "Success") -> None:
        self.name = name
        self.description = f"Mock tool: {name}"
        self.input_schema = {"type": "object", "properties": {}}
        self.execute = AsyncMock(return_value=ToolResult(success=True, output=output))

    @property
    def call_count(self) -> int:
        return self.execute.call_count


class _Hooks:
    """A registry in which `*` and `tool:*` mean what they look like."""

    def __init__(self) -> None:
        self._handlers: list[tuple[int, int, str, Callable[..., Any]]] = []
        self._count = 0

    def register(self, event: str, handler: Callable[..., Any], priority: int = 0, name: str | None = None):
        self._count += 1
        entry = (priority, self._count, event, handler)
        self._handlers.append(entry)
        return lambda: entry in self._handlers and self._handlers.remove(entry)

    on = register

    async def emit(self, event: str, data: dict[str, Any]) -> Any:
        data = {**data, "timestamp": datetime.now(timezone.utc).isoformat()}
        for _, _, pattern, handler in sorted(self._handlers, key=lambda entry: entry[:2]):
            if pattern != event and not (pattern.endswith("*") and event.startswith(pattern[:-1])):
                continue
            result = handler(event, data)
            if inspect.isawaitable(result):
                result = await result
            action = getattr(result, "action", "continue")
            if action == "deny":
                return result
            if action == "modify" and result.data is not None:
                data = result.data
        return HookResult(action="continue", data=data)


class MockCoordinator:
    """A coordinator for one module: mounts, capabilities, contributions, hooks and cleanups, and what was mounted
    when. Attributes of your own can be set on it, as on the real one."""

    session_id = "test-session"
    parent_id = None

    def __init__(self, config: dict[str, Any] | None = None, capabilities: dict[str, Any] | None = None) -> None:
        self.config = config or {}
        self.session = types.SimpleNamespace(session_id=self.session_id, parent_id=None, config=self.config)
        self.session_state: dict[str, Any] = {}
        self.hooks = _Hooks()
        self.mount_points: dict[str, Any] = {
            "orchestrator": None,
            "context": None,
            "module-source-resolver": None,
            "providers": {},
            "tools": {},
            "hooks": self.hooks,
        }
        self.mount_history: list[dict[str, Any]] = []
        self.unmount_history: list[dict[str, Any]] = []
        self._capabilities = dict(capabilities or {})
        self._contributors: dict[str, list[tuple[str, Callable[[], Any]]]] = {}
        self._cleanups: list[Callable[[], Any]] = []

    async def mount(self, mount_point: str, module: Any, name: str | None = None) -> None:
        self._known(mount_point)
        if mount_point == "hooks":
            raise ValueError("Hooks are registered on `coordinator.hooks`, not mounted")
        if isinstance(self.mount_points[mount_point], dict):
            name = name or getattr(module, "name", None)
            if not name:
                raise ValueError(f"Name required for {mount_point}")
            self.mount_points[mount_point][name] = module
        else:
            self.mount_points[mount_point] = module
        self.mount_history.append({"mount_point": mount_point, "module": module, "name": name})

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        self._known(mount_point)
        if isinstance(self.mount_points[mount_point], dict):
            self.mount_points[mount_point].pop(name, None)
        else:
            self.mount_points[mount_point] = None
        self.unmount_history.append({"mount_point": mount_point, "name": name})

    def get(self, mount_point: str, name: str | None = None) -> Any:
        self._known(mount_point)
        mounted = self.mount_points[mount_point]
        return mounted.get(name) if name is not None and isinstance(mounted, dict) else mounted

    def register_capability(self, name: str, value: Any) -> None:
        self._capabilities[name] = value

    def get_capability(self, name: str) -> Any:
        return self._capabilities.get(name)

    def register_contributor(self, channel: str, name: str, callback: Callable[[], Any]) -> None:
        self._contributors.setdefault(channel, []).append((name, callback))

    async def collect_contributions(self, channel: str) -> list[Any]:
        collected = []
        for _, callback in self._contributors.get(channel, []):
            given = callback()
            if inspect.isawaitable(given):
                given = await given
            if given is not None:
                collected.append(given)
        return collected

    def register_cleanup(self, cleanup: Any) -> None:
        if callable(cleanup):
            self._cleanups.append(cleanup)

    async def cleanup(self) -> None:
        """Calls what was registered, the last first."""
        while self._cleanups:
            given = self._cleanups.pop()()
            if inspect.isawaitable(given):
                await given

    def _known(self, mount_point: str) -> None:
        if mount_point not in self.mount_points:
            raise ValueError(f"Unknown mount point: {mount_point}")


async def wait_for(condition: Callable[[], bool], timeout: float = 5.0) -> bool:
    """Waits until `condition()` holds. False where it does not within `timeout` seconds."""
    end = asyncio.get_running_loop().time() + timeout
    while not condition():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.01)
    return True


try:
    import amplifier_core as _core
except ImportError:
    _stand_in()
    import amplifier_core as _core

#: `stand-in`, or the version of amplifier-core that is installed.
CORE: str = getattr(_core, "__version__", "unknown")
ToolResult = _core.ToolResult
HookResult = _core.HookResult
