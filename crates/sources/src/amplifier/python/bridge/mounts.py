"""A mount: all modules, mounted once for one session, on one coordinator."""

import asyncio
import concurrent.futures
import inspect
import threading

from . import children, coordinator as coordinators
from .plain import shown
from .units import Unit


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
        # Set when its modules may not start processes any more.
        self.over = False
        self.coordinator = coordinators.make(bridge.core.coordinator, self, bridge.plan)

    def begin(self, capabilities, limit, without):
        """Mounts one module after the other, in the plan's order. One that hangs is passed over after its time; those
        in `without`, by their place in the plan, are not tried again, for the reason given there."""
        for name, value in capabilities.items():
            self.coordinator.register_capability(name, value)
        self.coordinator.register_capability("toolpost.call_tool", coordinators.call_tool_of(self.bridge))
        self.tells_capabilities = True
        for place, order in enumerate(self.bridge.modules):
            unit = Unit(self, order)
            key = order["id"]
            while key in self.units:
                key += "+"
            self.units[key] = unit
            if str(place) in without:
                unit.problem("unknown", without[str(place)], fatal=True)
                continue
            self._says_mounting(place)
            unit.begin()
            self._within(unit, unit.mount_module, limit, "mounting it")
        for place, unit in enumerate(self.units.values()):
            ready = getattr(unit.module, "on_session_ready", None)
            if callable(ready) and not any(each["fatal"] for each in unit.problems):
                self._says_mounting(place)
                self._within(unit, lambda unit=unit, ready=ready: self._ready(unit, ready), limit, "`on_session_ready`")
        return self.described(limit)

    def _says_mounting(self, place):
        """If the process dies now, the host knows of whom."""
        self.bridge.channel.send(type="mounting", mount=self.number, place=place)

    def _within(self, unit, work, limit, what):
        future = unit.submit(work)
        try:
            return future.result(limit)
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

    def described(self, limit):
        """Each module as it is, asked where it lives."""
        listed = []
        for unit in self.units.values():
            found = None
            if not any(each["fatal"] for each in unit.problems):
                found = self._within(unit, unit.describe, limit, "describing its tools")
            listed.append(found or {"module": unit.id, "tools": [], "events": [], "problems": unit.problems})
        return listed

    def hearing(self, event):
        """The modules that have handlers for an event now."""
        handlers = self.coordinator.hooks._hearing(event)
        return sorted({handler.unit.id for handler in handlers if handler.unit is not None})

    def adopt(self, session):
        self.session = session
        self.coordinator._toolpost_adopt(session)

    def owner_of(self, name):
        return next((unit for unit in self.units.values() if name in unit.tools), None)

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
            # What their tasks and threads start from now on is refused, so what is found is all there is.
            self.over = True
            await asyncio.get_running_loop().run_in_executor(None, children.kill_mount, self.number)
