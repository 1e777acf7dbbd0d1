"""The registry of hook handlers, with Amplifier's order and precedence, and without its holes: a subscription to `*` or
`tool:*` hears what it names, and a change survives beside a question or an injection."""

import asyncio
import datetime
import threading

from . import current
from .channel import encoded
from .plain import plain, shown
from .work import Unruly, aside, on_loop_of

# What a handler's failure means; inside of the process, where a module asks, it means nothing.
GUARD, ORDINARY, OBSERVER, OPEN = "guard", "ordinary", "observer", "open"
# How long an event loop may be busy with something else after a handler was given up.
BUSY = 2.0
# Of everything that one handler answers, and of what all of them want a model to be told. Bytes.
LARGEST_ANSWER = 4 << 20
MOST_EVENTS, LONGEST_EVENT_NAME = 256, 200
LONGEST_MESSAGE = 64 << 10
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
        return await on_loop_of(self.unit, self.function, event, data)

    def look_after(self):
        """It was given up. If its loop does not turn any more, nothing of its module works, and the host is told."""
        unit, turned = self.unit, threading.Event()
        if unit is None:
            return

        def look():
            unit.loop.call_soon_threadsafe(turned.set)
            if not turned.wait(BUSY):
                unit.mount.bridge.channel.send(type="stuck", module=unit.id)

        aside(look)


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
        return sorted({shown(each.event)[:LONGEST_EVENT_NAME] for each in self._handlers if each.unit is unit})[:MOST_EVENTS]

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
                given = copied(self._filled(data or {}))
                answer = await asyncio.wait_for(handler.invoke(event, given), timeout)
            except (Exception, asyncio.TimeoutError):
                continue
            found = answer.get("data") if isinstance(answer, dict) else getattr(answer, "data", None)
            if found is not None:
                answers.append(found)
        return answers

    async def ask(self, event, data, standings=None, limit=None):
        """Asks handlers one after the other: all, or those of the modules that have a standing."""
        outcome = Outcome(self._filled(data))
        for handler in self._hearing(event, standings):
            standing = OPEN if standings is None else standings[handler.unit.id]
            try:
                answer = await asyncio.wait_for(handler.invoke(event, copied(outcome.data)), limit)
            except asyncio.TimeoutError:
                outcome.failed(handler, standing, event, f"it did not answer within {limit or 0:g} seconds")
                handler.look_after()
            except Unruly as error:
                outcome.failed(handler, standing, event, shown(error))
            except Exception as error:
                outcome.failed(handler, standing, event, f"{type(error).__name__}: {shown(error)}")
            else:
                fields = fields_of(answer)
                if fields is not None and len(encoded(plain(fields))) > LARGEST_ANSWER:
                    why = f"its answer has more than {LARGEST_ANSWER >> 20} MiB"
                    outcome.failed(handler, standing, event, why)
                else:
                    outcome.take(handler, standing, fields)
            if outcome.denied:
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
        # What went wrong on the way and changed nothing.
        self.notes = []

    def failed(self, handler, standing, event, why):
        """A guard that fails says no, an ordinary handler that fails before a call has a person asked, and of anybody
        else it is noted."""
        said = f"the hook `{handler.name}` failed: {why}"
        if standing == GUARD:
            self.denied = {"action": "deny", "reason": said}
        elif standing == ORDINARY and event == "tool:pre":
            self.asked = self.asked or {"action": "ask_user", "approval_prompt": said}
        elif standing != OPEN:
            self.notes.append(said)

    def take(self, handler, standing, fields):
        """Takes one answer in; None is one that makes no sense."""
        if fields is None and standing == OBSERVER:
            self.notes.append(f"the hook `{handler.name}` answered with something that is no hook result")
            return
        if fields is None:
            # It may have been meant as one.
            reason = f"the hook `{handler.name}` answered with something that is no hook result"
            fields = {"action": "deny", "reason": reason}
        if fields.get("user_message"):
            self.messages.append(f"{fields.get('user_message_source') or handler.name}: {fields['user_message']}")
        action = fields["action"]
        if standing == OBSERVER:
            if action != "continue":
                said = f"the hook `{handler.name}` is an observer, so its `{action}` counts for nothing"
                self.notes.append(said)
        elif action == "deny":
            self.denied = fields
        else:
            self._heed(handler, action, fields)

    def _heed(self, handler, action, fields):
        if action == "ask_user" and self.asked is None:
            prompt = fields.get("approval_prompt") or fields.get("reason") or f"the hook `{handler.name}` asks"
            self.asked = {**fields, "approval_prompt": prompt}
        if fields.get("context_injection") and action != "continue":
            self.injected.append(fields)
        # A change survives beside a question or a word for the model: the handler gave it.
        if action != "continue" and isinstance(fields.get("data"), dict):
            self.data = {**fields["data"], "timestamp": self.data.get("timestamp")}
            self.modified = True

    def fields(self):
        """As one hook result. `data` is there where a handler changed it."""
        first = self.denied or self.asked or (self.injected[0] if self.injected else {})
        merged = {key: value for key, value in first.items() if key in FIELDS and value is not None}
        merged["action"] = first.get("action") or ("modify" if self.modified else "continue")
        merged["data"] = self.data if self.modified else None
        if self.injected and not self.denied:
            texts = [each["context_injection"] for each in self.injected]
            merged["context_injection"] = "\n\n".join(str(each) for each in texts)[:LARGEST_ANSWER]
        if self.messages or self.notes:
            merged["user_message"] = "\n".join(self.messages + self.notes)[:LONGEST_MESSAGE]
            merged["user_message_source"] = None
        return plain(merged)

    def result(self, result_class):
        """As modules get it from `emit`: a change is `continue` with data."""
        fields = self.fields()
        if fields["action"] in ("modify", "continue"):
            fields.update(action="continue", data=plain(self.data))
        return result_class(**fields)


def copied(value, known=None):
    """What a handler is given: its own tables and lists, so that what it changes in them changes nothing for others. What
    else is in them is handed on as it is."""
    kind = type(value)
    if kind not in (dict, list, tuple, set):
        return value
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]
    if kind is dict:
        known[id(value)] = made = {}
        made.update((key, copied(each, known)) for key, each in value.items())
    elif kind is list:
        known[id(value)] = made = []
        made.extend(copied(each, known) for each in value)
    else:
        made = kind(value) if kind is set else tuple(copied(each, known) for each in value)
    return made


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
