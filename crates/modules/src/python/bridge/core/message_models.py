"""Calls, specifications and pieces of content."""

from .records import Record


class TextBlock(Record):
    """Text."""

    required = ("text",)
    fields = {"type": "text", "text": "", "visibility": None}


class ImageBlock(Record):
    """An image, inside of its source."""

    required = ("source",)
    fields = {"type": "image", "source": None, "visibility": None}


class ToolCall(Record):
    """What a model wants called."""

    required = ("id", "name", "arguments")
    fields = {"id": None, "name": None, "arguments": None}


class ToolSpec(Record):
    """What a model is told of a tool."""

    required = ("name", "parameters")
    fields = {"name": None, "parameters": None, "description": None}
