#!/usr/bin/env python3
"""An agent loop over a Toolpost host: agent_loop.py openai|anthropic "TASK". See examples/README.md."""
import json, os, sys, urllib.error, urllib.request, uuid
if len(sys.argv) != 3 or sys.argv[1] not in ("openai", "anthropic") or "TOOLPOST_TOKEN" not in os.environ:
    sys.exit('usage: TOOLPOST_TOKEN=… agent_loop.py openai|anthropic "TASK"')
_, provider, task = sys.argv
host, token = os.environ.get("TOOLPOST_URL", "http://127.0.0.1:8765"), os.environ["TOOLPOST_TOKEN"]
key, name = os.environ.get("MODEL_API_KEY", ""), os.environ.get("MODEL_NAME", "")
model = os.environ.get("MODEL_URL", f"https://api.{provider}.com/v1")

def send(url, headers, body=None):
    request = urllib.request.Request(url, body and body.encode(), {"Content-Type": "application/json", **headers})
    try:
        return json.load(urllib.request.urlopen(request, timeout=120))
    except urllib.error.HTTPError as refusal:
        text = refusal.read().decode()
        if '"invocation_id"' in text:  # a denial is a result too, for the model to read
            return json.loads(text)
        sys.exit(f"{url}: {refusal.code} {text}")  # such as a wrong token
    except urllib.error.URLError as failure:
        sys.exit(f"{url}: {failure.reason}")

def call(id, tool, arguments):  # runs a tool and returns its text for the model
    known = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(uuid.uuid4()), "Toolpost-Call-Id": id}
    result = send(f"{host}/tools/{tool}/call", known, arguments or "{}")
    while "outcome" not in result:  # the call waits for approval, and runs after a yes
        result = send(f"{host}/invocations/{result['invocation_id']}?wait=50", known).get("result", result)
    print(tool, arguments, result["outcome"], result["invocation_id"], file=sys.stderr)
    texts = [piece["text"] for piece in result["content"] if piece["type"] == "text"]
    texts += [f"[{result['truncated']['hint']}]"] if result.get("truncated", {}).get("hint") else []  # how to read on
    return json.dumps(result["error"]) if result["is_error"] else "\n".join(texts) or json.dumps(result)

tools = send(f"{host}/tools?format={provider}", {"Authorization": f"Bearer {token}"})
messages, calls = [{"role": "user", "content": task}], True
while calls:
    body = {"model": name, "max_tokens": 2048, "messages": messages, "tools": tools}
    if provider == "openai":
        reply = send(f"{model}/chat/completions", {"Authorization": f"Bearer {key}"}, json.dumps(body))["choices"][0]["message"]
        text, calls = reply.get("content"), [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in reply.get("tool_calls") or []]
        messages += [reply] + [{"role": "tool", "tool_call_id": id, "content": call(id, tool, given)} for id, tool, given in calls]
    else:
        reply = send(f"{model}/messages", {"x-api-key": key, "anthropic-version": "2023-06-01"}, json.dumps(body))["content"]
        text, calls = "".join(b["text"] for b in reply if b["type"] == "text"), [(b["id"], b["name"], json.dumps(b["input"])) for b in reply if b["type"] == "tool_use"]
        messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": call(id, tool, given)} for id, tool, given in calls]}]
print(text)
