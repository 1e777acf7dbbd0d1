"""Wants a name that another module has, and brings a schema that means nothing."""


class Tool:
    description = "d"

    def __init__(self, name, schema):
        self.name = name
        self.input_schema = schema

    async def execute(self, input):
        return f"second {self.name}"


async def mount(coordinator, config=None):
    await coordinator.mount("tools", Tool("read_note", {}), name="read_note")
    await coordinator.mount("tools", Tool("odd schema", {"type": "nonsense"}), name="odd schema")
