"""Prints and complains while it is imported."""

import logging
import sys

print("printed at import")
print("complained at import", file=sys.stderr)
logging.getLogger(__name__).warning("logged at import")


class Quiet:
    name = "quiet"
    description = "\n    Says nothing at all.\n    Never.\n    "

    async def execute(self, input):
        return "quiet"


async def mount(coordinator, config=None):
    await coordinator.mount("tools", Quiet(), name="quiet")
