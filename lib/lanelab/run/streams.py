"""What a cell prints and shows, joined and bounded.

A kernel sends a message a flush: ten thousand flushed prints are ten thousand outputs. Here all
text of one stream becomes one output until something else (a table, a figure) comes between. Text
beyond a budget is cut in the middle: head and tail stay, and the number of bytes cut is said.

What is shown otherwise (a table, a figure, an error) is bounded too, before anything walks over it: a
bundle beyond its room is replaced by a line that says how many bytes were left out.

The budget counts what nbformat will store: UTF-8 bytes, and for each line its quotes and indent.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from nbformat import NotebookNode

LINE_COST = 14  # bytes around each stored line: indent, quotes, \n, comma, line end
CELL_BUDGET = 1_600_000  # stored bytes of text a cell
NOTEBOOK_BUDGET = 1_700_000  # and all cells together
FIRST_SHARE = 0.85  # of what is left, for a stream that begins; the rest is for the next one
HEAD_SHARE = 0.15  # of a stream's budget; the end of a flood tells more than its beginning
SMALLEST = 8_000  # what a cell may keep after the notebook's budget is spent
MOST_OUTPUTS = 500  # outputs a cell
BUNDLE_BUDGET = 1_500_000  # stored bytes of one output that is no stream
OUTPUTS_BUDGET = 1_900_000  # streams and all other outputs of the notebook together
ERROR_BUDGET = 100_000  # an error's message and traceback


def cost(text: str) -> int:
    """Bytes that the text will take in the notebook's file, about."""
    return len(text.encode("utf-8", "replace")) + LINE_COST * text.count("\n")


def size(value: Any) -> int:
    """Bytes that a JSON value will take in the notebook's file, about; nothing is copied."""
    if isinstance(value, str):
        return cost(value)
    if isinstance(value, dict):
        return sum(size(key) + size(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(size(item) for item in value)
    return 8


class CappedText:
    """Text with a bounded memory: the first and the last stored bytes, `HEAD_SHARE` of `budget` at the head."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.cut_bytes = 0
        self._head: list[str] = []
        self._head_room = int(budget * HEAD_SHARE)
        self._tail_room = budget - self._head_room
        self._tail: deque[str] = deque()
        self._tail_cost = 0

    @property
    def used(self) -> int:
        """Stored bytes kept so far."""
        return int(self.budget * HEAD_SHARE) - self._head_room + self._tail_cost

    def add(self, text: str) -> None:
        """Append; the middle goes once head and tail are full."""
        if self._head_room > 0:
            if cost(text) <= self._head_room:
                self._head.append(text)
                self._head_room -= cost(text)
                return
            kept = _prefix(text, self._head_room)
            self._head.append(kept)
            self._head_room = 0
            text = text[len(kept) :]
        self._tail.append(text)
        self._tail_cost += cost(text)
        while self._tail_cost > self._tail_room:
            first = self._tail.popleft()
            self._tail_cost -= cost(first)
            rest = _suffix(first, self._tail_room - self._tail_cost)
            self.cut_bytes += len(first[: len(first) - len(rest)].encode("utf-8", "replace"))
            if rest:
                self._tail.appendleft(rest)
                self._tail_cost += cost(rest)
                break

    def text(self) -> str:
        """What is kept, with a line that says what was cut; overwritten progress bars are gone."""
        head, tail = "".join(self._head), "".join(self._tail)
        if self.cut_bytes:
            return f"{_settled(head)}\n[… {self.cut_bytes} bytes cut here by the runner …]\n{_settled(tail)}"
        return _settled(head + tail)


def _prefix(text: str, room: int) -> str:
    """The longest beginning that costs at most `room`."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(text[:middle]) <= room else (low, middle - 1)
    return text[:low]


def _suffix(text: str, room: int) -> str:
    """The longest end that costs at most `room`."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(text[len(text) - middle :]) <= room else (low, middle - 1)
    return text[len(text) - low :]


def _shortened(text: str, budget: int) -> str:
    """The text's head and tail within the budget."""
    capped = CappedText(budget)
    capped.add(text)
    return capped.text()


def _settled(text: str) -> str:
    """The text after its carriage returns: what a terminal would show in the end."""
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


class CellStreams:
    """The stream outputs of all cells of a run, in memory until they are put into the notebook."""

    def __init__(self) -> None:
        self.cut_bytes: dict[str, int] = {}  # cell id to bytes cut
        self.dropped_outputs: dict[str, int] = {}  # cell id to outputs left out
        self.left_out: dict[str, list[int]] = {}  # cell id to the bytes of each output that was too large
        self._spent = 0  # of earlier cells, and of this cell's outputs that are no stream
        self._shown = 0  # the latter alone
        self._cell = ""
        self._room = 0
        self._open: dict[str, tuple[NotebookNode, CappedText]] = {}
        self._all: list[tuple[NotebookNode, CappedText]] = []

    def begin(self, cell_id: str) -> None:
        """A new cell: its text gets a budget of its own."""
        self._spent += sum(cost(text.text()) for _, text in self._all)
        self._shown = 0
        self._cell = cell_id
        self._room = max(SMALLEST, min(CELL_BUDGET, NOTEBOOK_BUDGET - self._spent))
        self._open, self._all = {}, []

    def add(self, name: str, text: str) -> NotebookNode | None:
        """Text of stream `name`; returns a new output to append if there is none to add to."""
        fresh = None
        if name not in self._open:
            fresh = NotebookNode(output_type="stream", name=name, text="")
            budget = max(SMALLEST // 8, int(self._room * FIRST_SHARE))
            self._room -= budget
            self._open[name] = (fresh, CappedText(budget))
            self._all.append(self._open[name])
        self._open[name][1].add(text)
        return fresh

    def interrupted(self, outputs: int) -> bool:
        """Something else was shown: later text is a new output. False if the cell has too many outputs."""
        if outputs >= MOST_OUTPUTS:
            self.dropped_outputs[self._cell] = self.dropped_outputs.get(self._cell, 0) + 1
            return False
        used = sum(cost(text.text()) for _, text in self._open.values())
        reserved = sum(text.budget for _, text in self._open.values())
        self._room += max(0, reserved - used)
        self._open = {}
        return True

    def forget(self) -> None:
        """The cell cleared its outputs."""
        self._open, self._all = {}, []
        self._spent -= self._shown
        self._shown = 0

    def bundle(self, content: dict[str, Any], *, again: bool = False) -> None:
        """Bound a display message's `data` in place; `again` says that it replaces an earlier one."""
        data = content.get("data") or {}
        stored = size(data) + size(content.get("metadata") or {})
        left = OUTPUTS_BUDGET - self._spent - sum(text.used for _, text in self._all)
        room = max(SMALLEST, min(BUNDLE_BUDGET, left + (BUNDLE_BUDGET if again else 0)))
        if stored > room:
            self._leave_out(stored)
            note = f"[… an output of {stored} bytes ({', '.join(sorted(data))[:200]}) left out here by the runner …]"
            text = data.get("text/plain")
            if isinstance(text, str) and len(data) > 1 and cost(text) < SMALLEST // 2:
                note += f"\n{text}"
            content["data"], content["metadata"] = {"text/plain": note}, {}
            stored = cost(note)
        if not again:
            self._spent += stored
            self._shown += stored
            self._room = max(SMALLEST, self._room - stored)

    def error(self, content: dict[str, Any]) -> None:
        """Bound an error message in place."""
        lines = [str(line) for line in content.get("traceback") or []]
        stored = size(lines) + size(content.get("evalue") or "")
        if stored <= ERROR_BUDGET:
            return
        self._leave_out(stored - ERROR_BUDGET)
        share = ERROR_BUDGET // 4
        content["evalue"] = _shortened(str(content.get("evalue") or ""), share)
        content["traceback"] = _shortened("\n".join(lines), 3 * share).split("\n")

    def _leave_out(self, stored: int) -> None:
        self.left_out.setdefault(self._cell, []).append(stored)

    def put(self) -> None:
        """Write the text kept so far into the outputs."""
        for output, text in self._all:
            output["text"] = text.text()
        if cut := sum(text.cut_bytes for _, text in self._all):
            self.cut_bytes[self._cell] = cut
