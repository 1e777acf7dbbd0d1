"""Hears of failures, and collects the events that others contribute."""

errors, events = [], []


class Listened:
    name = "listened"
    description = "Tells what was heard."
    input_schema = {"type": "object"}

    async def execute(self, input):
        return {"errors": list(errors), "events": list(events)}


async def heard(event, data):
    errors.append(data["tool_name"])


async def mount(coordinator, config=None):
    errors.clear()
    coordinator.hooks.register("tool:error", heard)
    await coordinator.mount("tools", Listened(), name="listened")


async def on_session_ready(coordinator):
    collected = await coordinator.collect_contributions("observability.events")
    events[:] = [name for names in collected for name in names]
