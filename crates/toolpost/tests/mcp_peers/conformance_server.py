"""An MCP server with what the conformance suite calls for, on the official SDK: the other end behind the host.

It speaks both revisions over either transport. What it offers is in `fixture.json`, which the host's own fixture reads
too.

    python conformance_server.py                 over its pipes
    python conformance_server.py --http PORT     at http://127.0.0.1:PORT/mcp; 0 takes any port, which is printed
"""

import asyncio
import contextlib
import json
import socket
import sys
import warnings
from pathlib import Path

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

NAME = "conformance"
FIXTURE = json.loads((Path(__file__).parent / "fixture.json").read_text())
TOOLS = {tool["name"]: tool for tool in FIXTURE["tools"]}
PROMPTS = {prompt["name"]: prompt for prompt in FIXTURE["prompts"]}
# What a question needs of the client, and how it is sent and answered in the revision with sessions.
QUESTIONS = {
    "elicitation/create": ("elicitation", types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": ("sampling", types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": ("roots", types.ListRootsRequest, types.ListRootsResult),
}
PAUSE_SECONDS = 0.05
CACHING = {"ttlMs": 1000, "cacheScope": "public"}

ADDED = {"name": "test_added", "description": "Was not there before"}

bus = InMemorySubscriptionBus()
changed = set()


class InputRequired(Exception):
    """The request cannot go on without answers; what to return instead of its result."""

    def __init__(self, result):
        super().__init__(result)
        self.result = result


def filled(value, arguments):
    """The value with `${name}` replaced by the argument of that name."""
    if isinstance(value, dict):
        return {key: filled(inner, arguments) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, arguments) for inner in value]
    if isinstance(value, str):
        for name, argument in arguments.items():
            value = value.replace("${%s}" % name, str(argument))
    return value


def whole(ctx, result):
    """A result that says so where its revision wants it."""
    return ({"resultType": "complete"} if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else {}) | result


def shown(entry):
    return {key: value for key, value in entry.items() if key != "does"}


def answerable(ctx, question):
    capabilities = ctx.session.client_capabilities
    return getattr(capabilities, QUESTIONS[question["method"]][0], None) is not None


async def ask(ctx, params, does):
    """The answers to all rounds of questions, as MCP's own objects by their keys."""
    rounds = [filled(questions, params.arguments or {}) for questions in does.get("asks", [])]
    if does.get("leaves_out"):
        rounds = [{key: q for key, q in questions.items() if answerable(ctx, q)} for questions in rounds]
    for question in (question for questions in rounds for question in questions.values()):
        if not answerable(ctx, question):
            needed = {QUESTIONS[question["method"]][0]: {}}
            raise MCPError(-32021, "the client must be able to answer", {"requiredCapabilities": needed})
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return returned_with(params, rounds)
    return {key: await sent(ctx, question) for questions in rounds for key, question in questions.items()}


def returned_with(params, rounds):
    """The answers that came with the request and with those before it."""
    answers = json.loads(params.request_state) if params.request_state else {}
    answers |= {key: json_of(answer) for key, answer in (params.input_responses or {}).items()}
    for questions in rounds:
        open_questions = {key: question for key, question in questions.items() if key not in answers}
        if open_questions:
            result = {"resultType": "input_required", "inputRequests": open_questions}
            raise InputRequired(result | {"requestState": json.dumps(answers)})
    return answers


async def sent(ctx, question):
    _, request, result = QUESTIONS[question["method"]]
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return json_of(await ctx.session.send_request(request.model_validate(question), result, metadata=metadata))


def json_of(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def call_tool(ctx, params):
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool `{params.name}`")
    does = TOOLS[params.name]["does"]
    if "error" in does:
        return whole(ctx, {"content": [{"type": "text", "text": does["error"]}], "isError": True})
    try:
        answers = await ask(ctx, params, does)
    except InputRequired as needed:
        return needed.result
    for line in does.get("logs", []):
        await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
        await asyncio.sleep(PAUSE_SECONDS)
    token = (ctx.meta or {}).get("progress_token")
    for done in does.get("progress", []):
        if token is not None:
            await ctx.session.send_progress_notification(token, done, 100, related_request_id=ctx.request_id)
        await asyncio.sleep(PAUSE_SECONDS)
    if "changes" in does:
        await tell_change(ctx, does["changes"])
    content = does.get("content") or [{"type": "text", "text": f"{does['says']} {json.dumps(answers)}"}]
    return whole(ctx, {"content": content})


async def tell_change(ctx, kind):
    # One more is there, or no longer: a host need not pass on a change that is none.
    changed.symmetric_difference_update({kind})
    await bus.publish({"tools": ToolsListChanged, "prompts": PromptsListChanged}[kind]())
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        notification = {"tools": types.ToolListChangedNotification, "prompts": types.PromptListChangedNotification}
        await ctx.session.send_notification(notification[kind]())


async def get_prompt(ctx, params):
    if params.name not in PROMPTS:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt `{params.name}`")
    does = PROMPTS[params.name]["does"]
    try:
        await ask(ctx, params, does)
    except InputRequired as needed:
        return needed.result
    messages = filled(does["messages"], params.arguments or {})
    return whole(ctx, {"messages": [{"role": "user", "content": content} for content in messages]})


async def read_resource(ctx, params):
    uri = str(params.uri)
    prefix, suffix = "test://template/", "/data"
    if uri in FIXTURE["contents"]:
        return whole(ctx, {"contents": [{"uri": uri} | FIXTURE["contents"][uri]]} | CACHING)
    if uri.startswith(prefix) and uri.endswith(suffix):
        part = uri[len(prefix) : -len(suffix)]
        text = json.dumps({"id": part, "templateTest": True, "data": f"Data for ID: {part}"})
        return whole(ctx, {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]} | CACHING)
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def listing(key, entries, more=None):
    async def handler(ctx, _params):
        added = [more] if key in changed else []
        return whole(ctx, {key: [shown(entry) for entry in entries + added]} | CACHING)

    return handler


async def complete(ctx, params):
    values = [value for value in FIXTURE["completions"] if value.startswith(params.argument.value)]
    return whole(ctx, {"completion": {"values": values, "total": len(values), "hasMore": False}})


async def nothing(_ctx, _params):
    return {}


def server():
    with warnings.catch_warnings():
        # Setting a level of logs is of the revision with sessions, which is served too.
        warnings.simplefilter("ignore")
        made = Server(
            NAME,
            version="1.0.0",
            on_list_tools=listing("tools", FIXTURE["tools"], ADDED | {"inputSchema": {"type": "object"}}),
            on_call_tool=call_tool,
            on_list_resources=listing("resources", FIXTURE["resources"]),
            on_list_resource_templates=listing("resourceTemplates", FIXTURE["templates"]),
            on_read_resource=read_resource,
            on_subscribe_resource=nothing,
            on_unsubscribe_resource=nothing,
            on_subscriptions_listen=ListenHandler(bus),
            on_list_prompts=listing("prompts", FIXTURE["prompts"], ADDED),
            on_get_prompt=get_prompt,
            on_completion=complete,
            on_set_logging_level=nothing,
        )
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return made


async def over_stdio():
    made = server()
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options(NotificationOptions(True, True, True)))


def over_http(port):
    listener = socket.create_server(("127.0.0.1", port))
    # The caller waits for this line.
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server().streamable_http_app(), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.suppress(KeyboardInterrupt):
        if sys.argv[1:2] == ["--http"]:
            over_http(int(sys.argv[2]))
        else:
            asyncio.run(over_stdio())
