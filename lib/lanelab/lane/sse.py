"""Event streams, byte by byte, after the WHATWG rules.

A line ends in LF, CRLF or CR and in nothing else; a blank line ends an event. The parser works on
bytes, so that neither a character nor a line end that is cut between two reads can be lost, and
U+2028 or U+0085 inside a token stays where it is. Any split of the bytes gives the same events.

Two things go beyond the standard, because servers do them: a line of the field name `error` is
reported (some send `error: {…}` where an event should stand), and what was gathered when the body
ends without its last blank line can be asked for.

Source of the rules: https://html.spec.whatwg.org/multipage/server-sent-events.html, "Parsing an
event stream".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
LIMIT_BYTES = 64 * 1024 * 1024  # of one event; beyond it a server is broken or hostile


@dataclass(frozen=True)
class Event:
    """One event: its name (empty if the server gave none) and its data lines joined by LF."""

    data: str
    name: str = ""
    kind: str = "event"  # event | error_line


class EventTooBig(ValueError):
    """One event holds more than `LIMIT_BYTES`."""


class Parser:
    """Bytes in, events out. `feed` as they come, `rest` once when the body has ended."""

    def __init__(self) -> None:
        self.lines = 0  # lines that are a comment or a field of the format
        self._head: bytes | None = b""  # the first bytes, until it is clear whether a BOM stands there
        self._partial = bytearray()
        self._after_cr = False
        self._data: list[bytes] = []
        self._name = ""
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete, in order. Raises `EventTooBig`."""
        if not chunk:
            return []
        if self._head is not None:
            self._head += chunk
            if len(self._head) < len(_BOM) and _BOM.startswith(self._head):
                return []
            chunk, self._head = self._head.removeprefix(_BOM), None
        events: list[Event] = []
        position = 0
        if self._after_cr:
            position = int(chunk[:1] == b"\n")
            self._after_cr = False
        for end in _LINE_END.finditer(chunk, position):
            line = bytes(self._partial) + chunk[position : end.start()]
            self._partial.clear()
            position = end.end()
            self._line(line, events)
        self._after_cr = chunk.endswith(b"\r")
        self._partial += chunk[position:]
        if self._size + len(self._partial) > LIMIT_BYTES:
            raise EventTooBig(f"an event of more than {LIMIT_BYTES} bytes")
        return events

    def rest(self) -> tuple[Event | None, bool]:
        """What was gathered when the body ended, and whether an event was begun and not ended."""
        if self._head:
            self._partial += self._head
            self._head = None
        begun = len(self._partial) > 0 and b"data:".startswith(bytes(self._partial[:5]))
        events: list[Event] = []
        if self._partial:
            line = bytes(self._partial)
            self._partial.clear()
            self._line(line, events)
        begun = begun or bool(self._data)
        if events:  # an error line
            return events[0], begun
        return (self._event() if self._data else None), begun

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(self._event())
            self._data, self._name, self._size = [], "", 0
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"event":
            self._name = _text(value)
        elif name == b"error":
            events.append(Event(_text(value), "error", "error_line"))
        if name in {b"", b"data", b"event", b"error", b"id", b"retry"}:
            self.lines += 1

    def _event(self) -> Event:
        return Event(_text(b"\n".join(self._data)), self._name)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
