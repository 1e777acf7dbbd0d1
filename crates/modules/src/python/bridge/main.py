"""The main loop: hears the host on the main thread and hands everything on, so that nothing a module does delays it."""

import asyncio
import concurrent.futures
import datetime
import os
import signal
import sys
import threading
import time
import traceback

from . import children, core as cores, current, inspection, output, work
from .calls import Call
from .channel import Channel, encoded
from .coordinator import AskFailed
from .hooks import HookRegistry
from .mounts import Mount
from .plain import plain, shown, text

LONGEST_NOTE = 4000
# How long the search of a plugin may take, in seconds, and how many tools of one plugin it may name.
LONGEST_SEARCH, MOST_FOUND = 5, 200
# How long a session may take to end, in seconds.
LONGEST_END = 15
LONGEST_EVENT = 32 << 10
LARGEST_ASK = 4 << 20
# How much of a large result is handed over at once, in characters.
PIECE = 64 << 10


class Bridge:
    def __init__(self, channel, boot):
        self.channel = channel
        self.modules = boot["modules"]
        # What plugins of an A2E host file are told of their host.
        self.plugins = boot["plugins"]
        self.plan = plan_of(boot["modules"])
        self.result_bytes = boot["result_bytes"]
        self.kept_bytes = boot["kept_bytes"]
        self.output_bytes = boot["output_bytes"]
        # Results that were too large to be sent, by call, until the host has fetched them or wants them no more.
        self.kept = {}
        self.mounts = {}
        self.calls = {}
        self.asked = {}
        self.emits = {}
        self.numbers = 0
        self.lock = threading.Lock()
        # The working directory when the first of the running calls began.
        self.folder = None
        self.core = None
        self.loop = None

    def hear(self):
        """Until the host hangs up."""
        threading.Thread(target=self._drive, name="driver", daemon=True).start()
        while self.loop is None:
            threading.Event().wait(0.001)
        for message in self.channel.lines():
            try:
                getattr(self, "on_" + message["type"])(message)
            except BaseException as error:
                self.refuse(message, error)

    def _drive(self):
        """A loop on which no module's code runs: it asks handlers on their own."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.call_soon(lambda: setattr(self, "loop", loop))
        while True:
            try:
                loop.run_forever()
            except BaseException as error:
                self.note("error", f"{type(error).__name__}: {shown(error)}")

    def refuse(self, message, error):
        if "id" in message:
            failure = f"{type(error).__name__}: {shown(error)}"
            self.channel.send(type="failure", id=message["id"], code="bridge", message=failure)

    def in_background(self, message, task):
        """For what takes long. Its failure is the answer."""

        def run():
            try:
                self.channel.send_line(encoded(task()))
            except BaseException as error:
                self.refuse(message, error)

        work.aside(run)

    def on_mount(self, message):
        mount = Mount(self, message["mount"], message["session"])
        self.mounts[mount.number] = mount
        limit = message["limit_ms"] / 1000

        def task():
            modules = mount.begin(message["capabilities"], limit, message["without"], message["apart"])
            return {"type": "mounted", "id": message["id"], "modules": modules}

        self.in_background(message, task)

    def on_adopt(self, message):
        self.mounts[message["mount"]].adopt(message["session"])

    def on_list(self, message):
        mount = self.mounts[message["mount"]]
        self.in_background(
            message, lambda: {"type": "listed", "id": message["id"], "modules": mount.described(10, afresh=True)}
        )

    def on_call(self, message):
        mount = self.mounts[message["mount"]]
        Call(self, mount, mount.unit(message["module"], message["tool"]), message).begin()

    def on_message(self, message):
        mount = self.mounts[message["mount"]]
        Call(self, mount, mount.unit(message["module"]), message).begin()

    def on_search(self, message):
        mount = self.mounts[message["mount"]]
        asked = [
            (unit, unit.submit(lambda unit=unit: unit.plugin.tools.search(message["query"], message["tags"])))
            for unit in mount.units.values()
            if unit.plugin is not None and unit.plugin.tools is not None and not unit.is_missing()
        ]

        def task():
            until, found = time.monotonic() + LONGEST_SEARCH, []
            for unit, future in asked:
                try:
                    names = future.result(max(0, until - time.monotonic()))
                except BaseException:
                    # A search that fails or takes long finds nothing; the host has its own.
                    continue
                found += [{"module": unit.id, "tool": text(name)} for name in names[:MOST_FOUND]]
            return {"type": "found", "id": message["id"], "tools": found}

        self.in_background(message, task)

    def call_begins(self, call):
        with self.lock:
            if not self.calls:
                self.folder = _folder()
            self.calls[call.id] = call

    def call_ended(self, call):
        """The working directory is the process's. A call that changed it does not leave it to the next one."""
        with self.lock:
            self.calls.pop(call.id, None)
            if not self.calls and self.folder is not None and _folder() != self.folder:
                try:
                    os.chdir(self.folder)
                except OSError as error:
                    self.note("warning", f"the working directory cannot be restored: {shown(error)}")

    def keep(self, call, whole):
        """Keeps a result, as much of it as may be kept; how many bytes that is."""
        whole = whole[: self.kept_bytes]
        if whole:
            self.kept[call] = whole.decode("utf-8", "ignore")
        return len(whole)

    def on_piece(self, message):
        whole, at = self.kept[message["call"]], message["at"]
        self.channel.send(type="piece", id=message["id"], text=whole[at : at + PIECE])

    def on_release(self, message):
        self.kept.pop(message["call"], None)

    def on_cancel(self, message):
        if message["id"] in self.calls:
            self.calls[message["id"]].cancel()
        elif message["id"] in self.emits:
            self.loop.call_soon_threadsafe(self.emits[message["id"]].cancel)

    def on_emit(self, message):
        self.loop.call_soon_threadsafe(self._begin_emit, message)

    def _begin_emit(self, message):
        task = self.loop.create_task(self._emit(message))
        self.emits[message["id"]] = task
        task.add_done_callback(lambda _: self.emits.pop(message["id"], None))

    async def _emit(self, message):
        try:
            mount = self.mounts[message["mount"]]
            registry, asked = mount.coordinator.hooks, mount.hearing(message["event"])
            limit = message["limit_ms"] / 1000
            outcome = await registry.ask(message["event"], message["data"], message["standings"], limit)
            self.channel.send(type="emitted", id=message["id"], result=outcome.fields(), asked=asked)
        except BaseException as error:
            self.refuse(message, error)

    def on_tell(self, message):
        mount = self.mounts.get(message["mount"])
        if mount is not None:
            self.tell(mount, message["event"], message["data"])

    def tell(self, mount, event, data):
        """Handlers hear it, and nobody waits for them."""
        asyncio.run_coroutine_threadsafe(mount.coordinator.hooks.ask(event, data), self.loop)

    def on_unmount(self, message):
        mount = self.mounts.pop(message["mount"], None)

        def task():
            problems = self.end(mount) if mount is not None else []
            return {"type": "unmounted", "id": message["id"], "problems": plain(problems)}

        self.in_background(message, task)

    def on_inspect(self, message):
        mount = self.mounts[message["mount"]]

        def task():
            return {"type": "inspected", "id": message["id"], "report": inspection.run(mount, message["request"])}

        self.in_background(message, task)

    def end(self, mount):
        try:
            return asyncio.run_coroutine_threadsafe(mount.end(), self.loop).result(LONGEST_END)
        except concurrent.futures.TimeoutError:
            return [f"the session did not end within {LONGEST_END} seconds"]
        finally:
            mount.over = True
            children.kill_mount(mount.number)

    def on_answer(self, message):
        loop, future = self.asked.pop(message["ask"], (None, None))
        if future is None or loop.is_closed():
            return

        def settle():
            if future.done():
                return
            if "error" in message:
                future.set_exception(AskFailed(message["error"]))
            else:
                future.set_result(message["value"])

        loop.call_soon_threadsafe(settle)

    async def ask(self, call, **wanted):
        """Asks the host for something, on behalf of a call."""
        wanted = plain(wanted)
        if len(encoded(wanted)) > LARGEST_ASK:
            raise AskFailed(f"what is asked for has more than {LARGEST_ASK >> 20} MiB")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self.lock:
            self.numbers += 1
            number = self.numbers
        self.asked[number] = (loop, future)
        try:
            self.channel.send(type="ask", ask=number, call=call.id, **wanted)
            return await future
        finally:
            self.asked.pop(number, None)

    def note(self, level, message, status=False, log=False):
        """A line for whoever watches the running call, or for the operator where none is running."""
        call = current.call()
        if call is None and log and level in ("info", "debug"):
            return
        if call is None or call.counts():
            written = text(message)[:LONGEST_NOTE]
            self.channel.send(
                type="note", call=call and call.id, level=level, message=written, status=status
            )

    def note_traceback(self, module, error):
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.note("warning", f"{module}: {trace[-LONGEST_NOTE:]}")

    def witness(self, event, data):
        """What a module emits is told to the host as an event of the running call."""
        call = current.call()
        if call is None or not call.counts():
            return
        told = plain(data)
        if len(encoded(told)) > LONGEST_EVENT:
            told = {"cut": "the event is too large to be told"}
        at = datetime.datetime.now(datetime.timezone.utc).isoformat()
        self.channel.send(type="event", call=call.id, event=shown(event), at=at, data=told)


def _folder():
    try:
        return os.getcwd()
    except OSError:
        # It was removed.
        return None


def plan_of(modules):
    """The mount plan as modules see it in `coordinator.config`."""
    plan = {"session": {"orchestrator": "toolpost", "context": "toolpost"}, "providers": [], "tools": [], "hooks": []}
    for order in modules:
        section = "hooks" if order["kind"] == "hook" else "tools"
        plan[section].append({"module": order["id"], "config": order["config"]})
    return plan


def run(descriptor, rest, boot, sources):
    channel = Channel(descriptor, rest)
    if sys.version_info < (3, 10):
        channel.send(type="refused", message=f"Python {sys.version.split()[0]} is too old: 3.10 is the oldest that does")
        os._exit(3)
    # Last, so that nothing there stands in for what the environment has.
    sys.path.extend(path for path in boot["later_paths"] if path not in sys.path)
    bridge = Bridge(channel, boot)
    output.install(bridge)
    # Else a module could stop the reading of the host's messages. Children have the usual answer to the signal.
    signal.signal(signal.SIGINT, lambda *_: None)
    children.install(boot["parent_adopts"])
    work.install()
    try:
        bridge.core = cores.choose(boot["core"], sources, boot["files"])
    except cores.Missing as error:
        channel.send(type="refused", message=str(error))
        os._exit(3)
    HookRegistry.result_class = bridge.core.HookResult
    HookRegistry.witness = staticmethod(bridge.witness)
    version = ".".join(map(str, sys.version_info[:3]))
    channel.send(
        type="ready",
        core={"real": bridge.core.real, "version": bridge.core.version, "python": version},
        note=bridge.core.note,
    )
    bridge.hear()
    for mount in list(bridge.mounts.values()):
        try:
            bridge.end(mount)
        except BaseException:
            pass
    os._exit(0)
