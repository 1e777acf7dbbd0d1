"""The tools of a plugin: listed, searched and called in the messages that the plugin was made for."""

import types
import uuid

from . import current
from .loading import LoadError
from .plain import plain, shown

TOOL_LIST, TOOL_CALL = "tool/list/req", "tool/call/req"
# Without an end of its own a call runs until the host stops it.
LONGEST_CALL = 3600


class PluginTools:
    """Speaks with a plugin about its tools."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.mounted = {}

    async def mount(self, coordinator):
        for definition in await self.definitions():
            tool = PluginTool(self, definition)
            self.mounted[tool.name] = tool
            await coordinator.mount("tools", tool, name=tool.name)

    async def relist(self, coordinator):
        """Asks again. Tools that are gone are taken out, new and changed ones are mounted."""
        found = {}
        for definition in await self.definitions():
            tool = PluginTool(self, definition)
            found[tool.name] = tool
        point = coordinator.mount_points["tools"]
        for name in [name for name in self.mounted if name not in found]:
            if point.get(name) is self.mounted[name]:
                del point[name]
            del self.mounted[name]
        for name, tool in found.items():
            known = self.mounted.get(name)
            if known is not None:
                known.take(tool.definition)
            else:
                self.mounted[name] = tool
                await coordinator.mount("tools", tool, name=name)

    async def definitions(self):
        if self._handles():
            answer = await self._ask(TOOL_LIST, query="", filter_kind="", filter_tags=[], include_deferred=True)
            found = get(answer, "tools")
            if found is None and get(answer, "message"):
                raise LoadError("validation_failed", f"listing its tools failed: {shown(get(answer, 'message'))}")
        else:
            found = await self.plugin.run(self.plugin.instance._list_tools)
        if not isinstance(found, (list, tuple)):
            raise LoadError("validation_failed", f"the plugin listed no tools, but {shown(found)}")
        return found

    async def search(self, query, tags):
        """The names that the plugin's own search finds, best first."""
        if self._handles():
            answer = await self._ask(TOOL_LIST, query=query, filter_kind="", filter_tags=tags, include_deferred=True)
            found = get(answer, "tools")
        elif callable(getattr(self.plugin.instance, "_search_tools", None)):
            found = await self.plugin.run(self.plugin.instance._search_tools, query, tags or None)
        else:
            found = None
        return [str(get(tool, "name")) for tool in found or ()]

    async def call(self, name, arguments):
        if not self._handles():
            value = await self.plugin.run(self.plugin.instance._execute_tool, name, arguments)
            return PluginResult.of_value(value)
        call = current.call()
        order = call.order if call is not None else {}
        answer = await self._ask(
            TOOL_CALL,
            tool_name=name,
            arguments=arguments,
            session_id=self.plugin.executor.session_id,
            correlation_id=order.get("tool_call_id") or "",
            streaming=True,
            timeout=order.get("timeout") or LONGEST_CALL,
        )
        return PluginResult.of_answer(answer)

    def _handles(self):
        return TOOL_LIST in self.plugin.models and callable(getattr(self.plugin.instance, "handle", None))

    async def _ask(self, kind, **fields):
        message = self.plugin.message({"type": kind, "id": uuid.uuid4().hex, **fields})
        return await self.plugin.run(self.plugin.instance.handle, message)


class PluginTool:
    """One tool of a plugin."""

    def __init__(self, tools, definition):
        self.tools = tools
        self.take(definition)

    def take(self, definition):
        self.definition = plain(definition) if not isinstance(definition, types.SimpleNamespace) else vars(definition)
        self.name = str(get(definition, "name"))
        self.description = str(get(definition, "description") or "")

    # The host makes the schema of the parameters.
    input_schema = None

    async def execute(self, arguments):
        return await self.tools.call(self.name, arguments)


class PluginResult(dict):
    """A plugin's answer in the shape that every module's result has, with what A2E has beside it."""

    def __init__(self, success, output, error=None, extras=None):
        super().__init__(success=success, output=output, error=error)
        self.extras = extras or {}

    @classmethod
    def of_value(cls, value):
        """What `_execute_tool` returned."""
        if get(value, "success") is not None and get(value, "tool_name") is not None:
            return cls.of_result(value)
        value = plain(value)
        payload = value if isinstance(value, dict) else {"value": value}
        return cls(True, payload, extras={"exit_code": _whole(payload.get("exit_code"))})

    @classmethod
    def of_answer(cls, answer):
        """A `tool/call/resp`, or an `error`."""
        data = get(answer, "data")
        if data is None and get(answer, "message") is not None:
            error = {"message": str(get(answer, "message")), "type": str(_word(get(answer, "code")) or "tool_error")}
            return cls(False, None, error)
        if get(data, "success") is None:
            return cls.of_value(data)
        return cls.of_result(data)

    @classmethod
    def of_result(cls, result):
        """A whole `ToolResult`."""
        extras = {
            "summary": plain(get(result, "summary")),
            "truncated": bool(get(result, "truncated")),
            "exit_code": _whole(get(result, "exit_code")),
            "events": plain(list(get(result, "events") or ())),
        }
        output = plain(get(result, "data"))
        if get(result, "success"):
            return cls(True, output, extras=extras)
        message = get(result, "error") or get(result, "summary") or "the tool failed and gave no reason"
        error = {"message": str(message), "type": str(_word(get(result, "error_code")) or "tool_error")}
        return cls(False, output, error, extras)


def get(thing, name):
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _whole(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _word(value):
    return getattr(value, "value", value)
