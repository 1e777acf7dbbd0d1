"""Plugins of an A2E host file: loaded, driven and ended as the A2E SDK does it, one instance per session."""

import asyncio
import concurrent.futures
import importlib
import inspect
import sys
import threading
import types

from . import current
from .channel import encoded
from .loading import LoadError
from .plain import plain, shown, text
from .plugin_tools import TOOL_CALL, TOOL_LIST, PluginTools

# The host answers these itself.
RESERVED = {"handshake/req", "handshake/resp", "ping", "pong", "shutdown", "error", "invoke/event", TOOL_CALL, TOOL_LIST}
MOST_TYPES = 256
LARGEST_PUSH = 256 << 10
# Threads for handlers. The host limits how many requests of a session run; nested ones come on top.
MOST_THREADS = 128


class InvalidMessage(ValueError):
    """The plugin's own message class refuses the fields."""


async def mount(unit, coordinator):
    """Loads a plugin as its own host would. The result is its `teardown`, where it has one."""
    executor = unit.mount.plugin_executor()
    plugin = Plugin(unit, executor)
    await plugin.load()
    unit.plugin = plugin
    executor.add(plugin)
    if plugin.tools is not None:
        await plugin.tools.mount(coordinator)
    for name in ("teardown", "shutdown", "close"):
        if callable(getattr(plugin.instance, name, None)):
            return getattr(plugin.instance, name)
    return None


class Plugin:
    """One entry of the host file in one session."""

    def __init__(self, unit, executor):
        self.unit = unit
        self.executor = executor
        self.name = unit.order["id"]
        self.type = unit.order["capability"]
        self.config = {
            **unit.order["config"],
            "enabled": True,
            "priority": unit.order["priority"],
            "exclusive": unit.order["exclusive"],
            "type": self.type,
            "audit_log": executor.audit_log,
            "session_id": executor.session_id,
        }
        self.instance = None
        self.models = {}
        self.tools = None

    async def load(self):
        found = _class_of(self.unit.order)
        if _takes_host_and_config(found):
            self.instance = found(self.executor, self.config)
        else:
            # The form without arguments is set up afterwards.
            self.instance = found()
            setup = getattr(self.instance, "setup", None)
            if callable(setup):
                done = setup(self.executor, self.config)
                if inspect.isawaitable(done):
                    await done
        _give(self.instance, "priority", self.config["priority"])
        _give(self.instance, "exclusive", self.config["exclusive"])
        if not isinstance(getattr(self.instance, "name", None), str):
            _give(self.instance, "name", self.name)
        for name in ("set_push_callback", "set_event_callback"):
            if callable(getattr(self.instance, name, None)):
                getattr(self.instance, name)(self.executor._send)
        supported = getattr(self.instance, "supported_messages", None)
        supported = supported() if callable(supported) else {}
        self.models = {str(_word(kind)): model for kind, model in dict(supported).items()}
        if TOOL_LIST in self.models or callable(getattr(self.instance, "_list_tools", None)):
            self.tools = PluginTools(self)

    def described(self):
        """The message types with the fields that must be there, and the metadata for the handshake."""
        types_ = [kind for kind in self.models if kind not in RESERVED][:MOST_TYPES]
        messages = [{"type": text(kind), "required": _required(self.models[kind])} for kind in types_]
        return {"messages": messages, "metadata": self._metadata()}

    def _metadata(self):
        usual = {key: self.config[key] for key in ("type", "priority", "exclusive")}
        try:
            own = plain(self.instance.caps_metadata())
        except BaseException:
            own = None
        usual = {"name": text(str(getattr(self.instance, "name", None) or self.name)), **usual}
        return {**usual, **own} if isinstance(own, dict) else usual

    def message(self, fields):
        """The fields as an object of the class that the plugin named for their type."""
        model = self.models.get(fields.get("type"))
        if model is None:
            return types.SimpleNamespace(**fields)
        try:
            if callable(getattr(model, "model_validate", None)):
                return model.model_validate(fields)
            return model(**fields)
        except Exception as error:
            raise InvalidMessage(shown(error)) from error

    async def handle(self, fields):
        """The plugin's answer as fields, or nothing."""
        message = self.message(fields)
        response = await self.run(self.instance.handle, message)
        if response is None:
            return None
        answer = dumped(response)
        if not answer.get("req_id"):
            answer["req_id"] = fields.get("id", "")
        return answer

    async def run(self, function, *arguments):
        """Handlers are plain functions that may take their time, and several of them run at once."""
        future = self.executor.pool.submit(function, *arguments)
        result = await asyncio.wrap_future(future)
        return await result if inspect.isawaitable(result) else result


class Executor:
    """The host as plugins see it: the parts of the SDK's executor that plugins use."""

    def __init__(self, mount, settings):
        self.mount = mount
        self.bridge = mount.bridge
        self.session_id = self._session_id = mount.session
        self.audit_log = AuditLog(self.bridge) if settings["audit"] else None
        self.config = types.SimpleNamespace(
            host_id=settings["host_id"], plugins=[], global_limits={"max_workers": settings["max_workers"]}
        )
        self.plugins = {}
        self.pool = concurrent.futures.ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="plugin")
        self._loaded = {}

    def add(self, plugin):
        self._loaded[plugin.name] = plugin
        self.plugins[plugin.name] = PluginProxy(self, plugin)

    def adopt(self, session):
        """The mount was made before its session was known."""
        before, self.session_id, self._session_id = self.session_id, session, session
        for plugin in self._loaded.values():
            plugin.config["session_id"] = session
            if getattr(plugin.instance, "_session_id", None) == before:
                _give(plugin.instance, "_session_id", session)

    def get_plugin(self, name):
        """Another plugin of the host: by its name in the file, else by its capability or the name of its class."""
        if name in self.plugins:
            return self.plugins[name]
        for plugin in self._loaded.values():
            if name in (plugin.type, getattr(plugin.instance, "name", None)):
                return self.plugins[plugin.name]
        return None

    def send(self, message):
        """A request that a plugin takes goes to the host as a nested call; everything else is sent to the agent."""
        fields = dumped(message)
        takers = [plugin for plugin in self._loaded.values() if fields.get("type") in plugin.models]
        if takers:
            return self.request(takers[0], message)
        return self._send(message)

    def _send(self, message):
        fields = dumped(message)
        call = current.call()
        if call is not None and call.done.is_set():
            # A thread that outlives its request sends outside of it.
            call = None
        if call is not None and not call.counts():
            return
        # An event of a tool may be a kind and data alone.
        if call is not None and fields.get("type", "tool/event") == "tool/event" and "tool" in call.order:
            kind, data = str(fields.get("kind") or "status"), fields.get("data")
            self.bridge.channel.send(type="plugin_event", call=call.id, kind=kind, data=data)
            return
        line = encoded({"type": "push", "mount": self.mount.number, "message": fields})
        if len(line) > LARGEST_PUSH:
            kind = shown(fields.get("type"))[:100]
            self.bridge.note("warning", f"a message `{kind}` of a plugin has more than {LARGEST_PUSH >> 10} KiB, dropped")
            return
        self.bridge.channel.send_line(line)

    def request(self, plugin, message):
        """Has the host handle a message for another plugin: decided and recorded like one of the agent's."""
        fields = dumped(message)
        if fields.get("type") == TOOL_LIST:
            return plugin.instance.handle(message)
        call = current.call()
        if call is None or call.done.is_set():
            raise RuntimeError("a plugin can be reached only while the host handles a request")
        if _in_loop():
            raise RuntimeError("an async handler cannot wait for another plugin; reach it with `asyncio.to_thread`")
        wanted = self.bridge.ask(call, what="message", plugin=plugin.name, message=fields)
        answer = asyncio.run_coroutine_threadsafe(wanted, self.bridge.loop).result()
        return _rebuilt(answer["message"], message)


def _in_loop():
    """Whether this thread runs a loop, which waiting would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class PluginProxy:
    """Another plugin: its messages go through the host."""

    def __init__(self, executor, plugin):
        self._executor = executor
        self._plugin = plugin
        self.name = getattr(plugin.instance, "name", plugin.name)
        self.type = plugin.type
        self.priority = plugin.config["priority"]
        self.exclusive = plugin.config["exclusive"]

    def supported_messages(self):
        return dict(self._plugin.models)

    def caps_metadata(self):
        return self._plugin._metadata()

    def handle(self, message):
        return self._executor.request(self._plugin, message)


class AuditLog:
    """Takes the audit entries of plugins and hands them to the host, which writes the file."""

    def __init__(self, bridge):
        self._bridge = bridge

    def record(self, entry):
        line = encoded({"type": "audit", "entry": plain(entry)})
        if len(line) <= LARGEST_PUSH:
            self._bridge.channel.send_line(line)


def dumped(message):
    """A message object as its fields."""
    if isinstance(message, dict):
        fields = plain(message)
    elif callable(getattr(message, "to_dict", None)):
        fields = plain(message.to_dict())
    elif isinstance(message, types.SimpleNamespace):
        fields = plain(vars(message))
    else:
        fields = plain(message)
    if not isinstance(fields, dict):
        raise TypeError(f"a plugin sent no message, but {shown(message)[:200]}")
    return fields


def _rebuilt(fields, request):
    """An answer as an object: of the class beside the request's own that has its type, else one with its fields."""
    modules = [sys.modules.get(type(request).__module__), sys.modules.get("a2e.caps.base.protocol")]
    for module in filter(None, modules):
        for found in vars(module).values():
            known = getattr(found, "model_fields", None) if isinstance(found, type) else None
            if known and "type" in known and str(_word(known["type"].default)) == fields.get("type"):
                try:
                    return found.model_validate(fields)
                except Exception:
                    break
    answer = types.SimpleNamespace(**fields)
    if isinstance(fields.get("data"), dict):
        answer.data = types.SimpleNamespace(**fields["data"])
    return answer


def _class_of(order):
    path, _, name = order["class"].replace(":", ".").rpartition(".")
    if not path:
        raise LoadError("invalid_entry_point", f"`{order['class']}` names no module: write `package.module.Class`")
    for folder in [order.get("root"), *order.get("import_paths", [])]:
        if folder and folder not in sys.path:
            sys.path.append(folder)
    found = getattr(importlib.import_module(path), name, None)
    if not isinstance(found, type):
        raise LoadError("invalid_entry_point", f"`{path}` has no class `{name}`")
    return found


def _takes_host_and_config(found):
    """Whether a class is made as `cls(host, config)`, the form of the SDK's base classes."""
    if found.__init__ is object.__init__:
        return False
    try:
        inspect.signature(found).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _give(thing, name, value):
    try:
        setattr(thing, name, value)
    except Exception:
        # A class may have it as a property.
        pass


def _required(model):
    fields = getattr(model, "model_fields", None)
    if not isinstance(fields, dict):
        return []
    try:
        names = [field.alias or name for name, field in fields.items() if field.is_required()]
        return [text(str(name)) for name in names if name not in ("type", "id")]
    except Exception:
        return []


def _word(value):
    return getattr(value, "value", value)
