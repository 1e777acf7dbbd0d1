"""Returns its tool and does not mount it."""


class Plain:
    name = "plain"
    description = "No schema, no amplifier"

    async def execute(self, input):
        return {"got": input}


async def mount(coordinator, config=None):
    return Plain()
