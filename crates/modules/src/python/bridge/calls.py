"""One call of one tool: run on its module's loop, stopped together with what it started, answered once."""

import asyncio
import inspect
import threading
import traceback

from . import children, current
from .a2e import InvalidMessage
from .channel import encoded
from .plain import shown, text
from .results import result_of
from .work import Work, aside

# How long a call that is told to stop may tidy up before what it started is killed.
HEAD_START = 0.25
# How often it is told again, and how long in between. The host has lost its patience before that.
MORE_WORDS, PAUSE = 20, 0.1
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
        self.begun = False
        self.stopped = False
        self.done = threading.Event()
        self.printed = {"stdout": [], "stderr": []}
        self.room = bridge.output_bytes
        self.events = 0
        # The tasks and threads that it has started.
        self.work = Work()
        # Set when a stopped call may not start processes any more.
        self.over = False

    def begin(self):
        self.mount.calls[self.id] = self
        self.bridge.call_begins(self)
        self.unit.loop.call_soon_threadsafe(self._start)

    def _start(self):
        self.task = self.unit.loop.create_task(self._run())
        self.task.add_done_callback(self._over)
        if self.stopped:
            self.task.cancel()

    def _over(self, _):
        """A task that is canceled before its first step runs none of its code, and is answered all the same."""
        if not self.begun:
            self._settle(self._failure("canceled", "the call was told to stop before it began"))

    async def _run(self):
        self.begun = True
        current.enter(self.unit, self)
        dispatch = self.mount.coordinator._tool_dispatch_contexts
        task = asyncio.current_task()
        dispatch[task] = {
            "tool_call_id": self.order.get("tool_call_id"),
            "parallel_group_id": self.order.get("parallel_group_id"),
            "traceparent": self.order.get("traceparent"),
            "tracestate": self.order.get("tracestate"),
        }
        before = dict(self.mount.coordinator.mount_points["tools"])
        try:
            line = await self._answer()
        finally:
            dispatch.pop(task, None)
            self.flush()
        self._settle(line)
        if self.mount.tools_may_have_changed(before):
            self.unit.gather()
            self.bridge.channel.send(type="tools", mount=self.mount.number)

    async def _answer(self):
        if "message" in self.order:
            return await self._answer_message()
        tool = self.unit.tools.get(self.order["tool"])
        if tool is None:
            return self._failure("unknown_tool", f"`{self.unit.id}` has no tool `{self.order['tool']}` any more")
        try:
            value = tool.execute(self.order["arguments"])
            if inspect.isawaitable(value):
                value = await value
            return result_of(value, self.bridge, self.id)
        except asyncio.CancelledError:
            if self.stopped:
                return self._failure("canceled", "the call was told to stop")
            return self._failure("raised", "the tool canceled itself")
        except BaseException as error:
            if self.stopped:
                return self._failure("canceled", f"the call was told to stop: {type(error).__name__}: {shown(error)}")
            trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            return self._failure("raised", f"{type(error).__name__}: {shown(error)}", trace[-4000:])

    async def _answer_message(self):
        """A message for a plugin of an A2E host file."""
        try:
            message = await self.unit.plugin.handle(self.order["message"])
            line = encoded({"type": "handled", "id": self.id, "message": message})
            if len(line) <= self.bridge.result_bytes:
                return line
            size = f"{len(line) >> 10} of {self.bridge.result_bytes >> 10} KiB (`amplifier.max_result`)"
            return self._failure("too_large", f"the plugin's answer is too large: {size}")
        except InvalidMessage as error:
            return self._failure("invalid_message", str(error))
        except asyncio.CancelledError:
            return self._failure("canceled" if self.stopped else "raised", "the call was told to stop")
        except BaseException as error:
            if self.stopped:
                return self._failure("canceled", f"the call was told to stop: {type(error).__name__}: {shown(error)}")
            trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            return self._failure("raised", shown(error) or type(error).__name__, trace[-4000:])

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
        aside(self._bury, line)

    def _bury(self, line):
        if self.stopped:
            # Its tasks have been told. A thread cannot be, and a task may not listen: while one of them works on, nothing
            # is answered, and the host ends the process in the end.
            self.over = True
            if self.work.is_going_on():
                # What it waits for may be a process.
                children.kill_call(self.owner)
                self.work.wait()
        children.kill_call(self.owner)
        self._send(line)

    def _send(self, line):
        self._tell_of_dropped()
        self.mount.calls.pop(self.id, None)
        self.bridge.call_ended(self)
        self.done.set()
        self.bridge.channel.send_line(line)

    def cancel(self):
        """Stops it. A module that blocks its loop does not hear of it; then nothing is answered, and the host ends the
        whole process."""
        if self.stopped:
            return
        self.stopped = True
        self.unit.loop.call_soon_threadsafe(self._cancel_task)
        aside(self._follow_up)

    def _cancel_task(self):
        if self.task is not None:
            self.task.cancel()
        self.work.cancel()

    def _follow_up(self):
        if self.done.wait(HEAD_START):
            return
        self.over = True
        for _ in range(MORE_WORDS):
            # Its children go, and with them whatever it waits for. It may have missed the first word, or have begun
            # something since.
            children.kill_call(self.owner, PAUSE)
            if self.done.is_set() or self.unit.loop.is_closed():
                return
            self.unit.loop.call_soon_threadsafe(self._cancel_task)
            if self.done.wait(PAUSE):
                return

    def counts(self):
        """Whether one more event may be told."""
        self.events += 1
        return self.events <= MOST_EVENTS

    def _tell_of_dropped(self):
        dropped = self.events - MOST_EVENTS
        if dropped > 0:
            told = {"dropped": dropped, "told": MOST_EVENTS}
            self.bridge.channel.send(type="event", call=self.id, event="toolpost:events_dropped", data=told)

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
