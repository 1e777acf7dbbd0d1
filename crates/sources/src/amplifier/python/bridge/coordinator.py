"""The coordinator that modules are given: what Amplifier's own offers, with the host behind it."""

import asyncio
import inspect
import types

from . import current
from .hooks import HookRegistry
from .plain import plain, shown


def coordinator_class(base):
    """The bridge's coordinator over Amplifier's own class, the real one or the stand-in's."""
    return type("Coordinator", (Coordinator, base), {})


def make(base, mount, plan):
    """A coordinator for one mount."""
    session = types.SimpleNamespace(
        session_id=mount.session, parent_id=None, config=plan, status="running", is_resumed=False
    )
    approval, display = Approvals(mount.bridge), Display(mount.bridge)
    made = coordinator_class(base)(session, approval, display)
    session.coordinator = made
    made._toolpost_begin(mount, session)
    return made


class Coordinator:
    """What is different from Amplifier's own coordinator."""

    def _toolpost_begin(self, mount, session):
        self.__dict__["_toolpost"] = types.SimpleNamespace(
            mount=mount, session=session, hooks=HookRegistry(), cleanups=[], contributors=[]
        )
        self._tool_dispatch_contexts = {}
        self.mount_points["hooks"] = self.hooks
        self.hooks.set_default_fields(session_id=session.session_id, parent_id=session.parent_id)

    def _toolpost_adopt(self, session):
        own = self._toolpost.session
        own.session_id = session
        self.hooks.set_default_fields(session_id=session, parent_id=own.parent_id)

    @property
    def session_id(self):
        return self._toolpost.session.session_id

    @property
    def parent_id(self):
        return self._toolpost.session.parent_id

    @property
    def session(self):
        return self._toolpost.session

    @property
    def hooks(self):
        return self._toolpost.hooks

    def get(self, point, name=None):
        if point == "hooks":
            return self.hooks
        return super().get(point, name) if name is not None else super().get(point)

    def register_capability(self, name, value):
        super().register_capability(name, value)
        if is_json(value):
            self._toolpost.mount.register_capability(name, value)

    def register_contributor(self, channel, name, callback):
        self._toolpost.contributors.append((channel, name, callback, current.unit()))
        super().register_contributor(channel, name, callback)

    async def collect_contributions(self, channel):
        """In the order they were registered; each is asked where its module lives."""
        collected = []
        for wanted, _, callback, unit in list(self._toolpost.contributors):
            if wanted != channel:
                continue
            try:
                given = await on_loop_of(unit, lambda: maybe_awaited(callback))
            except Exception:
                continue
            if given is not None:
                collected.append(given)
        return collected

    def register_cleanup(self, cleanup):
        if callable(cleanup):
            self._toolpost.cleanups.append((cleanup, current.unit()))

    async def cleanup(self):
        """Backwards, each where its module lives. One that fails does not keep the others from it."""
        problems = []
        while self._toolpost.cleanups:
            cleanup, unit = self._toolpost.cleanups.pop()
            try:
                await asyncio.wait_for(on_loop_of(unit, lambda: maybe_awaited(cleanup)), 5)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                owner = unit.id if unit else "the session"
                problems.append(f"a cleanup of `{owner}` failed: {type(error).__name__}: {shown(error)}")
        return problems


async def maybe_awaited(function):
    result = function()
    return await result if inspect.isawaitable(result) else result


async def on_loop_of(unit, work):
    """Does the work on a unit's own loop."""
    if unit is None or unit.loop is asyncio.get_running_loop():
        return await work()

    async def entered():
        current.enter(unit)
        return await work()

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(entered(), unit.loop))


def is_json(value):
    """Whether a capability is data. Functions and objects stay in this process."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return True
    if isinstance(value, (list, tuple)):
        return all(is_json(each) for each in value)
    return isinstance(value, dict) and all(
        isinstance(key, str) and is_json(each) for key, each in value.items()
    )


class Approvals:
    """Asks the host's operator. Without a call around it there is nobody to ask, and the answer is no."""

    def __init__(self, bridge):
        self.bridge = bridge

    async def request_approval(self, prompt, options=None, timeout=300.0, default="deny"):
        options = [str(each) for each in options or ["Allow", "Deny"]]
        no = next((each for each in options if not each.lower().startswith("allow")), "Deny")
        yes = next((each for each in options if each.lower().startswith("allow")), options[0])
        call = current.call()
        if call is None:
            return no
        asking = self.bridge.ask(call, what="approval", prompt=shown(prompt), options=options)
        try:
            answer = await asyncio.wait_for(asking, timeout if timeout and timeout > 0 else None)
        except asyncio.TimeoutError:
            raise self.bridge.core.approval_timeout(f"nobody answered within {timeout} seconds") from None
        except AskFailed:
            return no
        return yes if answer.get("approved") else no


class Display:
    """Shows what a module wants a person to see, as events of the running call."""

    def __init__(self, bridge):
        self.bridge = bridge

    def show_message(self, message, level="info", source="hook"):
        self.bridge.note(level, f"{source}: {shown(message)}", status=level == "info")


class AskFailed(RuntimeError):
    """The host would not do what it was asked for."""


def call_tool_of(bridge):
    """The capability `toolpost.call_tool`: a tool of the host, on behalf of the running call."""

    async def call_tool(name, arguments=None):
        call = current.call()
        if call is None:
            raise AskFailed("only a running call can call a tool of the host")
        return await bridge.ask(call, what="tool", tool=str(name), arguments=plain(arguments or {}))

    return call_tool
