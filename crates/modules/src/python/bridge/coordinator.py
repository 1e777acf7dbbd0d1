"""The coordinator that modules are given: what Amplifier's own offers, with the host behind it."""

import asyncio
import types

from . import current
from .hooks import HookRegistry
from .channel import encoded
from .plain import DEEPEST, plain, shown
from .work import Unruly, on_loop_of

LARGEST_CAPABILITY = 256 << 10
# How long one cleanup may take, how long all of them together, and how long one in any case. Seconds.
LONGEST_CLEANUP, LONGEST_CLEANUPS, SHORTEST_CLEANUP = 5, 8, 0.2


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
            mount=mount,
            session=session,
            hooks=HookRegistry(),
            cleanups=[],
            contributors=[],
            tools=Tools(self.mount_points["tools"]),
        )
        self.mount_points["tools"] = self._toolpost.tools
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
        mount = self._toolpost.mount
        if not is_json(value):
            return
        given, size = plain(value), LARGEST_CAPABILITY >> 10
        if len(encoded(given)) > LARGEST_CAPABILITY:
            said = f"the capability `{shown(name)[:200]}` has more than {size} KiB, so it ends with this process"
            mount.bridge.note("warning", said)
        else:
            mount.register_capability(name, given)

    async def mount(self, mount_point, module, name=None):
        await super().mount(mount_point, module, name=name)
        if mount_point == "tools":
            # Amplifier's own does not write through the table's methods.
            for given, tool in list(self.mount_points["tools"].items()):
                if tool is module:
                    self._toolpost.tools.note(given, tool)

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
                given = await on_loop_of(unit, callback)
            except Exception:
                continue
            if given is not None:
                collected.append(given)
        return collected

    def register_cleanup(self, cleanup):
        if callable(cleanup):
            self._toolpost.cleanups.append((cleanup, current.unit()))

    async def cleanup(self):
        """Backwards, each where its module lives. One that fails or hangs does not keep the others from it."""
        problems = []
        clock = asyncio.get_running_loop().time
        until = clock() + LONGEST_CLEANUPS
        while self._toolpost.cleanups:
            cleanup, unit = self._toolpost.cleanups.pop()
            limit = max(SHORTEST_CLEANUP, min(LONGEST_CLEANUP, until - clock()))
            owner = unit.id if unit else "the session"
            try:
                await asyncio.wait_for(on_loop_of(unit, cleanup), limit)
            except asyncio.CancelledError:
                raise
            except asyncio.TimeoutError:
                problems.append(f"a cleanup of `{owner}` took longer than {limit:.1f} seconds")
            except Unruly as error:
                problems.append(f"a cleanup of `{owner}` failed: {shown(error)}")
            except BaseException as error:
                problems.append(f"a cleanup of `{owner}` failed: {type(error).__name__}: {shown(error)}")
        return problems


class Tools(dict):
    """The table of mounted tools. It knows whose code wrote what, however many modules are at work at once."""

    def __init__(self, *args):
        super().__init__(*args)
        self.writers = {}

    def note(self, name, tool):
        self.writers.pop(name, None)
        self.writers[name] = (tool, current.unit())

    def as_written(self):
        """All that is in it, what was written last at the end: a name that another module wrote before does not count."""
        order = {name: place for place, name in enumerate(list(self.writers))}
        return sorted(self.items(), key=lambda item: order.get(item[0], len(order)))

    def writer(self, name, tool):
        """The unit that mounted a tool, where that is known."""
        written, unit = self.writers.get(name, (None, None))
        return unit if written is tool else None

    def __setitem__(self, name, tool):
        super().__setitem__(name, tool)
        self.note(name, tool)

    def setdefault(self, name, tool=None):
        if name not in self:
            self[name] = tool
        return self[name]

    def update(self, *args, **named):
        for name, tool in dict(*args, **named).items():
            self[name] = tool

    def __ior__(self, other):
        self.update(other)
        return self


def is_json(value, depth=0):
    """Whether a capability is data. Functions and objects stay in this process."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return True
    if depth > DEEPEST:
        return False
    if isinstance(value, (list, tuple)):
        return all(is_json(each, depth + 1) for each in value)
    return isinstance(value, dict) and all(
        isinstance(key, str) and is_json(each, depth + 1) for key, each in value.items()
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
            said = "nobody can be asked outside of a running call, so the answer is no; a hook answers `ask_user` instead"
            self.bridge.note("warning", f"`{shown(prompt)[:200]}`: {said}")
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
