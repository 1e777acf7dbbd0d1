"""How a call ended, read from either face, in one shape."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    outcome: str
    text: str
    structured: object = None
    error_class: str = ""
    message: str = ""
    hint: str = ""
    exit_code: object = None
    truncated: object = None
    raw: dict = field(default_factory=dict, repr=False)

    @property
    def ok(self):
        return self.outcome in ("succeeded", "partial")

    @property
    def everything(self):
        """All that the caller was told, for looking for what it must not be told."""
        return repr(self.raw)

    @property
    def code(self):
        return (self.raw.get("error") or {}).get("code", "") if isinstance(self.raw.get("error"), dict) else ""

    @property
    def invocation_id(self):
        return self.raw.get("invocation_id", "")


def from_http(body):
    """A result of plain HTTP, or an error before there was a call."""
    if "outcome" not in body:
        error = body["error"]
        return Answer("refused", "", error_class=error["code"], message=error["message"], raw=body)
    error = body.get("error") or {}
    texts = [piece["text"] for piece in body.get("content", ()) if piece.get("type") == "text"]
    return Answer(
        outcome=body["outcome"],
        text="\n".join(texts),
        structured=body.get("structured_content"),
        error_class=error.get("class", ""),
        message=error.get("message", ""),
        hint=error.get("hint", ""),
        exit_code=body.get("exit_code"),
        truncated=body.get("truncated"),
        raw=body,
    )


def from_a2e(message):
    """An answer over A2E: a result, or an `error` in its place."""
    if message["type"] == "error":
        return Answer("refused", "", error_class=message["code"], message=message.get("message", ""), raw=message)
    data = message["data"]
    given = data.get("data")
    wrapped = isinstance(given, dict) and "text" in given
    return Answer(
        outcome=data.get("outcome") or ("succeeded" if data["success"] else "failed"),
        text=given["text"] if wrapped else "",
        structured=given.get("structured") if wrapped else given,
        error_class=data.get("error_class", ""),
        message=data.get("error", ""),
        hint=data.get("hint", ""),
        exit_code=data.get("exit_code"),
        truncated=data.get("truncated"),
        raw=data,
    )
