"""A tool plugin as A2E hosts load them."""

import time
import types


class ToolCallRequest:
    def __init__(self, id, type, tool_name, arguments, **others):
        self.id, self.type, self.tool_name, self.arguments = id, type, tool_name, arguments


class NotesPlugin:
    name = "notes"

    def setup(self, host, config):
        self.host = host
        self.prefix = config.get("prefix", "")

    def set_event_callback(self, callback):
        self.emit = callback

    def supported_messages(self):
        return {"tool/list/req": types.SimpleNamespace, "tool/call/req": ToolCallRequest}

    def handle(self, message):
        if message.type == "tool/list/req":
            parameter = {"name": "text", "type": "string", "description": "what to say", "required": True}
            tools = [
                {"name": "say", "description": "Says something", "input_parameters": [parameter]},
                {"name": "fail", "description": "Fails", "input_parameters": []},
                {"name": "dawdle", "description": "Takes its time", "input_parameters": []},
            ]
            return types.SimpleNamespace(type="tool/list/resp", req_id=message.id, tools=tools)
        if message.tool_name == "dawdle":
            time.sleep(3600)
        if message.tool_name == "fail":
            data = {"success": False, "error": "it cannot be done", "error_code": "tool_error", "data": None}
        else:
            self.emit({"kind": "status", "data": {"message": "speaking"}})
            data = {"success": True, "data": {"said": self.prefix + message.arguments["text"]}}
        return types.SimpleNamespace(type="tool/call/resp", req_id=message.id, data=data)
