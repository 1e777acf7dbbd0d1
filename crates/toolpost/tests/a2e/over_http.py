"""The client's HTTP transport: messages go out by POST, come in by an event stream, and both are tried again.

The misbehaviour that hosts must live with can be turned on here: readers that stop, crawl or vanish, messages sent
twice, answers to a POST that get lost.
"""

import http.client
import json
import select
import socket
import struct
import threading
import time

from sse import PIECE, SseReader

CONNECT_PATIENCE, POST_PATIENCE = 5, 30
ATTEMPTS, BETWEEN_ATTEMPTS = 3, 1
LONGEST_BACKOFF = 30
CLOSE_PATIENCE = 5
STOCK_HEADERS = {
    "User-Agent": "python-requests",
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "keep-alive",
}


class StreamRefused(Exception):
    """GET /stream did not answer with a stream."""


class HttpTransport:
    """One session over HTTP."""

    def __init__(self, address, *, reads=True, copies=1, piece_pause=0.0, receive_buffer=None):
        self.address = address
        self.reads = reads
        self.copies = copies
        self.piece_pause = piece_pause
        self.receive_buffer = receive_buffer
        self.session_id = None
        self.dead = False
        self.retries = []
        self.opened_streams = 0
        self.refused_streams = []
        self._answers_to_lose = 0
        self._client = None
        self._sending = threading.Lock()
        self._post_connection = None
        self._stream_socket = None
        self._may_read = threading.Event()
        self._may_read.set()
        self._stop = threading.Event()
        self._reader = None

    # The transport.

    def open(self, client):
        self._client = client
        connection = http.client.HTTPConnection(*self.address)
        connection.request("POST", "/session", headers=STOCK_HEADERS)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 200:
            raise ConnectionError(f"POST /session answered {response.status}: {body!r}")
        self.session_id = json.loads(body)["session_id"]
        if self.reads:
            self.start_reading()

    def start_reading(self):
        """Starts the reader's thread, for a transport that was opened without."""
        self._reader = threading.Thread(target=self._read_streams, daemon=True)
        self._reader.start()

    def send(self, text):
        """Sends a message. Failure is tried again, and then swallowed: `dead` tells."""
        with self._sending:
            for _ in range(self.copies):
                self._send_one(text.encode())

    def close(self):
        """Waits for the reader; gives the seconds it took."""
        start = time.monotonic()
        self._stop.set()
        self._may_read.set()
        if self._reader:
            self._reader.join(CLOSE_PATIENCE)
        took = time.monotonic() - start
        self.abandon()
        return took

    def abandon(self):
        """Ends everything at once, without a word to the host."""
        self._stop.set()
        self._may_read.set()
        self.drop_stream()
        if self._reader:
            self._reader.join(CLOSE_PATIENCE)
        self._forget_connection()

    # Misbehaviour.

    def stop_reading(self):
        self._may_read.clear()

    def go_on_reading(self):
        self._may_read.set()

    def lose_answers(self, count):
        """The next POSTs reach the host, but their answers do not come back."""
        self._answers_to_lose = count

    def drop_stream(self):
        """Cuts the stream as a dying network would: no farewell."""
        stream = self._stream_socket
        if stream:
            try:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It is gone already.

    # Out.

    def _send_one(self, body):
        if self.dead:
            return
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(BETWEEN_ATTEMPTS)
            try:
                status = self._post(body)
                if 200 <= status < 300:
                    return
                self.retries.append(status)
            except (OSError, http.client.HTTPException) as error:
                self.retries.append(error)
            self._forget_connection()
        self.dead = True

    def _post(self, body):
        connection = self._live_connection()
        headers = STOCK_HEADERS | {"X-Session-Id": self.session_id, "Content-Type": "text/plain"}
        connection.request("POST", "/send", body=body, headers=headers)
        connection.sock.settimeout(POST_PATIENCE)
        if self._answers_to_lose:
            self._answers_to_lose -= 1
            select.select([connection.sock], [], [], POST_PATIENCE)
            raise ConnectionError("the answer was lost on purpose")
        response = connection.getresponse()
        response.read()
        return response.status

    def _live_connection(self):
        """The kept connection, unless the other side has closed it in the meantime."""
        kept = self._post_connection
        if kept and kept.sock and not select.select([kept.sock], [], [], 0)[0]:
            return kept
        self._forget_connection()
        self._post_connection = http.client.HTTPConnection(*self.address, timeout=CONNECT_PATIENCE)
        return self._post_connection

    def _forget_connection(self):
        if self._post_connection:
            self._post_connection.close()
            self._post_connection = None

    # In.

    def _read_streams(self):
        self._backoff = 1
        while not self._stop.is_set():
            try:
                self._read_one_stream()  # One that ends cleanly is opened again at once.
            except (OSError, http.client.HTTPException, StreamRefused):
                if self._stop.wait(self._backoff):
                    return
                self._backoff = min(self._backoff * 2, LONGEST_BACKOFF)

    def _read_one_stream(self):
        connection = http.client.HTTPConnection(*self.address)
        connection.sock = self._stream_socket = self._connect_stream()
        try:
            headers = {"X-Session-Id": self.session_id, "Accept": "text/event-stream", "Cache-Control": "no-cache"}
            connection.request("GET", "/stream", headers=STOCK_HEADERS | headers)
            response = connection.getresponse()
            if response.status != 200:
                self.refused_streams.append(response.status)
                raise StreamRefused(response.status)
            self.opened_streams += 1
            self._backoff = 1
            self._read_pieces(response)
        finally:
            self._stream_socket = None
            connection.close()

    def _connect_stream(self):
        stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if self.receive_buffer:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        stream.settimeout(CONNECT_PATIENCE)
        try:
            stream.connect(self.address)
        except OSError:
            stream.close()
            raise
        stream.settimeout(None)
        return stream

    def _read_pieces(self, response):
        if response.headers.get("Content-Encoding"):
            self._client.fault(AssertionError("the stream is compressed"))
        reader = SseReader(response.headers.get("Content-Type", ""))
        # Without chunks the client's library waits for a whole piece; with them it takes what is there.
        read = response.read1 if response.chunked else response.read
        while True:
            self._may_read.wait()
            if self.piece_pause:
                time.sleep(self.piece_pause)
            piece = read(PIECE)
            if not piece:
                return
            for text in reader.feed(piece):
                self._client.take(text)
