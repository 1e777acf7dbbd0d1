"""Which `amplifier_core` modules get: the real one, or the stand-in that comes with the bridge."""

import importlib
import importlib.util
import sys

from .plain import shown

NAME = "amplifier_core"


class Missing(Exception):
    """The real one was asked for and is not there."""


class Core:
    def __init__(self, real, note=None):
        self.real = real
        self.note = note
        package = importlib.import_module(NAME)
        self.coordinator = package.ModuleCoordinator
        self.ToolResult = package.ToolResult
        self.HookResult = package.HookResult
        self.version = str(getattr(package, "__version__", "unknown"))
        approval = importlib.import_module(f"{NAME}.approval")
        self.approval_timeout = approval.ApprovalTimeoutError


def choose(choice, sources, files):
    """Chosen once, before any module is looked at, so that nothing comes to stand in for it by accident."""
    note = None
    if choice != "stand_in":
        try:
            if importlib.util.find_spec(NAME) is None:
                raise ImportError("it is not installed")
            return Core(real=True)
        except Exception as error:
            if choice == "real":
                raise Missing(f"`amplifier_core` cannot be imported: {shown(error)}") from None
            if importlib.util.find_spec(NAME) is not None:
                note = f"the installed `amplifier_core` cannot be used: {type(error).__name__}: {shown(error)}"
            for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
                del sys.modules[name]
    texts = {name: text for name, text in files.items() if name.split(".")[0] == NAME}
    sys.meta_path.insert(0, sources(texts))
    return Core(real=False, note=note)
