"""A module that another one waits for."""


class Named:
    description = "Says whose it is"

    def __init__(self, name):
        self.name = name

    async def execute(self, input):
        return "of tool-follows"


async def mount(coordinator, config=None):
    for name in ("wanted_by_both", "follows"):
        await coordinator.mount("tools", Named(name), name=name)
    coordinator.register_capability("follower.mounted", True)
