"""HTTP by hand, for tests that look at bytes: single requests, and an event stream with its chunks and frames."""

import http.client
import json
import re
import socket
import time
import uuid
from dataclasses import dataclass

import strict
from client import call_message, message
from waiting import TooLate

PATIENCE = 10


@dataclass(frozen=True)
class Response:
    status: int
    headers: object
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def request(address, method, path, body=None, headers=None, seconds=PATIENCE):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(*address, timeout=seconds)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Response(response.status, response.headers, response.read())
    finally:
        connection.close()


class Session:
    """A session without a client: what is sent is chosen byte by byte, and nothing is read unasked."""

    def __init__(self, address, token=None, session_id=None):
        self.address = address
        self.id = session_id or request(address, "POST", "/session").json["session_id"]
        self._connection = None
        if token is not None:
            self.send(message("handshake/req", agent_id="wire", agent_caps=["tools"], auth_token=token))

    @property
    def header(self):
        return {"X-Session-Id": self.id}

    def post(self, body, seconds=PATIENCE):
        """Posts on a kept connection; gives the response."""
        if isinstance(body, dict):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self.address, timeout=seconds)
        headers = self.header | {"Content-Type": "text/plain"}
        try:
            self._connection.request("POST", "/send", body=body, headers=headers)
            response = self._connection.getresponse()
            return Response(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def send(self, body):
        """Posts what must be taken; gives the message's id where it has one."""
        response = self.post(body)
        if response.status != 200:
            raise AssertionError(f"POST /send answered {response.status}: {response.body!r}")
        return body.get("id") if isinstance(body, dict) else None

    def call(self, tool, arguments, **fields):
        return self.send(call_message(tool, arguments, **fields))

    def ping(self):
        return self.send(message("ping", id="ping-" + uuid.uuid4().hex))

    def stream(self, last_event_id=None, receive_buffer=None):
        return Stream(self.address, self.id, last_event_id, receive_buffer)

    def close(self):
        if self._connection:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True)
class Frame:
    """One server-sent event, or one comment."""

    raw: bytes
    id: str
    data: tuple
    comment: bool

    @property
    def text(self):
        return "\n".join(self.data)

    @property
    def message(self):
        return strict.read(self.text)


def parse_frame(raw):
    """Reads a frame as the standard has it; anything a host has no use for is an error."""
    event_id, data, comment = "", [], False
    for line in raw.decode("ascii").split("\n"):
        if line.startswith(":"):
            comment = True
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line.startswith("id: "):
            event_id = line[4:]
        elif not re.fullmatch(r"(event|retry): .*", line):
            raise AssertionError(f"a line that is no field: {line!r}")
    return Frame(raw, event_id, tuple(data), comment)


class Stream:
    """GET /stream on a socket, read only when asked."""

    def __init__(self, address, session_id, last_event_id=None, receive_buffer=None):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(address)
        wanted = {"Host": f"{address[0]}:{address[1]}", "Accept": "text/event-stream", "X-Session-Id": session_id}
        if last_event_id is not None:
            wanted["Last-Event-ID"] = last_event_id
        lines = ["GET /stream HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items()), "", ""]
        self._socket.sendall("\r\n".join(lines).encode())
        self._bytes = b""
        self._text = b""
        self.ended = False
        head = self._take_until(b"\r\n\r\n", time.monotonic() + PATIENCE).decode("latin-1").split("\r\n")
        self.status = int(head[0].split()[1])
        pairs = (line.partition(":") for line in head[1:] if line)
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}

    def next(self, seconds=PATIENCE, comments=False):
        """The next frame, or None after a clean end. A stream that breaks off raises."""
        end = time.monotonic() + seconds
        while True:
            while b"\n\n" not in self._text:
                if self.ended:
                    if self._text:
                        raise AssertionError(f"the stream ended inside of a frame: {self._text!r}")
                    return None
                self._text += self._chunk(end)
            raw, self._text = self._text.split(b"\n\n", 1)
            frame = parse_frame(raw)
            if frame.data or (comments and frame.comment):
                return frame

    def until(self, condition, seconds=PATIENCE):
        """Frames up to and with the first whose message meets the condition."""
        end = time.monotonic() + seconds
        frames = []
        while True:
            frame = self.next(max(end - time.monotonic(), 0.001))
            if frame is None:
                raise AssertionError(f"the stream ended after {len(frames)} frames, without what was waited for")
            frames.append(frame)
            if condition(frame.message):
                return frames

    def until_answer(self, request_id, seconds=PATIENCE):
        """Frames up to and with the answer to a request."""
        answers = lambda one: one.get("req_id") == request_id and one["type"] not in strict.EVENT_TYPES
        return self.until(answers, seconds)

    def answer(self, request_id, seconds=PATIENCE):
        return self.until_answer(request_id, seconds)[-1].message

    def rest(self, seconds=PATIENCE):
        """All frames up to a clean end."""
        end = time.monotonic() + seconds
        return list(iter(lambda: self.next(max(end - time.monotonic(), 0.001)), None))

    def close(self):
        self._socket.close()

    def _chunk(self, end):
        size = int(self._take_until(b"\r\n", end).split(b";")[0], 16)
        if size == 0:
            self._take_until(b"\r\n", end)
            self.ended = True
            return b""
        while len(self._bytes) < size + 2:
            self._fill(end)
        chunk, closing, self._bytes = self._bytes[:size], self._bytes[size : size + 2], self._bytes[size + 2 :]
        if closing != b"\r\n":
            raise AssertionError(f"a chunk ends in {closing!r}")
        return chunk

    def _take_until(self, mark, end):
        while mark not in self._bytes:
            self._fill(end)
        taken, self._bytes = self._bytes.split(mark, 1)
        return taken

    def _fill(self, end):
        self._socket.settimeout(max(end - time.monotonic(), 0.001))
        try:
            read = self._socket.recv(1 << 16)
        except TimeoutError:
            raise TooLate("nothing more came over the stream in time") from None
        if not read:
            raise ConnectionError("the stream broke off")
        self._bytes += read
