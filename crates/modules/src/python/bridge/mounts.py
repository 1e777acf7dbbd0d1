"""A mount: all modules, mounted once for one session, on one coordinator."""

import asyncio
import concurrent.futures
import inspect
import threading
import time

from . import children, coordinator as coordinators
from .plain import shown
from .units import Unit

# How long the next module waits for the one before it, in seconds.
HEAD_START = 1

class Mount:
    def __init__(self, bridge, number, session):
        self.bridge = bridge
        self.number = number
        self.session = session
        self.units = {}
        # Held while new tools are given to their modules.
        self.gathering = threading.Lock()
        self.calls = {}
        self.tells_capabilities = False
        # Until then, of two modules that mount one name the earlier of the plan has it, whichever was faster.
        self.settled = False
        # Set when its modules may not start processes any more.
        self.over = False
        self.coordinator = coordinators.make(bridge.core.coordinator, self, bridge.plan)
        # What the plugins of an A2E host file see of the host, made for the first of them.
        self.executor = None
        self.making_executor = threading.Lock()

    def plugin_executor(self):
        from .a2e import Executor

        with self.making_executor:
            if self.executor is None:
                self.executor = Executor(self, self.bridge.plugins)
            return self.executor

    def begin(self, capabilities, limit, without, apart):
        """Mounts the modules in the plan's order. The next one begins when the one before is mounted, or has had its head
        start: modules may build on those before them, and one that hangs delays nobody for long. Where they are mounted
        `apart`, each has all of its time first, so that it is known who ends the process. Those in `without`, by their
        place in the plan, are not tried again, for the reason given there."""
        for name, value in capabilities.items():
            self.coordinator.register_capability(name, value)
        self.coordinator.register_capability("toolpost.call_tool", coordinators.call_tool_of(self.bridge))
        self.tells_capabilities = True
        head_start = limit if apart else min(limit, HEAD_START)
        for place, order in enumerate(self.bridge.modules):
            key = order["id"]
            while key in self.units:
                key += "+"
            self.units[key] = Unit(self, place, order)
        steps = []
        for unit in self.units.values():
            if str(unit.place) in without:
                unit.problem("unknown", without[str(unit.place)], fatal=True)
            else:
                steps.append((unit, unit.mount_module))
        self._all_of(steps, limit, head_start, "mounting it")
        self.settled = True
        for unit, _ in steps:
            unit.must_bring_something()
        steps = []
        for unit in self.units.values():
            ready = getattr(unit.module, "on_session_ready", None)
            if callable(ready) and not unit.is_missing():
                steps.append((unit, lambda unit=unit, ready=ready: self._ready(unit, ready)))
        self._all_of(steps, limit, head_start, "`on_session_ready`")
        return self.described(limit)

    def _all_of(self, steps, limit, head_start, what):
        """What each module has to do, each within its time."""
        begun, at_work = [], []
        for unit, work in steps:
            self._says("mounting", unit)
            unit.begin()
            future = unit.submit(work)
            step = (unit, future, time.monotonic() + limit)
            begun.append(step)
            at_work.append(step)
            concurrent.futures.wait([future], head_start)
            for step in [step for step in at_work if step[1].done() or time.monotonic() >= step[2]]:
                at_work.remove(step)
                self._says("settled", step[0])
        for unit, future, until in begun:
            self._result(unit, future, until, limit, what)
        for unit, _, _ in at_work:
            self._says("settled", unit)

    def _says(self, word, unit):
        """If the process dies now, the host knows who was at work."""
        self.bridge.channel.send(type=word, mount=self.number, place=unit.place)

    def _result(self, unit, future, until, limit, what):
        try:
            return future.result(max(0, until - time.monotonic()))
        except concurrent.futures.TimeoutError:
            future.cancel()
            unit.problem("unknown", f"{what} took longer than {limit:g} seconds (`amplifier.mount_timeout`)", fatal=True)
            unit.problems[-1]["late"] = True
        except BaseException as error:
            unit.problem("validation_failed", f"{type(error).__name__}: {shown(error)}", fatal=True)
        return None

    async def _ready(self, unit, ready):
        try:
            result = ready(self.coordinator)
            if inspect.isawaitable(result):
                await result
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            unit.problem("validation_failed", f"`on_session_ready` failed: {type(error).__name__}: {shown(error)}")
            self.bridge.tell(self, "module:on_session_ready_failed", {"module_id": unit.id, "error": shown(error)})
        unit.gather()

    def described(self, limit, afresh=False):
        """Each module as it is, asked where it lives. Plugins are asked for their tools again where `afresh`."""
        until = time.monotonic() + limit
        asked = {
            unit: unit.submit(unit.describe_afresh if afresh else unit.describe)
            for unit in self.units.values()
            if not unit.is_missing()
        }
        listed = []
        for unit in self.units.values():
            found = None
            if unit in asked:
                found = self._result(unit, asked[unit], until, limit, "describing its tools")
            listed.append(found or {"module": unit.id, "tools": [], "events": [], "problems": unit.problems})
        return listed

    def hearing(self, event):
        """The modules that have handlers for an event now."""
        handlers = self.coordinator.hooks._hearing(event)
        return sorted({handler.unit.id for handler in handlers if handler.unit is not None})

    def adopt(self, session):
        self.session = session
        self.coordinator._toolpost_adopt(session)
        if self.executor is not None:
            self.executor.adopt(session)

    def owner_of(self, name):
        """The module that comes first in the plan of those that mounted a tool of this name."""
        owners = [unit for unit in self.units.values() if name in unit.tools]
        return min(owners, key=lambda unit: unit.place, default=None)

    def unit(self, module, tool=None):
        """The unit of a module; of two that go by one name, the one that has the tool."""
        named = [unit for unit in self.units.values() if unit.id == module]
        return next((unit for unit in named if tool in unit.tools), named[0])

    def register_capability(self, name, value):
        if not self.tells_capabilities:
            return
        self.bridge.channel.send(type="capability", mount=self.number, name=shown(name)[:200], value=value)

    def tools_may_have_changed(self, before):
        """After a call: what it mounted or removed is told."""
        now = self.coordinator.mount_points["tools"]
        return now.keys() != before.keys() or any(now[name] is not tool for name, tool in before.items())

    async def end(self):
        """Cleans up backwards, then ends whatever is left."""
        for call in list(self.calls.values()):
            call.cancel()
        try:
            return await self.coordinator.cleanup()
        finally:
            for unit in self.units.values():
                unit.end()
            if self.executor is not None:
                self.executor.pool.shutdown(wait=False, cancel_futures=True)
            # What their tasks and threads start from now on is refused, so what is found is all there is.
            self.over = True
            await asyncio.get_running_loop().run_in_executor(None, children.kill_mount, self.number)
