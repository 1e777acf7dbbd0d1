"""A stand-in for the A2E SDK: the base classes that plugins build on, with the same constructors and meaning."""

import time
import uuid

from pydantic import BaseModel, Field


class A2EMessage(BaseModel):
    type: str
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    version: str = "1.0"
    ts: float = Field(default_factory=time.time)

    def to_dict(self):
        return self.model_dump()


class A2EError(A2EMessage):
    type: str = "error"
    req_id: str = ""
    code: str
    message: str = ""
    detail: dict = Field(default_factory=dict)
    retryable: bool = False


class ToolEvent(A2EMessage):
    type: str = "tool/event"
    kind: str = "status"
    req_id: str = ""
    data: dict = Field(default_factory=dict)
    seq: int = 0


class ToolListRequest(A2EMessage):
    type: str = "tool/list/req"
    filter_kind: str = ""
    filter_tags: list[str] = Field(default_factory=list)
    query: str = ""
    include_deferred: bool = False


class ToolListResponse(A2EMessage):
    type: str = "tool/list/resp"
    req_id: str = ""
    tools: list[dict] = Field(default_factory=list)


class ToolCallRequest(A2EMessage):
    type: str = "tool/call/req"
    session_id: str = ""
    tool_name: str = ""
    arguments: dict
    correlation_id: str = ""
    streaming: bool = False
    timeout: int = 30


class ToolResult(BaseModel):
    success: bool
    tool_name: str
    data: object = None
    summary: object = None
    truncated: bool = False
    exit_code: int | None = None
    error: str | None = None
    error_code: str | None = None
    duration_ms: int = 0
    events: list[ToolEvent] = Field(default_factory=list)


class ToolCallResponse(A2EMessage):
    type: str = "tool/call/resp"
    req_id: str = ""
    data: ToolResult
    created_at: float = Field(default_factory=time.time)


class A2EPlugin:
    priority = 0
    exclusive = False

    def setup(self, host_instance, config):
        self.host_instance = host_instance
        self.config = config
        self._audit = config.get("audit_log")
        self._session_id = config.get("session_id")

    def caps_metadata(self):
        # `name` is missing in many classes, and this raises then.
        return {"name": self.name, "type": self.config["type"], "priority": self.config["priority"],
                "exclusive": self.config["exclusive"]}

    def emit_event(self, event):
        self.host_instance._send(event)

    def teardown(self):
        pass

    def audit_handle(self, message, success):
        if self._audit:
            self._audit.record({"ts": time.time(), "session_id": self._session_id, "req_id": message.id,
                                "success": success, "by": type(self).__name__})


class ToolPlugin(A2EPlugin):
    def __init__(self, host_instance, config):
        super().setup(host_instance, config)
        self._event_cb = None

    def emit(self, kind, data):
        if self._event_cb:
            self._event_cb(ToolEvent(kind=kind, data=data))

    def supported_messages(self):
        return {"tool/list/req": ToolListRequest, "tool/call/req": ToolCallRequest}

    def _search_tools(self, query, filter_tags=None, tools=None):
        return [tool for tool in tools or self._list_tools() if query.lower() in tool["name"].lower()]

    def handle(self, message):
        if isinstance(message, ToolListRequest):
            tools = self._list_tools()
            if message.query:
                tools = self._search_tools(message.query, filter_tags=message.filter_tags or None, tools=tools)
            return ToolListResponse(req_id=message.id, tools=tools)

        def emit(event):
            event.req_id = message.id
            self.emit_event(event)

        self._event_cb = emit
        try:
            result = self._execute_tool(message.tool_name, message.arguments)
        except Exception as error:
            return A2EError(req_id=message.id, code="tool_error", message=str(error))
        if not isinstance(result, ToolResult):
            payload = result if isinstance(result, dict) else {"value": result}
            result = ToolResult(success=True, tool_name=message.tool_name, data=payload,
                                exit_code=payload.get("exit_code"))
        return ToolCallResponse(req_id=message.id, data=result)
