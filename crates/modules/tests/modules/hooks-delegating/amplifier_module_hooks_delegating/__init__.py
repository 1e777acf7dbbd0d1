"""A hook that needs the library of Amplifier's own application."""

from amplifier_foundation.tracing import generate_sub_session_id


async def mount(coordinator, config=None):
    coordinator.hooks.register("tool:pre", generate_sub_session_id)
