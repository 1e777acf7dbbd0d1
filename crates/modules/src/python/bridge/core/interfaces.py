"""What tools, hooks and approval providers look like. Members decide, not base classes."""

from .records import Record


class Tool:
    """Has `name`, `description`, `input_schema` and an async `execute(input)`."""


class HookHandler:
    """Is called with an event's name and its data."""


class ApprovalProvider:
    """Has an async `request_approval(request)`."""


class ApprovalRequest(Record):
    """What is to be approved."""

    required = ("tool_name", "action", "risk_level")
    fields = {"tool_name": None, "action": None, "details": {}, "risk_level": None, "timeout": None}


class ApprovalResponse(Record):
    """The answer."""

    required = ("approved",)
    fields = {"approved": None, "reason": None, "remember": False}
