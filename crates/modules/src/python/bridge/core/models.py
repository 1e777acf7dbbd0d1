"""Results of tools and of hooks."""

import base64
import binascii
import decimal
import json
import re

from .records import Record

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_YES = {"1", "true", "t", "yes", "y", "on"}
_NO = {"0", "false", "f", "no", "n", "off"}


def _truth(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    word = value.lower() if isinstance(value, str) else None
    if word in _YES or word in _NO:
        return word in _YES
    raise ValueError(f"`{value!r}` is neither yes nor no")


def _decimal_as_text(value):
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _content(blocks):
    """Text and images in base64, and nothing else."""
    if blocks is None:
        return None
    if not isinstance(blocks, list):
        raise ValueError("invalid tool result content")
    return [_block(block.model_dump() if isinstance(block, Record) else block) for block in blocks] or None


def _block(block):
    if not isinstance(block, dict):
        raise ValueError("invalid tool result content")
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict) or source.get("type") != "base64":
        raise ValueError("invalid tool result content")
    media, data = source.get("media_type"), source.get("data")
    if not isinstance(media, str) or not media.startswith("image/"):
        raise ValueError("invalid tool result image media type")
    try:
        if not isinstance(data, str) or not base64.b64decode(data, validate=True):
            raise ValueError("invalid tool result image data")
    except binascii.Error:
        raise ValueError("invalid tool result image data") from None
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


class ToolResult(Record):
    """What a tool returns."""

    fields = {"success": True, "output": None, "error": None, "content": None}

    def checked(self, name, value):
        if name == "success":
            return _truth(value)
        if name == "error" and value is not None and not isinstance(value, dict):
            raise ValueError("ToolResult: `error` must be a table or None")
        return _content(value) if name == "content" else value

    def model_post_init(self, context):
        if not self.success and self.output is None and self.error and self.error.get("message"):
            self.output = self.error["message"]

    def model_dump(self, **how):
        dumped = super().model_dump(**how)
        if not self.content:
            dumped.pop("content", None)
        return dumped

    def __str__(self):
        if self.success:
            return str(self.output) if self.output else "Success"
        return f"Error: {self.error.get('message', 'Unknown error')}" if self.error else "Failed"

    def get_serialized_output(self):
        if self.output is not None:
            structured = isinstance(self.output, (dict, list))
            said = json.dumps(self.output, default=_decimal_as_text) if structured else str(self.output)
            return _CONTROL.sub("", said)
        if self.success:
            return "Success"
        return f"Error: {self.error.get('message', 'Unknown error') if self.error else 'Failed'}"

    def safe_hook_presentation(self):
        dumped = self.model_dump()
        for place, block in enumerate(dumped.get("content") or []):
            if block["type"] == "image":
                note = f"[image: {block['source']['media_type']}]"
                dumped["content"][place] = {"type": "text", "text": note}
        return dumped


class ContextInjection(Record):
    """One text that a hook wants the model to read."""

    required = ("content",)
    fields = {
        "content": None, "role": "system", "ephemeral": False, "append_to_last_tool_result": False,
        "hook_name": None, "event": None,
    }  # fmt: skip


class HookResult(Record):
    """What a hook wants."""

    fields = {
        "action": "continue", "data": None, "reason": None, "context_injection": None,
        "context_injection_role": "system", "ephemeral": False, "approval_prompt": None, "approval_options": None,
        "approval_timeout": 300.0, "approval_default": "deny", "suppress_output": False, "user_message": None,
        "user_message_level": "info", "user_message_source": None, "append_to_last_tool_result": False,
        "context_injections": [],
    }  # fmt: skip

    def checked(self, name, value):
        actions = ("continue", "deny", "modify", "inject_context", "ask_user")
        if name == "action" and value not in actions:
            raise ValueError(f"HookResult: `{value}` is no action; they are {', '.join(actions)}")
        return value


class ModuleInfo(Record):
    """A module's own words about itself."""

    required = ("id", "name", "version", "type", "mount_point", "description")
    fields = {name: None for name in (*required, "config_schema")}
