"""The registry of hook handlers, with Amplifier's order and precedence, and without its holes: a subscription to `*` or
`tool:*` hears what it names, and a change survives beside a question or an injection."""

import asyncio
import datetime
import inspect

from . import current
from .plain import plain, shown

ACTIONS = ("continue", "deny", "modify", "inject_context", "ask_user")


class Handler:
    def __init__(self, event, function, priority, name, unit, order):
        self.event = event
        self.function = function
        self.priority = priority
        self.name = name
        self.unit = unit
        self.order = order

    def hears(self, event):
        return self.event in (event, "*") or (self.event.endswith(":*") and event.startswith(self.event[:-1]))

    async def invoke(self, event, data):
        """Runs where the module lives that registered it, so that what it holds there works."""
        unit = self.unit
        if unit is None or unit.loop is asyncio.get_running_loop():
            return await self.run(event, data)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.enter(event, data), unit.loop))

    async def enter(self, event, data):
        current.enter(self.unit)
        return await self.run(event, data)

    async def run(self, event, data):
        result = self.function(event, data)
        return await result if inspect.isawaitable(result) else result


class HookRegistry:
    """What modules see as `coordinator.hooks`."""

    SESSION_START = "session:start"
    SESSION_END = "session:end"
    PROMPT_SUBMIT = "prompt:submit"
    TOOL_PRE = "tool:pre"
    TOOL_POST = "tool:post"
    CONTEXT_PRE_COMPACT = "context:pre_compact"
    ORCHESTRATOR_COMPLETE = "orchestrator:complete"
    USER_NOTIFICATION = "user:notification"

    # Set by the bridge: the class of results, and who hears what modules emit.
    result_class = None
    witness = staticmethod(lambda event, data: None)

    def __init__(self):
        self._handlers = []
        self._defaults = {}
        self._count = 0

    def register(self, event, handler, priority=0, name=None):
        self._count += 1
        name = name or getattr(handler, "__name__", None) or type(handler).__name__
        entry = Handler(event, handler, priority, name, current.unit(), self._count)
        self._handlers.append(entry)
        self._handlers.sort(key=lambda each: (each.priority, each.order))

        def unregister():
            if entry in self._handlers:
                self._handlers.remove(entry)

        return unregister

    on = register

    def unregister(self, name):
        self._handlers = [each for each in self._handlers if each.name != name]

    def set_default_fields(self, **fields):
        self._defaults.update(fields)

    def list_handlers(self, event=None):
        listed = {}
        for each in self._handlers:
            if event is None or each.event == event:
                listed.setdefault(each.event, []).append(each.name)
        return listed

    def events_of(self, unit):
        """The events that a unit's module has handlers for."""
        return sorted({each.event for each in self._handlers if each.unit is unit})

    async def emit(self, event, data=None):
        """What a module emits: handlers hear it, and so does the host."""
        data = data or {}
        type(self).witness(event, data)
        outcome = await self.ask(event, data)
        return outcome.result(type(self).result_class)

    async def emit_and_collect(self, event, data=None, timeout=1.0):
        type(self).witness(event, data or {})
        answers = []
        for handler in self._hearing(event):
            try:
                answer = await asyncio.wait_for(handler.invoke(event, self._filled(data or {})), timeout)
            except (Exception, asyncio.TimeoutError):
                continue
            found = answer.get("data") if isinstance(answer, dict) else getattr(answer, "data", None)
            if found is not None:
                answers.append(found)
        return answers

    async def ask(self, event, data, modules=None):
        """Asks every handler of these modules, or all, one after the other."""
        outcome = Outcome(self._filled(data))
        for handler in self._hearing(event, modules):
            try:
                answer = await handler.invoke(event, dict(outcome.data))
            except Exception as error:
                outcome.failed(handler, error)
                continue
            if outcome.take(handler, answer):
                break
        return outcome

    def _hearing(self, event, modules=None):
        wanted = [each for each in self._handlers if each.hears(event)]
        if modules is None:
            return wanted
        return [each for each in wanted if each.unit is not None and each.unit.id in modules]

    def _filled(self, data):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        return {**self._defaults, **(data if isinstance(data, dict) else {"value": data}), "timestamp": now}


class Outcome:
    """What the handlers of one event want, taken together: deny before ask, ask before inject, and changes beside."""

    def __init__(self, data):
        self.data = data
        self.modified = False
        self.denied = None
        self.asked = None
        self.injected = []
        self.messages = []
        self.errors = []

    def failed(self, handler, error):
        self.errors.append({"name": handler.name, "message": f"{type(error).__name__}: {shown(error)}"})

    def take(self, handler, answer):
        """Takes one answer in. True: nobody else needs to be asked."""
        fields = fields_of(answer)
        if fields is None:
            reason = f"hook `{handler.name}` answered with something that is no hook result"
            fields = {"action": "deny", "reason": reason}
        fields.setdefault("hook_name", handler.name)
        if fields.get("user_message"):
            self.messages.append(fields)
        action = fields["action"]
        if action == "deny":
            self.denied = fields
            return True
        if action == "modify" and isinstance(fields.get("data"), dict):
            self.data = fields["data"]
            self.modified = True
        elif action == "ask_user":
            self.asked = self.asked or fields
        elif action == "inject_context" and fields.get("context_injection"):
            self.injected.append(fields)
        return False

    def fields(self):
        """As one hook result. `data` is there where a handler changed it."""
        first = self.denied or self.asked or (self.injected[0] if self.injected else {})
        merged = {key: value for key, value in first.items() if key in FIELDS and value is not None}
        merged["action"] = first.get("action") or ("modify" if self.modified else "continue")
        merged["data"] = self.data if self.modified else None
        if self.injected and not self.denied:
            texts = [each["context_injection"] for each in self.injected]
            merged["context_injection"] = "\n\n".join(str(each) for each in texts)
        if self.messages:
            for key in ("user_message", "user_message_level", "user_message_source"):
                if self.messages[0].get(key) is not None:
                    merged[key] = self.messages[0][key]
        if self.denied or self.asked:
            merged["hook_name"] = (self.denied or self.asked).get("hook_name")
        return plain(merged)

    def result(self, result_class):
        """As modules get it from `emit`: a change is `continue` with data."""
        fields = self.fields()
        if fields["action"] in ("modify", "continue"):
            fields.update(action="continue", data=plain(self.data))
        fields.pop("hook_name", None)
        return result_class(**fields)


FIELDS = (
    "action", "data", "reason", "context_injection", "context_injection_role", "ephemeral",
    "append_to_last_tool_result", "approval_prompt", "approval_options", "approval_timeout", "approval_default",
    "suppress_output", "user_message", "user_message_level", "user_message_source",
)  # fmt: skip


def fields_of(answer):
    """A handler's answer as a table, or None where it is no answer at all."""
    if answer is None:
        return {"action": "continue"}
    if isinstance(answer, dict):
        fields = dict(answer)
    elif hasattr(answer, "action"):
        fields = {key: getattr(answer, key, None) for key in FIELDS}
    else:
        return None
    fields["action"] = getattr(fields.get("action"), "value", fields.get("action")) or "continue"
    return fields if fields["action"] in ACTIONS else None
