"""Asks for approval of its own calls, in both ways that modules have for it."""


class Marked:
    name = "marked"
    description = "Asks by an attribute"
    require_approval = True

    async def execute(self, input):
        return {"ran": self.name}


class Described:
    name = "described"
    description = "Asks by its metadata"

    def get_metadata(self):
        return {"requires_approval": True, "approval_hints": {"risk_level": "high"}}

    async def execute(self, input):
        return {"ran": self.name}


async def mount(coordinator, config=None):
    for tool in (Marked(), Described()):
        await coordinator.mount("tools", tool, name=tool.name)
