"""A recording of one call."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

RECORDING = """\
{"kind":"data","data":{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2,"b":3}}}
{"kind":"data","data":{"type":"tool-result","toolCallId":"c1","toolName":"add","output":{"sum":5},"durationMs":12}}
"""

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"recording.jsonl": RECORDING})},
    blocks={"curl -sN": BlockStage(reason="the page leaves the address out: it is another agent's")},
)
