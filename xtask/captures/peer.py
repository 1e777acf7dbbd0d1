"""HTTP to a host, over loopback or its unix socket: single requests, and server-sent events read until an end."""

import http.client
import json
import socket
import time

PATIENCE = 30
# Headers that differ with each answer or say nothing about the host.
LEFT_OUT = {"date"}


class Peer:
    """A caller of a host. Every request has a connection of its own."""

    def __init__(self, port=None, token=None, socket_path=None):
        self.port, self.token, self.socket_path = port, token, socket_path

    def _connection(self):
        if self.socket_path is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(PATIENCE)
        connection.sock.connect(str(self.socket_path))
        return connection

    def open(self, method, path, body=None, headers=None):
        """Sends a request; gives the connection and the response, whose body is not read yet."""
        sent = dict(headers or {})
        if self.token and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {self.token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        connection = self._connection()
        connection.request(method, path, body=body, headers={k: v for k, v in sent.items() if v is not None})
        return connection, connection.getresponse()

    def exchange(self, method, path, body=None, headers=None):
        """A request and its whole answer, as a capture holds them."""
        connection, response = self.open(method, path, body, headers)
        try:
            raw = response.read()
        finally:
            connection.close()
        kept = {name.lower(): value for name, value in response.getheaders() if name.lower() not in LEFT_OUT}
        asked = {"method": method, "path": path}
        if headers:
            asked["headers"] = {name: value for name, value in headers.items() if name != "Authorization"}
        if body is not None:
            asked["body"] = body
        kept.pop("content-length", None)
        if response.status >= 400:
            # Whether a refusal closes the connection depends on how much of the body had come by then.
            kept.pop("connection", None)
        content = kept.get("content-type", "")
        parsed = events_of(raw.decode()) if "event-stream" in content else parsed_body(raw)
        return {"request": asked, "status": response.status, "headers": kept, "body": parsed}

    def json(self, method, path, body=None, headers=None):
        """The JSON body of an answer alone."""
        return self.exchange(method, path, body, headers)["body"]

    def follow(self, path, headers=None):
        """An event stream that is read while it goes on."""
        return EventStream(*self.open("GET", path, None, {"Accept": "text/event-stream"} | (headers or {})))


class EventStream:
    """Server-sent events of an open connection."""

    def __init__(self, connection, response):
        self._connection, self._response = connection, response
        self.status, self.headers = response.status, dict(response.getheaders())
        self.frames = []

    def until(self, condition, seconds=PATIENCE):
        """Reads up to and with the first frame that meets the condition, or to the end."""
        end = time.monotonic() + seconds
        lines = []
        while time.monotonic() < end:
            line = self._response.readline().decode()
            if line == "":
                return self.frames
            if line.strip():
                lines.append(line.rstrip("\r\n"))
                continue
            frame = frame_of(lines)
            lines = []
            if frame:
                self.frames.append(frame)
                if condition(frame):
                    return self.frames
        raise TimeoutError(f"the awaited event did not come; last: {self.frames[-1:]}")

    def close(self):
        self._connection.close()


def parsed_body(raw):
    """JSON where the bytes are JSON, otherwise a text."""
    text = raw.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def frame_of(lines):
    """One event as an object; its data parsed where it is JSON."""
    frame, data = {}, []
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name:
            frame[name] = value
        else:
            frame["comment"] = value
    if data:
        frame["data"] = parsed_body("\n".join(data).encode())
    return frame


def events_of(text):
    """All events of a stream that has ended."""
    blocks = text.replace("\r\n", "\n").split("\n\n")
    return [frame_of(block.split("\n")) for block in blocks if block.strip()]


def poll(condition, what, seconds=PATIENCE):
    """The first true value of a condition, asked for again and again."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
