"""A guard that can be mounted once, and one that another module can take away."""

from amplifier_core import HookResult

MOUNTS = []


async def guard(event, data):
    if data["tool_input"].get("wish") == "deny":
        return HookResult(action="deny", reason="guarded")
    return None


async def mount(coordinator, config=None):
    MOUNTS.append(1)
    if (config or {}).get("once", True) and len(MOUNTS) > 1:
        raise RuntimeError("port already in use")
    coordinator.hooks.register("tool:pre", guard, name="guard")
