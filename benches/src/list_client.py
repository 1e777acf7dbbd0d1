"""Lists all tools of a host as clients of this protocol do, and prints how long that took as JSON.

Such clients read the stream in pieces of 512 bytes, put what is left of an unfinished line in front of the next piece
and split again with `str.splitlines`, so a long line costs the square of its length.
"""

import codecs
import http.client
import json
import sys
import time

PIECE = 512


class Reader:
    """Bytes in, texts of messages out."""

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.unfinished = ""
        self.data = []

    def feed(self, piece):
        text = self.unfinished + self.decoder.decode(piece)
        lines = text.splitlines()
        self.unfinished = ""
        if lines and lines[-1] and text.endswith(lines[-1]):
            self.unfinished = lines.pop()
        messages = []
        for line in lines:
            if line.startswith("data:"):
                self.data.append(line[5:].removeprefix(" "))
            elif not line and self.data:
                messages.append("\n".join(self.data))
                self.data = []
        return messages


class Client:
    def __init__(self, address):
        self.sender = http.client.HTTPConnection(address)
        session = json.loads(self.post("/session", "", {}))["session_id"]
        self.headers = {"X-Session-Id": session, "Content-Type": "text/plain"}
        connection = http.client.HTTPConnection(address)
        connection.request("GET", "/stream", headers={**self.headers, "Accept": "text/event-stream"})
        self.stream = connection.getresponse()
        self.reader = Reader()
        self.pieces = []

    def post(self, path, body, headers):
        self.sender.request("POST", path, body.encode(), headers)
        response = self.sender.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body

    def ask(self, kind, **fields):
        """Sends a message and waits for its answer."""
        self.pieces.clear()
        self.post("/send", json.dumps({"type": kind, "id": kind, **fields}), self.headers)
        while True:
            piece = self.stream.read1(PIECE)
            assert piece, "the stream ended"
            self.pieces.append(piece)
            for text in self.reader.feed(piece):
                message = json.loads(text)
                if message.get("req_id") == kind:
                    return message


def main():
    client = Client(sys.argv[1])
    assert client.ask("handshake/req", agent_caps=["tools"]).get("ok", True)
    began = time.perf_counter()
    tools = client.ask("tool/list/req")["tools"]
    whole = time.perf_counter() - began
    # What of that is the client's own: the same pieces again, without a host.
    began = time.perf_counter()
    reader = Reader()
    for piece in client.pieces:
        for text in reader.feed(piece):
            json.loads(text)
    parsing = time.perf_counter() - began
    size = sum(map(len, client.pieces))
    print(json.dumps({"tools": len(tools), "bytes": size, "whole": whole, "parsing": parsing}))


main()
