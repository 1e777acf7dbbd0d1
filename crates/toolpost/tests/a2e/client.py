"""A client built to behave as the stock client of agents does: it pipelines, retries, reconnects and is easily lost.

It differs in one thing: what the stock client would drop with a line in its log is kept in `faults`, and every wait
raises it. The transports are in `over_http` and `over_stdio`.
"""

import json
import threading
import time
import uuid
from dataclasses import dataclass

import strict
from waiting import TooLate

STOCK_CAPS = ("streaming", "artifacts")
HANDSHAKE_PATIENCE, LIST_PATIENCE, PING_PATIENCE, CALL_GRACE = 30, 10, 5, 5


class ErrorAnswer(Exception):
    """The host answered with an `error` message."""

    def __init__(self, answer):
        super().__init__(f"{answer['code']}: {answer.get('message', '')}")
        self.code = answer["code"]
        self.answer = answer


class Refused(Exception):
    """The host did not accept the handshake."""

    def __init__(self, answer):
        super().__init__(answer.get("reason", ""))
        self.reason = answer.get("reason", "")
        self.answer = answer


@dataclass(frozen=True)
class Received:
    """A message as it came, and as it reads."""

    text: str
    message: dict

    @property
    def req_id(self):
        return self.message.get("req_id", "")

    @property
    def is_event(self):
        return self.message["type"] in strict.EVENT_TYPES


def message(kind, **fields):
    """A message as the stock client writes it."""
    return {"type": kind, "id": uuid.uuid4().hex, "version": "1.0", "ts": time.time()} | fields


def call_message(tool, arguments, **fields):
    """A call with the stock client's defaults."""
    defaults = {"session_id": "", "correlation_id": uuid.uuid4().hex[:8], "streaming": True, "timeout": 60}
    return message("tool/call/req", tool_name=tool, arguments=arguments, **(defaults | fields))


class Pending:
    """A request under way: its events, and its one answer. The first answer wins, whatever comes later."""

    def __init__(self, client, request):
        self._client = client
        self.request = request
        self.id = request["id"]
        self.events = []
        self.received = None

    def wait(self, seconds):
        """The answer, whatever it is."""
        what = f"an answer to {self.request['type']} {self.request.get('tool_name', '')}"
        self._client.until(lambda: self.received, seconds, what)
        return self.received.message

    def answer(self, seconds):
        """The answer; an `error` is raised."""
        answer = self.wait(seconds)
        if answer["type"] == "error":
            raise ErrorAnswer(answer)
        return answer

    def result(self, seconds):
        """The result of a call."""
        return self.answer(seconds)["data"]


class Client:
    """One agent on one transport."""

    def __init__(self, transport, token="", caps=STOCK_CAPS, agent_id="suite"):
        self.transport = transport
        self.token = token
        self.caps = list(caps)
        self.agent_id = agent_id
        self.session_id = ""
        self.log = []
        self.stray = []
        self.faults = []
        self._pending = {}
        self._news = threading.Condition()

    # What comes in, on the transport's thread.

    def take(self, text):
        with self._news:
            try:
                self._route(Received(text, strict.read(text)))
            except strict.Rejected as fault:
                self.faults.append(fault)
            self._news.notify_all()

    def _route(self, received):
        self.log.append(received)
        pending = self._pending.get(received.req_id)
        if pending is None:
            self.stray.append(received)
        elif received.is_event:
            pending.events.append(received.message)
        else:
            pending.received = received
            del self._pending[received.req_id]

    def fault(self, error):
        """For transports: something came that is no message at all."""
        with self._news:
            self.faults.append(error)
            self._news.notify_all()

    def check(self):
        """Raises the first thing the stock client would have stumbled over."""
        if self.faults:
            raise self.faults[0]

    def until(self, condition, seconds, what):
        """Waits for a condition over what was received; gives its first true value."""
        end = time.monotonic() + seconds
        with self._news:
            while True:
                self.check()
                value = condition()
                if value:
                    return value
                left = end - time.monotonic()
                if left <= 0:
                    raise TooLate(f"not within {seconds} s: {what}")
                self._news.wait(left)

    def answers_to(self, request_id):
        """Everything received for a request that is no event."""
        with self._news:
            return [one for one in self.log if one.req_id == request_id and not one.is_event]

    # What goes out.

    def open(self):
        """Brings up the transport, without a handshake."""
        self.transport.open(self)
        return self

    def start(self, request):
        """Sends a request and goes on."""
        pending = Pending(self, request)
        with self._news:
            self._pending[pending.id] = pending
        self.post(request)
        return pending

    def post(self, request):
        """Sends a message that nobody here waits for."""
        self.transport.send(json.dumps(request, separators=(",", ":")))

    def shake(self, **fields):
        """Starts a handshake."""
        asked = {"agent_id": self.agent_id, "agent_caps": self.caps, "auth_token": self.token} | fields
        return self.start(message("handshake/req", **asked))

    def connect(self, **fields):
        """Transport and handshake; the handshake does not wait for the stream."""
        self.open()
        answer = self.shake(**fields).answer(HANDSHAKE_PATIENCE)
        if not answer.get("ok", True):
            raise Refused(answer)
        self.session_id = answer["session_id"]
        self.welcome = answer
        return self

    def ping(self, seconds=PING_PATIENCE):
        return self.start(message("ping")).answer(seconds)

    def list(self, seconds=LIST_PATIENCE, **fields):
        """Tools by name."""
        answer = self.start(message("tool/list/req", **fields)).answer(seconds)
        return {tool["name"]: tool for tool in answer.get("tools", [])}

    def begin(self, tool, arguments, **fields):
        """Starts a call."""
        return self.start(call_message(tool, arguments, **({"session_id": self.session_id} | fields)))

    def call(self, tool, arguments, **fields):
        """A call and its result, with the patience of the stock client."""
        pending = self.begin(tool, arguments, **fields)
        return pending.result(pending.request["timeout"] + CALL_GRACE)

    def disconnect(self):
        """Says good-bye and waits for the transport's end."""
        self.post(message("shutdown", timeout=10))
        return self.transport.close()
