"""What both dialects say, in words of neither: an item of a stream is a kind and a body, a state a lower-case word."""

KINDS = {"statusUpdate": "status", "artifactUpdate": "artifact", "status-update": "status", "artifact-update": "artifact"}


def state(body):
    """The state of a task or of a status update."""
    return body["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")


def said(message):
    """The text of a message."""
    return "\n".join(part["text"] for part in message["parts"] if "text" in part)


def events_of(message):
    """The tool events in a message, which only an agent's has."""
    if message["role"].removeprefix("ROLE_").lower() != "agent":
        return []
    data = [part["data"] for part in message["parts"] if "data" in part]
    return [one for one in data if isinstance(one, dict) and str(one.get("type", "")).startswith("tool-")]


def events_of_task(task):
    return [event for message in task.get("history", []) for event in events_of(message)]


def events_of_items(items):
    statuses = [body["status"] for kind, body in items if kind == "status"]
    return [event for status in statuses if "message" in status for event in events_of(status["message"])]


def types(events):
    return [event["type"] for event in events]
