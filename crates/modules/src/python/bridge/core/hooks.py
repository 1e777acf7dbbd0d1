"""The registry of hook handlers; the bridge's own serves here too."""

from toolpost_bridge.hooks import HookRegistry

from .models import ContextInjection, HookResult

__all__ = ["ContextInjection", "HookRegistry", "HookResult"]
