"""Registers nothing before every module is mounted, and then a handler for each event that anybody names."""

from amplifier_core.events import ALL_EVENTS

deferred = []


async def heard(event, data):
    wish = (data.get("tool_input") or {}).get("wish")
    return {"action": "deny", "reason": "heard late"} if event == "tool:pre" and wish == "deny" else None


async def mount(coordinator, config=None):
    deferred.append(config or {})


async def on_session_ready(coordinator):
    while deferred:
        deferred.pop(0)
        contributed = await coordinator.collect_contributions("observability.events")
        for event in [*ALL_EVENTS, *(name for names in contributed for name in names)]:
            coordinator.hooks.register(event, heard, priority=100, name="hooks-deferred")
