"""A stream's text as it grows, with stop strings that never reach the client."""

from __future__ import annotations


class TextStream:
    """Takes token texts, gives out what is safe to send.

    While stop strings are watched for, as many letters as one could still begin in are held back.
    """

    def __init__(self, stop: list[str], *, include_stop: bool = False) -> None:
        self._stop = [word for word in stop if word]
        self._include_stop = include_stop
        self._hold = max((len(word) for word in self._stop), default=1) - 1
        self._text = ""
        self._sent = 0
        self.stopped_by: str | None = None

    def push(self, text: str, *, watch: bool = True) -> str:
        """Add a token's text and return the letters to send; sets `stopped_by` at the earliest stop string."""
        # a stop string may begin in letters seen before, but not in ones that were sent
        search_from = max(self._sent, len(self._text) - self._hold)
        self._text += text
        if watch:
            found = [(at, word) for word in self._stop if (at := self._text.find(word, search_from)) >= 0]
            if found:
                at, self.stopped_by = min(found, key=lambda pair: (pair[0], -len(pair[1])))
                self._text = self._text[: at + (len(self.stopped_by) if self._include_stop else 0)]
                return self.flush()
        return self._give(max(self._sent, len(self._text) - self._hold))

    def flush(self) -> str:
        """What is still held back, at the end."""
        return self._give(len(self._text))

    def _give(self, until: int) -> str:
        part, self._sent = self._text[self._sent : until], until
        return part
