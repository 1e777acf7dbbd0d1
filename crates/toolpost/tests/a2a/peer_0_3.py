"""The official SDK of A2A 0.3 as a client."""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import Message, MessageSendConfiguration, Part, Role, TaskIdParams, TaskQueryParams
from neutral import KINDS


class Refused(Exception):
    """A refusal by its code: this SDK has one exception for them all."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class NotFound(Refused):
    pass


class NotCancelable(Refused):
    pass


class Unsupported(Refused):
    pass


CODES = {-32001: NotFound, -32002: NotCancelable, -32004: Unsupported}


def _plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _told(awaitable):
    try:
        return await awaitable
    except A2AClientJSONRPCError as error:
        raise CODES.get(error.error.code, Refused)(error.error.code) from error


class Peer:
    NOT_FOUND, NOT_CANCELABLE, UNSUPPORTED = NotFound, NotCancelable, Unsupported
    EXTENSIONS, OTHER_EXTENSIONS = "x-a2a-extensions", "a2a-extensions"

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
        return ClientFactory(ClientConfig(streaming=streaming, httpx_client=self.http)).create(self.card)

    @staticmethod
    def _message(parts, ids):
        kinds = [{"kind": "text" if "text" in part else "data", **part} for part in parts]
        return Message(
            message_id=ids.pop("message_id", str(uuid.uuid4())),
            role=Role.user,
            parts=[Part.model_validate(part) for part in kinds],
            **ids,
        )

    @staticmethod
    def _item(event):
        """An event of this client is a message, or the task so far with what changed it."""
        model = event
        if isinstance(event, tuple):
            task, update = event
            model = task if update is None else update
        body = _plain(model)
        return KINDS.get(body["kind"], body["kind"]), body

    async def send(self, *parts, extensions=(), at_once=False, history=None, **ids):
        configuration = MessageSendConfiguration(blocking=not at_once, history_length=history)
        answers = self.whole.send_message(
            self._message(parts, ids), configuration=configuration, extensions=list(extensions) or None
        )
        item = self._item(await _told(anext(answers)))
        await answers.aclose()
        return item

    async def stream(self, *parts, extensions=(), **ids):
        message = self._message(parts, ids)
        async for event in self.streaming.send_message(message, extensions=list(extensions) or None):
            yield self._item(event)

    async def get(self, task, history=None):
        return _plain(await _told(self.whole.get_task(TaskQueryParams(id=task, history_length=history))))

    async def cancel(self, task):
        return _plain(await _told(self.whole.cancel_task(TaskIdParams(id=task))))

    async def subscribe(self, task):
        async for event in self.streaming.resubscribe(TaskIdParams(id=task)):
            yield self._item(event)

    async def extended_card(self):
        return await self.whole.get_card()
