"""A unit: one module in one session, on a thread and an event loop of its own. A module that blocks its loop delays
nobody but itself."""

import asyncio
import inspect
import os
import sys
import threading
import traceback

from . import current, loading
from .channel import encoded
from .plain import plain, shown, text
from .plugin_tools import PluginTool
from .work import contained

MOST_TOOLS = 256
LONGEST_NAME = 256
LONGEST_DESCRIPTION = 16 << 10
LARGEST_SCHEMA = 256 << 10
MOST_PROBLEMS, LONGEST_PROBLEM = 300, 4000

# The library of Amplifier's own application. Modules that start agents or choose models import it, and need the
# application around it as well. A hook that needs it is missing all the same: it may be a guard.
APPLICATION = "amplifier_foundation"
NEEDS_APPLICATION = (
    f"it needs `{APPLICATION}`, the library of Amplifier's application for agents, models and sessions, which is no "
    "part of this host; a module that lists it under `dependencies` of its pyproject.toml gets it"
)


class Unit:
    def __init__(self, mount, place, order):
        self.mount = mount
        # In the plan.
        self.place = place
        self.order = order
        self.id = order["id"]
        self.loop = None
        self.tools = {}
        self.returned = "nothing"
        self.problems = []
        # Its `mount` returned nothing and mounted nothing, which is its own decision.
        self.declined = False
        # Why it brings nothing here, where that is not its own decision and no fault either.
        self.declined_because = None
        self.module = None
        # Of an entry of an A2E host file.
        self.plugin = None
        self._begun = threading.Event()

    def begin(self):
        """Starts the thread, where it is not running; afterwards there is a loop."""
        if self.loop is not None:
            return
        name = f"{self.id}@{self.mount.number}"
        threading.Thread(target=self._run, name=name, daemon=True).start()
        self._begun.wait()

    def _run(self):
        current.thread_belongs_to(self)
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        current.enter(self)
        self.loop.call_soon(self._begun.set)
        self.stopping = False
        while not self.stopping:
            try:
                self.loop.run_forever()
            except BaseException as error:
                # `sys.exit` in a task of a module ends the loop; that is not for the module to decide.
                self.mount.bridge.note("error", f"{self.id}: {type(error).__name__}: {shown(error)}")
        try:
            self._cancel_all()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except BaseException as error:
            self.mount.bridge.note("error", f"{self.id}: {type(error).__name__}: {shown(error)}")
        finally:
            self.loop.close()
            current.thread_ends()

    def _cancel_all(self):
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=1))

    def end(self):
        self.stopping = True
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)

    def submit(self, work):
        """Runs a coroutine function on the loop; a future of the concurrent kind."""

        async def entered():
            current.enter(self)
            return await contained(work)

        return asyncio.run_coroutine_threadsafe(entered(), self.loop)

    def problem(self, reason, message, fatal=False):
        if fatal or len(self.problems) < MOST_PROBLEMS:
            self.problems.append({"reason": reason, "message": text(message)[:LONGEST_PROBLEM], "fatal": fatal})

    async def mount_module(self):
        """Imports and mounts, once. Whatever goes wrong becomes a problem of this module alone."""
        coordinator = self.mount.coordinator
        try:
            if self.order["package"] == "plugin":
                from . import a2e

                returned = await a2e.mount(self, coordinator)
            else:
                self.module, mount = loading.load(self.order)
                returned = mount(coordinator, self.order["config"])
                if inspect.isawaitable(returned):
                    returned = await returned
        except asyncio.CancelledError:
            raise
        except loading.LoadError as error:
            self.problem(error.reason, str(error), fatal=True)
            return
        except ImportError as error:
            if self.order["kind"] == "tool" and _root_of(error) == APPLICATION:
                self.declined, self.declined_because = True, NEEDS_APPLICATION
                return
            python = f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
            message = f"it cannot be imported: {shown(error)}{self._hint(error)} (with {python})"
            self.problem("unknown", message, fatal=True)
            return
        except BaseException as error:
            message = f"{type(error).__name__}: {shown(error)}{self._raised_at(error)}"
            self.problem("validation_failed", message, fatal=True)
            self.mount.bridge.note_traceback(self.id, error)
            return
        self.gather()
        await self._take_returned(returned)

    def is_missing(self):
        return any(problem["fatal"] for problem in self.problems)

    def must_bring_something(self):
        """A module that returned nothing and brought nothing has declined. Any other tool module without tools is not
        there. One that hears events has its use all the same."""
        hears = self.mount.coordinator.hooks.events_of(self)
        if self.is_missing() or self.tools or hears or self.plugin is not None or self.declined:
            return
        if not self.problems and self.returned == "nothing":
            self.declined = True
            return
        if self.order["kind"] != "tool":
            return
        if not self.problems:
            self.problem("validation_failed", "it mounted no tool and returned none")
        # What became of its tools is told already, and is why nothing is left.
        for problem in self.problems:
            problem["fatal"] = True

    def _hint(self, error):
        missing = _root_of(error)
        if missing == APPLICATION:
            return f"; {NEEDS_APPLICATION}"
        if missing == "amplifier_core" and not self.mount.bridge.core.real:
            return "; the stand-in for `amplifier_core` has no such part: install `amplifier-core` for this module"
        if isinstance(error, ModuleNotFoundError) and missing and not missing.startswith("amplifier_module_"):
            return "; list its package under `dependencies` in pyproject.toml"
        return ""

    def _raised_at(self, error):
        """The last line of the module's own code in a traceback."""
        file = attribute(attribute(self, "module"), "__file__")
        if not isinstance(file, str):
            return ""
        folder = os.path.dirname(file)
        lines = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename.startswith(folder + os.sep)
        ]
        if not lines:
            return ""
        path, line = lines[-1]
        return f" (at `{os.path.relpath(path, folder)}:{line}`)"

    async def _take_returned(self, returned):
        """Every form works: a tool, mounted or not, something to call at the end, or nothing."""
        if returned is None:
            return
        if is_tool(returned):
            self.returned = "tool"
            if not any(tool is returned for tool in self.tools.values()) and not self.tools:
                await self.mount.coordinator.mount("tools", returned, name=returned.name)
                self.gather()
            return
        if callable(returned):
            self.returned = "cleanup"
            self.mount.coordinator.register_cleanup(returned)
            return
        self.returned = type(returned).__name__

    def gather(self):
        """Gives each new tool to the module whose code mounted it, and to this one where that is not known."""
        point = self.mount.coordinator.mount_points["tools"]
        with self.mount.gathering:
            for name, tool in point.as_written():
                if not any(unit.tools.get(name) is tool for unit in self.mount.units.values()):
                    (point.writer(name, tool) or self)._take(point, name, tool, self.mount.owner_of(name))
            for unit in self.mount.units.values():
                for name in [name for name in unit.tools if name not in point]:
                    del unit.tools[name]

    def _take(self, point, name, tool, owner):
        """The coordinator has one tool of a name: that of the module that comes first in the plan, also where another was
        faster. The host serves both, the second one under a longer name."""
        if owner is not None and owner is not self:
            if self.mount.settled or self.is_missing() or owner.place < self.place:
                point[name] = owner.tools[name]
            if self.is_missing():
                return
        problem = None
        if not isinstance(name, str) or not callable(attribute(tool, "execute")):
            problem = f"what it mounted as `{shown(name)[:200]}` is no tool: no `execute`"
        elif len(name) > LONGEST_NAME:
            problem = f"the name `{text(name)[:50]}…` has more than {LONGEST_NAME} characters"
        elif len(self.tools) >= MOST_TOOLS and name not in self.tools:
            problem = f"it mounts more than {MOST_TOOLS} tools"
        if problem is None:
            self.tools[name] = tool
        else:
            if point.get(name) is tool:
                del point[name]
            self.problem("validation_failed", problem)

    async def describe(self):
        """The module as it is now. Descriptions and schemas may be computed, so they are read each time."""
        # What is wrong with a description is said anew with each.
        problems = list(self.problems)
        tools = [described(name, tool, problems) for name, tool in self.tools.items()]
        events = self.mount.coordinator.hooks.events_of(self)
        described_unit = {
            "module": self.id,
            "tools": tools,
            "events": events,
            "returned": self.returned,
            "declined": self.declined and not tools and not events,
            "declined_because": self.declined_because,
            "problems": problems,
        }
        return {**described_unit, "plugin": self.plugin.described()} if self.plugin else described_unit

    async def describe_afresh(self):
        """The same after a plugin was asked for its tools again."""
        if self.plugin is not None and self.plugin.tools is not None:
            await self.plugin.tools.relist(self.mount.coordinator)
            self.gather()
        return await self.describe()


def described(name, tool, problems):
    """A tool for the list. What is too large for it is left out, and that is a problem."""

    def problem(message):
        problems.append({"reason": "validation_failed", "message": f"`{text(name)}`: {message}", "fatal": False})

    schema = attribute(tool, "input_schema")
    if callable(schema):
        schema = _called(schema)
    description = attribute(tool, "description")
    metadata = _called(attribute(tool, "get_metadata"))
    schema = plain(schema) if isinstance(schema, dict) else None
    if schema is not None and len(encoded(schema)) > LARGEST_SCHEMA:
        problem(f"its schema has more than {LARGEST_SCHEMA >> 10} KiB, so any object is taken")
        schema = None
    description = text(description) if isinstance(description, str) else ""
    if len(description.encode()) > LONGEST_DESCRIPTION:
        problem(f"its description has more than {LONGEST_DESCRIPTION >> 10} KiB and is cut")
        description = description.encode()[:LONGEST_DESCRIPTION].decode("utf-8", "ignore")
    own_name = attribute(tool, "name")
    asks = attribute(tool, "require_approval") or (isinstance(metadata, dict) and metadata.get("requires_approval"))
    entry = {
        "name": text(name),
        "own_name": text(own_name)[:LONGEST_NAME] if isinstance(own_name, str) else None,
        "description": description,
        "schema": schema,
        "asks": asks is True,
    }
    if isinstance(tool, PluginTool):
        definition = tool.definition
        if len(encoded(definition)) > LARGEST_SCHEMA:
            problem(f"its definition has more than {LARGEST_SCHEMA >> 10} KiB, so any object is taken")
            definition = {"name": entry["name"], "description": description}
        entry["definition"] = definition
    return entry


def _root_of(error):
    """The package that an import missed."""
    name = getattr(error, "name", None)
    return name.split(".")[0] if isinstance(name, str) else None


def attribute(thing, name):
    try:
        return getattr(thing, name, None)
    except BaseException:
        return None


def _called(function):
    try:
        return function() if callable(function) else None
    except BaseException:
        return None


def is_tool(thing):
    """Members decide: Amplifier's own protocol class cannot be asked."""
    return (
        not isinstance(thing, type)
        and isinstance(attribute(thing, "name"), str)
        and callable(attribute(thing, "execute"))
    )
