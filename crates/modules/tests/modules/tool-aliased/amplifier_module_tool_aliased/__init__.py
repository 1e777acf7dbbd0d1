"""Tools that call themselves otherwise than they are mounted."""


class Named:
    description = "Says who it is."

    def __init__(self, name):
        self.name = name

    async def execute(self, input):
        return "aliased"


async def mount(coordinator, config=None):
    await coordinator.mount("tools", Named("called_itself"), name="mounted_as")
    await coordinator.mount("tools", Named("read_note"), name="second")
    await coordinator.mount("tools", Named("tool-desk.read_note"), name="third")
