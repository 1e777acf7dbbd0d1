"""One call of one tool: run on its module's loop, stopped together with what it started, answered once."""

import asyncio
import concurrent.futures
import inspect
import threading
import traceback

from . import children, current
from .channel import encoded
from .plain import shown, text
from .results import result_of

# How long a call that is told to stop may tidy up before what it started is killed.
HEAD_START = 0.25
MOST_EVENTS = 1000


class Call:
    def __init__(self, bridge, mount, unit, order):
        self.bridge = bridge
        self.mount = mount
        self.unit = unit
        self.id = order["id"]
        self.order = order
        self.owner = children.Owner(mount.number, self.id)
        self.task = None
        self.stopped = False
        self.done = threading.Event()
        self.printed = {"stdout": [], "stderr": []}
        self.room = bridge.output_bytes
        self.events = 0
        # What it has left to threads.
        self.threads = []

    def begin(self):
        self.mount.calls[self.id] = self
        self.bridge.calls[self.id] = self
        self.unit.loop.call_soon_threadsafe(self._start)

    def _start(self):
        self.task = self.unit.loop.create_task(self._run())
        if self.stopped:
            self.task.cancel()

    async def _run(self):
        current.enter(self.unit, self)
        dispatch = self.mount.coordinator._tool_dispatch_contexts
        task = asyncio.current_task()
        dispatch[task] = {
            "tool_call_id": self.order.get("tool_call_id"),
            "parallel_group_id": self.order.get("parallel_group_id"),
        }
        before = dict(self.mount.coordinator.mount_points["tools"])
        try:
            line = await self._answer()
        finally:
            dispatch.pop(task, None)
            self.flush()
        self._settle(line)
        if self.mount.tools_may_have_changed(before):
            self.unit.gather(before)
            self.bridge.channel.send(type="tools", mount=self.mount.number)

    async def _answer(self):
        tool = self.unit.tools.get(self.order["tool"])
        if tool is None:
            return self._failure("unknown_tool", f"`{self.unit.id}` has no tool `{self.order['tool']}` any more")
        try:
            value = tool.execute(self.order["arguments"])
            if inspect.isawaitable(value):
                value = await value
            return result_of(value, self.bridge.core, self.id, self.bridge.result_bytes)
        except asyncio.CancelledError:
            if self.stopped:
                return self._failure("canceled", "the call was told to stop")
            return self._failure("raised", "the tool canceled itself")
        except BaseException as error:
            if self.stopped:
                return self._failure("canceled", f"the call was told to stop: {type(error).__name__}: {shown(error)}")
            trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            return self._failure("raised", f"{type(error).__name__}: {shown(error)}", trace[-4000:])

    def _failure(self, code, message, trace=None):
        failure = {"type": "failure", "id": self.id, "code": code, "message": message}
        return encoded({**failure, "traceback": text(trace)} if trace else failure)

    def _settle(self, line):
        """The answer goes out when nothing is left that should not be."""
        failed = line.startswith(b'{"type":"failure"')
        if not failed and not self.stopped:
            children.forget_call(self.owner)
            self._send(line)
            return
        # Looking for processes blocks, and this is the module's own loop.
        threading.Thread(target=self._bury, args=(line,), daemon=True).start()

    def _bury(self, line):
        children.kill_call(self.owner)
        if self.stopped:
            # A thread cannot be stopped from outside. While one works on, nothing is answered, and the host ends the
            # process in the end.
            concurrent.futures.wait(self.threads)
            children.kill_call(self.owner)
        self._send(line)

    def _send(self, line):
        self.mount.calls.pop(self.id, None)
        self.bridge.calls.pop(self.id, None)
        self.done.set()
        self.bridge.channel.send_line(line)

    def cancel(self):
        """Stops it. A module that blocks its loop does not hear of it; then nothing is answered, and the host ends the
        whole process."""
        if self.stopped:
            return
        self.stopped = True
        self.unit.loop.call_soon_threadsafe(self._cancel_task)
        threading.Thread(target=self._follow_up, daemon=True).start()

    def _cancel_task(self):
        if self.task is not None:
            self.task.cancel()

    def _follow_up(self):
        if not self.done.wait(HEAD_START):
            # Its children go, and with them whatever it waits for. It may have missed the first word.
            children.kill_call(self.owner)
            if not self.done.is_set():
                self.unit.loop.call_soon_threadsafe(self._cancel_task)

    def counts(self):
        """Whether one more event may be told."""
        self.events += 1
        return self.events <= MOST_EVENTS

    def write(self, stream, written):
        """What the call prints, told a line at a time and up to a limit."""
        pending = self.printed[stream]
        pending.append(written)
        if "\n" in written or sum(map(len, pending)) > 4096:
            self.flush(stream)

    def flush(self, only=None):
        for stream, pending in self.printed.items():
            if pending and only in (None, stream):
                printed = text("".join(pending))
                pending.clear()
                if self.room > 0:
                    shown_part = printed[: self.room]
                    self.bridge.channel.send(type="output", call=self.id, stream=stream, text=shown_part)
                self.room -= len(printed)
