"""Pieces of content, by the names of an older module."""

from .message_models import ImageBlock, TextBlock

TextContent = TextBlock
__all__ = ["ImageBlock", "TextBlock", "TextContent"]
