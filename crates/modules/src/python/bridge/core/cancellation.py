"""The token that says whether a session is being stopped. Calls are stopped by the host; tools only read it."""

import enum


class CancellationState(enum.Enum):
    NONE = "none"
    GRACEFUL = "graceful"
    IMMEDIATE = "immediate"


class CancellationToken:
    def __init__(self):
        self._state = CancellationState.NONE
        self._callbacks = []
        self._running = {}

    state = property(lambda self: self._state.value)
    is_cancelled = property(lambda self: self._state is not CancellationState.NONE)
    is_graceful = property(lambda self: self._state is CancellationState.GRACEFUL)
    is_immediate = property(lambda self: self._state is CancellationState.IMMEDIATE)
    running_tools = property(lambda self: set(self._running))
    running_tool_names = property(lambda self: list(self._running.values()))

    def request_graceful(self):
        if self._state is not CancellationState.NONE:
            return False
        self._state = CancellationState.GRACEFUL
        return True

    def request_immediate(self):
        changed = self._state is not CancellationState.IMMEDIATE
        self._state = CancellationState.IMMEDIATE
        return changed

    def reset(self):
        self._state = CancellationState.NONE

    def register_tool_start(self, tool_call_id, tool_name):
        self._running[tool_call_id] = tool_name

    def register_tool_complete(self, tool_call_id):
        self._running.pop(tool_call_id, None)

    def on_cancel(self, callback):
        self._callbacks.append(callback)

    def register_child(self, child):
        self._callbacks.append(child.request_graceful)

    def unregister_child(self, child):
        self._callbacks = [each for each in self._callbacks if each != child.request_graceful]
