"""Plugins of a host file, of every kind that the suite needs."""

import os
import subprocess
import sys
import threading
import time

from a2e import A2EError, A2EMessage, A2EPlugin, ToolCallRequest, ToolPlugin, ToolResult


class StoreRequest(A2EMessage):
    type: str = "memory/store/req"
    entries: list[str]


class StoreResponse(A2EMessage):
    type: str = "memory/store/resp"
    req_id: str = ""
    stored: list[str]


class Memory(A2EPlugin):
    """The form of the SDK's base classes: host and configuration go into the constructor. It has no `name`."""

    def __init__(self, host_instance, config):
        super().setup(host_instance, config)
        self.kept = []

    def supported_messages(self):
        return {"memory/store/req": StoreRequest}

    def handle(self, message):
        self.audit_handle(message, True)
        if "fail" in message.entries:
            raise ValueError("the store is closed")
        if "refuse" in message.entries:
            return A2EError(req_id=message.id, code="quota", message="no room", detail={"left": 0}, retryable=True)
        self.kept += message.entries
        return StoreResponse(stored=list(self.kept))


class SayRequest(A2EMessage):
    type: str = "echo/say/req"
    text: str = ""


class SayResponse(A2EMessage):
    type: str = "echo/say/resp"
    req_id: str = ""
    by: str
    text: str


class Echo:
    """The form without arguments: `setup` comes afterwards."""

    name = "echo"

    def setup(self, host, config):
        self.host, self.config = host, config

    def set_push_callback(self, push):
        self.push = push

    def supported_messages(self):
        return {self.config.get("takes", "echo/say/req"): SayRequest}

    def handle(self, message):
        text = message.text
        if text == "later":
            threading.Timer(0.05, lambda: self.push({"type": "echo/later", "text": "outside"})).start()
        if text == "push":
            self.push({"type": "echo/event", "req_id": message.id, "text": "inside"})
        if text == "nothing":
            return None
        if text == "plain":
            return {"type": "echo/say/resp", "by": self.config["says"]}
        if text == "fail" and self.config["says"] == "high":
            raise ValueError("it is hoarse")
        return SayResponse(by=self.config["says"], text=text)

    def teardown(self):
        path = self.config.get("goodbye")
        if path:
            with open(path, "w") as file:
                file.write("gone")


class SpawnRequest(A2EMessage):
    type: str = "proc/spawn/req"
    cmd: list[str]


class StatusRequest(A2EMessage):
    type: str = "proc/status/req"


class SpawnResponse(A2EMessage):
    type: str = "proc/spawn/resp"
    req_id: str = ""
    output: str


class Procs(A2EPlugin):
    name = "proc"

    def __init__(self, host_instance, config):
        super().setup(host_instance, config)

    def supported_messages(self):
        return {"proc/spawn/req": SpawnRequest, "proc/status/req": StatusRequest}

    def handle(self, message):
        if message.type == "proc/status/req":
            return {"type": "proc/status/resp", "asked": message.type}
        return SpawnResponse(output=subprocess.run(message.cmd, capture_output=True, text=True).stdout)


class ChainRequest(A2EMessage):
    type: str = "chain/req"
    steps: list[str]


class ChainResponse(A2EMessage):
    type: str = "chain/resp"
    req_id: str = ""
    outputs: list


class Chain(A2EPlugin):
    """Reaches other plugins through the host."""

    name = "chain"

    def __init__(self, host_instance, config):
        super().setup(host_instance, config)

    def supported_messages(self):
        return {"chain/req": ChainRequest}

    def handle(self, message):
        outputs = []
        for step in message.steps:
            if step == "memory":
                answer = self.host_instance.get_plugin("notes").handle(StoreRequest(entries=["by the chain"]))
                outputs.append(getattr(answer, "stored", None) or answer.message)
            elif step == "tool":
                request = ToolCallRequest(tool_name="add", arguments={"left": 2, "right": 3})
                answer = self.host_instance.get_plugin("calculator").handle(request)
                outputs.append(answer.data.data if answer.data.success else answer.data.error)
            elif step == "send":
                answer = self.host_instance.send(SpawnRequest(cmd=["echo", "sent"]))
                outputs.append(getattr(answer, "output", None) or answer.message)
            else:
                outputs.append(self.host_instance.get_plugin(step) is None)
        return ChainResponse(outputs=outputs)


class UnrulyRequest(A2EMessage):
    type: str = "unruly/do/req"
    how: str


class Unruly(A2EPlugin):
    name = "unruly"

    def __init__(self, host_instance, config):
        super().setup(host_instance, config)

    def supported_messages(self):
        return {"unruly/do/req": UnrulyRequest, "ping": UnrulyRequest, "no spaces/req": UnrulyRequest}

    def handle(self, message):
        if message.how == "hang":
            time.sleep(3600)
        if message.how == "print":
            print("printed " * 1000)
        if message.how == "crash":
            os.kill(os.getpid(), 9)
        if message.how == "exit":
            sys.exit(3)
        if message.how == "flood":
            for number in range(5000):
                self.emit_event({"type": "unruly/event", "number": number})
        if message.how == "rubbish":
            return 17
        if message.how == "large":
            return {"type": "unruly/do/resp", "data": "x" * (20 << 20)}
        return {"type": "unruly/do/resp", "how": message.how}


class Calculator(ToolPlugin):
    """A tools plugin with everything that definitions and results can have."""

    name = "calculator"
    barrier = threading.Barrier(4)

    def __init__(self, host_instance, config):
        super().__init__(host_instance, config)
        self.extra = []

    def _list_tools(self):
        parameter = lambda name, kind: {"name": name, "type": kind, "description": f"the {name}", "required": True}
        add = {
            "name": "add", "description": "Adds two numbers",
            "input_parameters": [parameter("right", "integer"), parameter("left", "integer")],
            "output_parameters": [parameter("sum", "integer")],
            "streaming": False, "idempotent": True, "tags": ["math", "basic"], "version": "2.1.0",
            "toolkit": "arithmetic", "defer_loading": False,
        }
        plain = {"name": "meet", "description": "Waits for three others", "input_parameters": []}
        deferred = {"name": "whole", "description": "Gives a whole result", "defer_loading": True}
        give = {"name": "give", "description": "Gives a value", "input_parameters": [parameter("value", "string")]}
        grow = {"name": "grow", "description": "Brings another tool", "input_parameters": []}
        return [add, plain, deferred, give, grow, *self.extra]

    def _search_tools(self, query, filter_tags=None, tools=None):
        return [tool for tool in tools if query == "sums" and tool["name"] == "add"]

    def _execute_tool(self, tool_name, arguments):
        if tool_name == "add":
            self.emit("progress", {"pct": 50, "message": "half"})
            self.emit("chart", {"points": [1, 2]})
            return {"sum": arguments["left"] + arguments["right"], "order": list(arguments)}
        if tool_name == "meet":
            return {"place": self.barrier.wait(20)}
        if tool_name == "give":
            values = {"text": "one\ntwo", "list": [1, {"a": 2}], "number": 5, "no": False, "nothing": None}
            return ToolResult(success=True, tool_name=tool_name, data=values[arguments["value"]])
        if tool_name == "grow":
            self.extra = [{"name": "grown", "description": "New", "input_parameters": []}]
            return {}
        if tool_name == "grown":
            raise RuntimeError("it is too young")
        return ToolResult(success=False, tool_name=tool_name, data={"partial": 1}, summary="half done", truncated=True,
                          exit_code=4, error="it broke", error_code="brittle")
