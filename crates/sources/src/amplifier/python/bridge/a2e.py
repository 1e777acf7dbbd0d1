"""Tool plugins that were written for A2E hosts, as tools. The plugin is talked with in the messages it was made for."""

import asyncio
import importlib
import inspect
import sys
import types
import uuid

from .loading import LoadError
from .plain import plain, shown

LIST, CALL = "tool/list/req", "tool/call/req"


async def mount(unit, coordinator):
    """Loads a plugin as its own host would, and mounts each of its tools."""
    plugin = _made(unit.order)
    executor = Executor(unit, coordinator)
    config = dict(unit.order["config"])
    config.setdefault("enabled", True)
    setup = getattr(plugin, "setup", None)
    if callable(setup):
        done = setup(executor, {**config, "audit_log": None, "session_id": coordinator.session_id})
        if inspect.isawaitable(done):
            await done
    for name in ("set_push_callback", "set_event_callback"):
        if callable(getattr(plugin, name, None)):
            getattr(plugin, name)(executor.send)
    adapter = Adapter(plugin, unit)
    for definition in await adapter.definitions():
        tool = PluginTool(adapter, definition)
        await coordinator.mount("tools", tool, name=tool.name)
    for name in ("teardown", "shutdown", "close"):
        if callable(getattr(plugin, name, None)):
            return getattr(plugin, name)
    return None


def _made(order):
    path, _, name = order["class"].replace(":", ".").rpartition(".")
    if not path:
        raise LoadError("invalid_entry_point", f"`{order['class']}` names no module: write `package.module.Class`")
    root = order.get("root")
    if root and root not in sys.path:
        sys.path.append(root)
    found = getattr(importlib.import_module(path), name, None)
    if not isinstance(found, type):
        raise LoadError("invalid_entry_point", f"`{path}` has no class `{name}`")
    return found()


class Executor:
    """What a plugin sees of its host."""

    def __init__(self, unit, coordinator):
        self.unit = unit
        self.session_id = coordinator.session_id
        self.config = types.SimpleNamespace(plugins=[], global_limits={})
        self.audit_log = None

    def send(self, message):
        """Events of plugins, as events of the running call."""
        data = _get(message, "data") or {}
        words = data.get("message") if isinstance(data, dict) else None
        kind = str(_get(message, "kind") or "status")
        said = words or shown(plain(data))
        level = str(data.get("level") or "info") if isinstance(data, dict) else "info"
        self.unit.mount.bridge.note(level, f"{kind}: {said}", status=kind in ("status", "progress"))

    _send = send


class Adapter:
    """Says what is wanted in the plugin's own messages."""

    def __init__(self, plugin, unit):
        self.plugin = plugin
        self.unit = unit
        supported = getattr(plugin, "supported_messages", None)
        self.models = {str(getattr(k, "value", k)): v for k, v in (supported() if callable(supported) else {}).items()}

    async def definitions(self):
        if callable(getattr(self.plugin, "handle", None)):
            answer = await self._handle(LIST, query="", filter_kind="", filter_tags=[], include_deferred=True)
            found = _get(answer, "tools")
        else:
            found = await self._run(self.plugin._list_tools)
        if not isinstance(found, (list, tuple)):
            raise LoadError("validation_failed", f"the plugin listed no tools, but {shown(found)}")
        return found

    async def call(self, name, arguments):
        if not callable(getattr(self.plugin, "handle", None)):
            return {"success": True, "output": await self._run(self.plugin._execute_tool, name, arguments)}
        answer = await self._handle(
            CALL, tool_name=name, arguments=arguments, session_id="", correlation_id="", streaming=True, timeout=3600
        )
        return result_of(answer)

    async def _handle(self, kind, **fields):
        fields = {"type": kind, "id": uuid.uuid4().hex, **fields}
        model = self.models.get(kind)
        message = types.SimpleNamespace(**fields)
        if model is not None:
            try:
                message = model(**fields)
            except Exception:
                # A model may set its type itself, and refuse to be told.
                message = model(**{key: value for key, value in fields.items() if key != "type"})
        return await self._run(self.plugin.handle, message)

    async def _run(self, function, *arguments):
        """Handlers are plain functions that may take their time, and several may run at once."""
        result = await asyncio.to_thread(function, *arguments)
        return await result if inspect.isawaitable(result) else result


class PluginTool:
    """One tool of a plugin."""

    def __init__(self, adapter, definition):
        self.adapter = adapter
        self.name = str(_get(definition, "name"))
        self.description = str(_get(definition, "description") or "")
        schema = _get(definition, "input_schema")
        self.input_schema = schema if isinstance(schema, dict) else schema_of(_get(definition, "input_parameters"))

    async def execute(self, arguments):
        return await self.adapter.call(self.name, arguments)


def schema_of(parameters):
    """The schema that a list of parameters means."""
    properties, required = {}, []
    for parameter in _each(parameters):
        name = str(_get(parameter, "name"))
        described = {"type": str(_get(parameter, "type") or "string")}
        if _get(parameter, "description"):
            described["description"] = str(_get(parameter, "description"))
        if _get(parameter, "enum"):
            described["enum"] = list(_get(parameter, "enum"))
        if _get(parameter, "properties"):
            inner = schema_of(_get(parameter, "properties"))
            described.update(properties=inner["properties"])
            if inner.get("required"):
                described["required"] = inner["required"]
        properties[name] = described
        if _get(parameter, "required"):
            required.append(name)
    schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _each(parameters):
    if isinstance(parameters, dict):
        return parameters.values()
    return parameters or ()


def result_of(answer):
    """A plugin's answer as a result."""
    if _get(answer, "data") is None and _get(answer, "message") is not None:
        error = {"message": str(_get(answer, "message")), "type": str(_word(_get(answer, "code")) or "error")}
        return {"success": False, "output": None, "error": error}
    data = _get(answer, "data")
    if _get(data, "success") is None:
        return {"success": True, "output": plain(data)}
    output = _get(data, "data")
    output = plain(_get(data, "summary") if output is None else output)
    if _get(data, "success"):
        return {"success": True, "output": output}
    message = _get(data, "error") or _get(data, "summary") or "the tool failed and gave no reason"
    error = {"message": str(message), "type": str(_word(_get(data, "error_code")) or "tool_error")}
    return {"success": False, "output": output, "error": error}


def _word(value):
    return getattr(value, "value", value)


def _get(thing, name):
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
