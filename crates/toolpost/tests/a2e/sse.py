"""The client's reader of server-sent events, weaknesses included.

It takes text in pieces, splits with `str.splitlines` (which breaks at more than line feeds), and puts an unfinished
line in front of the next piece, so a long line costs the square of its length. A host has to live with that.
"""

import codecs

PIECE = 512


def charset_of(content_type):
    """The encoding the client takes: what the header names, else ISO-8859-1."""
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")
    return "ISO-8859-1"


class LineReader:
    """Bytes in, whole lines out."""

    def __init__(self, charset="utf-8"):
        self._decoder = codecs.getincrementaldecoder(charset)(errors="replace")
        self._unfinished = ""

    def feed(self, piece):
        text = self._unfinished + self._decoder.decode(piece)
        lines = text.splitlines()
        self._unfinished = ""
        if lines and lines[-1] and text.endswith(lines[-1]):
            self._unfinished = lines.pop()
        return lines


class EventReader:
    """Lines in, the data of whole events out. Comments, `id`, `event` and `retry` are passed over."""

    def __init__(self):
        self._data = []

    def feed(self, line):
        """The data of the event that this line ends, or None."""
        if not line:
            data, self._data = self._data, []
            return "\n".join(data) if data else None
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        return None


class SseReader:
    """Bytes in, texts of messages out."""

    def __init__(self, content_type="text/event-stream; charset=utf-8"):
        self._lines = LineReader(charset_of(content_type))
        self._events = EventReader()

    def feed(self, piece):
        """The messages that are whole now. A piece is at most `PIECE` bytes."""
        found = (self._events.feed(line) for line in self._lines.feed(piece))
        return [text for text in found if text is not None]
