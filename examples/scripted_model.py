#!/usr/bin/env python3
"""A stand-in for a model, to try the agent loop without one.

It serves the chat completions form of OpenAI and the messages form of Anthropic, as far as tools need it, and
plays one script: list the directory, read the first file in the list, quote the last line of the file. Each turn
follows from the results of the loop. It refuses conversations that a real endpoint would refuse.
"""
import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Refused(Exception):
    """A request that a real endpoint would refuse with status 400."""


def expect(holds, complaint):
    if not holds:
        raise Refused(complaint)


def next_turn(results):
    """The script: the results so far lead to a tool with its arguments, or to a text."""
    if not results:
        return ("list_directory", {}), None
    if len(results) == 1:
        files = [line for line in results[0].splitlines() if line and not line.endswith("/")]
        return (("read_file", {"path": files[0]}), None) if files else (None, "There is no file to read.")
    # Each line begins with its number and a tab.
    _, _, last = results[1].splitlines()[-1].partition("\t")
    return None, f"The file ends with: {last}"


def openai(body):
    """Every assistant message with `tool_calls` must be followed by one `tool` message a call."""
    results, open_calls = [], []
    for message in body["messages"][1:]:
        if message["role"] == "assistant":
            expect(not open_calls, "an assistant message follows unanswered tool calls")
            open_calls = [call["id"] for call in message.get("tool_calls") or []]
        else:
            expect(message["role"] == "tool", f"did not expect role {message['role']}")
            expect(message["tool_call_id"] in open_calls, "tool_call_id answers no open call")
            open_calls.remove(message["tool_call_id"])
            results.append(message["content"])
    expect(not open_calls, "a tool call was not answered")
    call, text = next_turn(results)
    message = {"role": "assistant", "content": text}
    if call:
        name, arguments = call
        expect(name in [tool["function"]["name"] for tool in body["tools"]], f"no tool {name} was offered")
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{len(results) + 1}", "type": "function", "function": function}]
    reason = "tool_calls" if call else "stop"
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def anthropic(body):
    """Every `tool_use` block must be answered by a `tool_result` block in the very next message."""
    expect(isinstance(body.get("max_tokens"), int), "max_tokens is required")
    results, open_calls = [], []
    for message in body["messages"][1:]:
        if message["role"] == "assistant":
            open_calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
            continue
        for block in message["content"]:
            expect(block["type"] == "tool_result", f"did not expect a block of type {block['type']}")
            expect(block["tool_use_id"] in open_calls, "tool_use_id answers no tool_use of the message before")
            open_calls.remove(block["tool_use_id"])
            results.append(block["content"])
        expect(not open_calls, "a tool_use was not answered")
    expect(body["messages"][-1]["role"] == "user", "the last message must be the user's")
    call, text = next_turn(results)
    content = [{"type": "text", "text": text or "Let me look."}]
    if call:
        name, arguments = call
        expect(name in [tool["name"] for tool in body["tools"]], f"no tool {name} was offered")
        content.append({"type": "tool_use", "id": f"toolu_{len(results) + 1}", "name": name, "input": arguments})
    reason = "tool_use" if call else "end_turn"
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": reason}


class Endpoint(BaseHTTPRequestHandler):
    ways = {"/v1/chat/completions": openai, "/v1/messages": anthropic}

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            expect(self.path in self.ways, f"nothing at {self.path}")
            status, reply = 200, self.ways[self.path](body)
        except (Refused, KeyError, IndexError, TypeError) as refusal:
            status, reply = 400, {"error": {"type": "invalid_request_error", "message": str(refusal)}}
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Logs nothing: the loop prints its calls."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Endpoint)
    print(f"url http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()
