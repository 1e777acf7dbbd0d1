"""Agents that call tools, over plain HTTP and over A2E, with the same few verbs."""

import http.client
import json
import socket
import struct
import threading
from urllib.parse import quote

from answers import from_a2e, from_http
from client import Client, message
from over_http import HttpTransport
from waiting import TooLate

# Beyond a call's own deadline: the host must have stopped the work and answered by then.
GRACE = 20
DEADLINE = 20


class Running:
    """A call under way over plain HTTP, on a connection and a thread of its own."""

    def __init__(self, caller, tool, arguments, timeout, headers):
        self._connection = http.client.HTTPConnection(*caller.address, timeout=timeout + GRACE)
        self._connection.connect()
        self._socket = self._connection.sock
        self._tool, self._error, self._answer = tool, None, None
        self._body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        self._path = f"/tools/{quote(tool, safe='')}/call?timeout={timeout}"
        self._headers = caller.headers | {"Content-Type": "application/json"} | headers
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self._connection.request("POST", self._path, self._body, self._headers)
            response = self._connection.getresponse()
            self._answer = from_http(json.loads(response.read()))
        except Exception as error:
            self._error = error
        finally:
            self._connection.close()

    @property
    def is_over(self):
        return not self._thread.is_alive()

    def answer(self, seconds):
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.hang_up()
            raise TooLate(f"no answer to {self._tool} within {seconds} s")
        if self._error:
            raise self._error
        return self._answer

    def hang_up(self):
        """Goes away without a farewell, as a caller that crashed."""
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It is over already.
        self._thread.join(5)


class HttpCaller:
    """An agent in a session of its own over plain HTTP."""

    face = "http"

    def __init__(self, host):
        self.address = host.address
        self.headers = {"Authorization": f"Bearer {host.token}"}
        self.session = self._request("POST", "/sessions")[1]["session_id"]
        self.headers["Toolpost-Session"] = self.session

    def begin(self, tool, arguments, timeout=DEADLINE, **headers):
        return Running(self, tool, arguments, timeout, headers)

    def call(self, tool, arguments, timeout=DEADLINE):
        return self.begin(tool, arguments, timeout).answer(timeout + GRACE)

    def show(self, tool):
        """Looks at a tool, which makes a deferred one callable."""
        return self._request("GET", f"/tools/{tool}")[1]

    def tools(self):
        return {tool["name"] for tool in self._request("GET", "/tools?include_deferred=true")[1]["tools"]}

    def invocation(self, invocation_id):
        return self._request("GET", f"/invocations/{invocation_id}")[1]

    def close(self):
        """Ends the session, and with it all that runs in it."""
        return self._request("DELETE", f"/sessions/{self.session}")[0]

    def _request(self, method, path):
        connection = http.client.HTTPConnection(*self.address, timeout=GRACE)
        try:
            connection.request(method, path, headers=self.headers)
            response = connection.getresponse()
            body = response.read()
            return response.status, json.loads(body) if body else None
        finally:
            connection.close()


class A2eRunning:
    """A call under way over A2E."""

    def __init__(self, client, pending):
        self._client, self._pending = client, pending

    @property
    def is_over(self):
        return self._pending.received is not None

    @property
    def events(self):
        return self._pending.events

    def answer(self, seconds):
        return from_a2e(self._pending.wait(seconds))

    def cancel(self):
        return self._client.start(message("tool/cancel/req", call_id=self._pending.id))


class A2eCaller:
    """An agent in a session of its own over A2E."""

    face = "a2e"

    def __init__(self, host):
        self.client = Client(HttpTransport(host.address), host.token, ("tools",)).connect()

    def begin(self, tool, arguments, timeout=DEADLINE, **fields):
        return A2eRunning(self.client, self.client.begin(tool, arguments, timeout=timeout, **fields))

    def call(self, tool, arguments, timeout=DEADLINE):
        return self.begin(tool, arguments, timeout).answer(timeout + GRACE)

    def show(self, tool):
        return self.client.list(include_deferred=True).get(tool)

    def tools(self):
        return set(self.client.list(include_deferred=True))

    def close(self):
        """Says good-bye, without patience for what still runs."""
        self.client.post(message("shutdown", timeout=0))
        self.client.transport.close()

    def hang_up(self):
        self.client.transport.abandon()
