"""Handlers that go too far, as the call's input wishes."""

import asyncio
import sys

from amplifier_core import HookResult


def act(wish, data):
    if wish == "exit":
        sys.exit(4)
    if wish == "interrupt":
        raise KeyboardInterrupt
    if wish == "cancel":
        raise asyncio.CancelledError
    if wish == "large":
        return HookResult(action="modify", data={**data, "padding": "x" * (5 << 20)})
    return HookResult(action="continue")


async def mount(coordinator, config=None):
    async def before(event, data):
        given = data["tool_input"]
        if given.get("wish") == "scribble":
            # Not asked for: what counts is what a handler answers.
            given["success"] = "no"
        return act(given.get("wish"), data)

    async def after_scribbling(event, data):
        """A change that is asked for, with whatever is in the input by then."""
        if data["tool_input"].get("wish") == "scribble":
            return HookResult(action="modify", data=data)
        return HookResult(action="continue")

    async def asked(event, data):
        if data["wish"] == "approval":
            answer = await coordinator.approval_system.request_approval("may the hook?", ["Allow", "Deny"])
            action = "continue" if answer == "Allow" else "deny"
            return HookResult(action=action, reason=answer if action == "deny" else None)
        return act(data["wish"], data)

    coordinator.hooks.register("tool:pre", before, priority=1, name="unruly")
    coordinator.hooks.register("tool:pre", after_scribbling, priority=2, name="after")
    coordinator.hooks.register("unruly:asked", asked, name="asked")
