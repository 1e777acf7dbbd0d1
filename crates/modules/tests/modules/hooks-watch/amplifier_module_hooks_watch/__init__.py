"""Handlers of every kind, chosen by what the call is about."""

import asyncio
import time

from amplifier_core import HookResult


async def before(event, data):
    arguments = data["tool_input"]
    wish = arguments.get("wish")
    if wish == "deny":
        return HookResult(action="deny", reason="not today")
    if wish == "modify":
        return HookResult(action="modify", data={**data, "tool_input": {"seconds": 0}})
    if wish == "ask":
        return HookResult(action="ask_user", approval_prompt="really?")
    if wish == "inject":
        return {"action": "inject_context", "context_injection": "mind the gap"}
    if wish == "break":
        raise RuntimeError("a broken hook")
    if wish == "garbage":
        return "fine"
    if wish == "block":
        time.sleep(3600)
    if wish == "hang":
        await asyncio.sleep(3600)
    return None


async def after(event, data):
    if data["result"]["output"] == "rested" and data["tool_input"].get("wish") == "replace":
        return HookResult(action="modify", data={**data, "result": {"success": True, "output": "replaced"}})
    return HookResult(action="continue", user_message=f"{event} of {data['tool_name']}")


async def mount(coordinator, config=None):
    coordinator.hooks.register("tool:pre", before, priority=10, name="watch")
    coordinator.hooks.register("tool:*", lambda event, data: None, priority=20, name="wild")
    coordinator.hooks.register("tool:post", after, priority=10, name="after")
    coordinator.hooks.register("tool:error", after, priority=10, name="error")
