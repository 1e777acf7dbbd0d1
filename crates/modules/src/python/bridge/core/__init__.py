"""Stands in for `amplifier_core` where that is not installed: the part of it that tools and hooks are written against."""

from . import approval, capabilities, events  # noqa: F401
from .cancellation import CancellationState, CancellationToken
from .coordinator import ModuleCoordinator
from .hooks import HookRegistry
from .interfaces import ApprovalProvider, ApprovalRequest, ApprovalResponse, HookHandler, Tool
from .message_models import ImageBlock, TextBlock, ToolCall, ToolSpec
from .models import ContextInjection, HookResult, ModuleInfo, ToolResult

# The version whose behaviour it has.
__version__ = "2.0.2"
__toolpost_stand_in__ = True

__all__ = [
    "ApprovalProvider", "ApprovalRequest", "ApprovalResponse", "CancellationState", "CancellationToken",
    "ContextInjection", "HookHandler", "HookRegistry", "HookResult", "ImageBlock", "ModuleCoordinator", "ModuleInfo",
    "TextBlock", "Tool", "ToolCall", "ToolResult", "ToolSpec", "capabilities", "events",
]  # fmt: skip
