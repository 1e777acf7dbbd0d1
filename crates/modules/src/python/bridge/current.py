"""Whose code is running: which unit's, and on behalf of which call."""

import contextvars
import threading

_CALL = contextvars.ContextVar("toolpost_call", default=None)
_UNIT = contextvars.ContextVar("toolpost_unit", default=None)
# Callbacks of a unit's loop may run in a context that knows nothing; whose thread it is, is known all the same.
_UNITS_OF_THREADS = {}


def enter(unit, call=None):
    """From here on, in this task and whatever it starts, code runs for this unit and call."""
    _UNIT.set(unit)
    _CALL.set(call)


def call():
    return _CALL.get()


def call_in(context):
    return context.get(_CALL)


def unit():
    return _UNIT.get() or _UNITS_OF_THREADS.get(threading.get_ident())


def thread_belongs_to(owner):
    _UNITS_OF_THREADS[threading.get_ident()] = owner


def thread_ends():
    _UNITS_OF_THREADS.pop(threading.get_ident(), None)
