"""Whatever a tool returned, as the one shape of a result, with the text that a model is given."""

from .channel import encoded
from .plain import plain, shown, text

YES, NO = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")
SHAPE = ("success", "output", "error", "content")


def result_of(value, bridge, call):
    """The answer to a call, as a line. Of one that is too large a part is shown, and the whole waits to be fetched."""
    most = bridge.result_bytes
    success, output, error, content = taken_apart(value)
    result = {"success": success, "output": plain(output), "error": plain(error)}
    if content:
        result["content"] = plain(content)
    answer = {"type": "result", "id": call, "result": result}
    extras = getattr(value, "extras", None)
    if isinstance(value, dict) and extras:
        answer["extras"] = extras
    line = encoded(answer)
    if len(line) <= most:
        return line
    # A part that can be read is worth more than none; what is missing is said.
    said = model_text(value, bridge.core, result).encode("utf-8", "ignore")
    whole, media_type = said, "text/plain; charset=utf-8" if isinstance(output, str) else "application/json"
    if content:
        whole, media_type = encoded(result), "application/json"
    if content and output is None:
        said = b""
    waiting = bridge.keep(call, whole)
    shown_part = said[: max(0, most // 2)]
    blocks = len(result["content"]) if isinstance(result.get("content"), list) else int(bool(content))
    result = {"success": success, "output": shown_part.decode("utf-8", "ignore"), "error": None}
    if success is not True:
        result["error"] = _small(error)
    # What is not text cannot be shown in part.
    cut = {"shown": len(shown_part), "total": len(whole), "content": blocks, "waiting": waiting, "media_type": media_type}
    return encoded({"type": "result", "id": call, "result": result, "cut": cut})


def _small(error):
    message = error.get("message") if isinstance(error, dict) else error
    return {"message": shown(message)[:2000]}


def taken_apart(value):
    """Success, output, error and content of any return."""
    if isinstance(value, dict):
        # A table with other keys is an output, not a result.
        if "success" in value and set(value) <= set(SHAPE):
            return _checked(*(value.get(name) for name in SHAPE))
        return True, value, None, None
    if not isinstance(value, type) and hasattr(value, "success") and hasattr(value, "output"):
        return _checked(value.success, value.output, getattr(value, "error", None), getattr(value, "content", None))
    return True, value, None, None


def _checked(success, output, error, content):
    if error is not None and not isinstance(error, dict):
        error = error.model_dump() if hasattr(error, "model_dump") else {"message": shown(error)}
    return _truth(success), output, error, content


def _truth(success):
    """Amplifier reads words and numbers too: `no` is no. Anything else is neither, and no result; the host says so."""
    if isinstance(success, (bool, int, float)) and success in (0, 1):
        return bool(success)
    if isinstance(success, str) and success.lower() in YES + NO:
        return success.lower() in YES
    return plain(success)


def model_text(value, core, result):
    """As Amplifier's own result would say it."""
    try:
        if isinstance(value, core.ToolResult):
            return text(value.get_serialized_output())
    except Exception:
        pass
    try:
        return text(core.ToolResult(**result).get_serialized_output())
    except Exception:
        return text(shown(result["output"]))
