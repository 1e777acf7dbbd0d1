"""What goes on for a call besides its own task: the tasks and threads it has started. Code that runs in them is known to
be the call's, and a call that is told to stop has not stopped before they have."""

import _thread
import asyncio
import concurrent.futures
import contextvars
import inspect
import threading

from . import current
from .plain import shown


class Work:
    """The tasks and threads of one call that have not ended."""

    def __init__(self):
        self.changed = threading.Condition()
        self.tasks = set()
        # Of a pool's thread only what it does for the call counts: the thread itself waits for the next to come.
        self.threads = set()

    def add(self, kind, entry):
        with self.changed:
            kind.add(entry)

    def remove(self, kind, entry):
        with self.changed:
            kind.discard(entry)
            self.changed.notify_all()

    def cancel(self):
        """Asks everything to end that can be asked: a task, and what waits for a thread. A running thread cannot."""
        with self.changed:
            tasks, threads = list(self.tasks), list(self.threads)
        for task in tasks:
            try:
                task.get_loop().call_soon_threadsafe(task.cancel)
            except RuntimeError:
                # Its loop is closed, so it never runs again.
                self.remove(self.tasks, task)
        for entry in threads:
            if isinstance(entry, concurrent.futures.Future):
                entry.cancel()

    def is_going_on(self):
        with self.changed:
            return bool(self.tasks or self.threads)

    def wait(self):
        """Until nothing of it is left."""
        with self.changed:
            self.changed.wait_for(lambda: not self.tasks and not self.threads)


class Unruly(RuntimeError):
    """A module's code wanted to end more than itself."""


async def contained(function, *args):
    """What a module's function gives, awaited where it wants to be. `sys.exit` in it, and the like, would end the loop it
    runs on and the one that waits for it; here it is a failure like any other."""
    try:
        result = function(*args)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError as error:
        # Whoever tells a task to stop gets what it expects. Raised by itself it would stop those who wait.
        canceling = getattr(asyncio.current_task(), "cancelling", None)
        if canceling is None or canceling():
            raise
        raise Unruly("it canceled itself") from error
    except Exception:
        raise
    except BaseException as error:
        raise Unruly(f"{type(error).__name__}: {shown(error)}") from error


async def on_loop_of(unit, function, *args):
    """Runs a module's function where the module lives, so that what it holds there works. The running call stays the
    same."""
    if unit is None or unit.loop is asyncio.get_running_loop():
        return await contained(function, *args)
    call = current.call()

    async def entered():
        current.enter(unit, call)
        return await contained(function, *args)

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(entered(), unit.loop))


def aside(function, *args):
    """A thread of the bridge itself: it works for no call, whoever starts it."""
    thread = threading.Thread(target=function, args=args, daemon=True)
    contextvars.Context().run(thread.start)


def install():
    """Puts itself between modules and the ways to start a task or a thread."""
    _follow_tasks()
    _follow_threads()
    _follow_pools()


def _follow_tasks():
    # The loop's own method and not its task factory: a module may set another factory, and make loops of its own.
    create_task = asyncio.BaseEventLoop.create_task

    def followed(self, coro, **options):
        task = create_task(self, coro, **options)
        context = options.get("context")
        call = current.call() if context is None else current.call_in(context)
        if call is not None and not task.done():
            work = call.work
            work.add(work.tasks, task)
            task.add_done_callback(lambda ended: work.remove(work.tasks, ended))
        return task

    asyncio.BaseEventLoop.create_task = followed


def _follow_threads():
    start = threading.Thread.start

    def followed(self):
        context, call, run = contextvars.copy_context(), current.call(), self.run

        def run_for_call():
            # Taken back, so that the thread and what it runs do not hold each other.
            del self.run
            try:
                context.run(run)
            finally:
                if call is not None:
                    call.work.remove(call.work.threads, self)

        if not getattr(self, "_initialized", False) or self._started.is_set():
            # It is refused in the words of `threading`.
            return start(self)
        self.run = run_for_call
        if call is not None:
            call.work.add(call.work.threads, self)
        try:
            return start(self)
        except BaseException:
            if call is not None:
                call.work.remove(call.work.threads, self)
            raise

    threading.Thread.start = followed
    start_new_thread = _thread.start_new_thread

    def start_new(function, args, *kwargs):
        context, call, entry = contextvars.copy_context(), current.call(), object()

        def run_for_call(*args, **kwargs):
            try:
                context.run(function, *args, **kwargs)
            finally:
                if call is not None:
                    call.work.remove(call.work.threads, entry)

        if call is not None:
            call.work.add(call.work.threads, entry)
        try:
            return start_new_thread(run_for_call, args, *kwargs)
        except BaseException:
            if call is not None:
                call.work.remove(call.work.threads, entry)
            raise

    # `threading` keeps the one it has found before.
    _thread.start_new_thread = _thread.start_new = start_new


def _follow_pools():
    pool = concurrent.futures.ThreadPoolExecutor
    submit = pool.submit

    def followed(self, function, /, *args, **kwargs):
        context, call = contextvars.copy_context(), current.call()
        # The pool's threads outlive the call that happens to need them first.
        future = contextvars.Context().run(submit, self, context.run, function, *args, **kwargs)
        if call is not None:
            work = call.work
            work.add(work.threads, future)
            future.add_done_callback(lambda ended: work.remove(work.threads, ended))
        return future

    pool.submit = followed
