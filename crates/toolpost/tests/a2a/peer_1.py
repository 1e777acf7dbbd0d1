"""The official SDK of A2A 1.0 as a client."""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from neutral import KINDS


class Peer:
    NOT_FOUND, NOT_CANCELABLE, UNSUPPORTED = TaskNotFoundError, TaskNotCancelableError, UnsupportedOperationError
    EXTENSIONS, OTHER_EXTENSIONS = "a2a-extensions", "x-a2a-extensions"
    binding = "JSONRPC"

    def __init__(self, base, token=None, socket=None):
        self.base = base
        self.answers = []
        transport = httpx.AsyncHTTPTransport(uds=socket) if socket else None
        headers = {"authorization": f"Bearer {token}"} if token else {}
        hooks = {"response": [self._note]}
        self.http = httpx.AsyncClient(headers=headers, transport=transport, timeout=20, event_hooks=hooks)

    async def _note(self, response):
        self.answers.append(response)

    async def __aenter__(self):
        self.card = await A2ACardResolver(self.http, self.base).get_agent_card()
        self.whole, self.streaming = (self._client(streaming) for streaming in (False, True))
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    def _client(self, streaming):
        config = ClientConfig(
            streaming=streaming, httpx_client=self.http, supported_protocol_bindings=[self.binding]
        )
        return ClientFactory(config).create(self.card)

    def _request(self, parts, ids, at_once, history):
        message = Message(message_id=ids.pop("message_id", str(uuid.uuid4())), role=Role.ROLE_USER, **ids)
        message.parts.extend(ParseDict(part, Part()) for part in parts)
        request = SendMessageRequest(message=message)
        request.configuration.return_immediately = at_once
        if history is not None:
            request.configuration.history_length = history
        return request

    def _context(self, extensions):
        parameters = ServiceParametersFactory.create([with_a2a_extensions(list(extensions))])
        return ClientCallContext(service_parameters=parameters)

    @staticmethod
    def _item(response):
        [(kind, body)] = MessageToDict(response).items()
        return KINDS.get(kind, kind), body

    async def send(self, *parts, extensions=(), at_once=False, history=None, **ids):
        request = self._request(parts, ids, at_once, history)
        [item] = [self._item(one) async for one in self.whole.send_message(request, context=self._context(extensions))]
        return item

    async def stream(self, *parts, extensions=(), **ids):
        request = self._request(parts, ids, False, None)
        async for one in self.streaming.send_message(request, context=self._context(extensions)):
            yield self._item(one)

    async def get(self, task, history=None):
        request = GetTaskRequest(id=task)
        if history is not None:
            request.history_length = history
        return MessageToDict(await self.whole.get_task(request))

    async def cancel(self, task):
        return MessageToDict(await self.whole.cancel_task(CancelTaskRequest(id=task)))

    async def subscribe(self, task):
        async for one in self.streaming.subscribe(SubscribeToTaskRequest(id=task)):
            yield self._item(one)

    async def list(self, **conditions):
        return MessageToDict(
            await self.whole.list_tasks(ListTasksRequest(**conditions)), always_print_fields_with_no_presence=True
        )

    async def extended_card(self):
        return await self.whole.get_extended_agent_card(GetExtendedAgentCardRequest())


class RestPeer(Peer):
    binding = "HTTP+JSON"
