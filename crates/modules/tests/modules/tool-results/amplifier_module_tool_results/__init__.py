"""Results of every shape, and what they say of themselves."""

import json
from decimal import Decimal

from amplifier_core import ToolResult

CASES = [
    {"output": "text"},
    {"output": ""},
    {"output": 0},
    {"output": 1.0},
    {"output": 1e16},
    {"output": 1e-7},
    {"output": 0.1},
    {"output": True},
    {"output": False},
    {"output": None},
    {"output": {}},
    {"output": []},
    {"output": {"z": 1, "a": [1, 2.5, None, True], "é": "ü\n\t\u0001"}},
    {"output": {"b": {"y": 1, "x": 2}, "a": "\U0001f600"}},
    {"output": [{"k": "v"}, [], {}, "\u2028"]},
    {"output": "tab\tline\nbell\u0007escape\u001b[0m\u0085"},
    {"output": -12345678901234567},
    {"success": False, "error": {"message": "went wrong"}},
    {"success": False, "error": {"message": "went wrong", "type": "ValueError", "errno": 5}},
    {"success": False, "output": {"stdout": "", "returncode": 1}},
    {"success": False, "output": {"b": 1, "a": 2}, "error": {"message": "failed"}},
    {"success": False, "output": "shown", "error": {"message": "other"}},
    {"success": False},
    {"success": "yes", "output": "words count"},
    {"output": {"price": 12, "nested": {"deep": {"deeper": [1, [2, [3]]]}}}},
]


class Result:
    name = "result"
    description = "A result"

    async def execute(self, input):
        return ToolResult(**CASES[input["number"]])


class ResultText:
    name = "result_text"
    description = "What the result says"

    async def execute(self, input):
        result = ToolResult(**CASES[input["number"]])
        dump = json.dumps(result.model_dump())
        return ToolResult(output={"text": result.get_serialized_output(), "str": str(result), "dump": dump})


class ResultCount:
    name = "result_count"
    description = "How many"

    async def execute(self, input):
        assert json.loads(ToolResult(output={"price": Decimal("1.5")}).get_serialized_output())["price"] == "1.5"
        return ToolResult(output={"count": len(CASES)})


async def mount(coordinator, config=None):
    for tool in (Result(), ResultText(), ResultCount()):
        await coordinator.mount("tools", tool, name=tool.name)
