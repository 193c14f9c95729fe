"""Speed by agent task: every boot beside the control."""

from __future__ import annotations

from lanelab.publish.exhibit import Column, Table, table
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, one, origin_of, receipts_of, spread_text, state_of, summary


def rows(reader: Reader) -> Rows:
    """One row a task and boot: n passes, median, range."""
    found = reader.rows("agent-task")
    return [
        {
            "task": task, "boot": boot, "n": speed.n, "tok_s": speed.median, "range": spread_text(speed),
            "turns": group[0]["turns"], "state": one(group, state_of), "origin": one(group, origin_of),
            "receipts": receipts_of(group),
        }
        for (task, boot), group in grouped(found, lambda row: (row["task"], row["boot"] or row["lane"])).items()
        for speed in [summary(row["tok_s"] for row in group)]
    ]  # fmt: skip


def note(shown: Rows) -> str:
    """What the speed is."""
    return "Tokens over whole request time, so prefill counts against it." if shown else ""


table(Table(
    "tasks", lambda reader: sorted(rows(reader), key=lambda row: (row["task"], row["boot"])),
    (
        Column("task", "task", text=True), Column("boot", "boot", text=True), Column("n", "passes"), Column("turns", "turns"),
        Column("tok_s", "tok/s", 1), Column("range", "range", text=True), Column("state", "state", text=True),
        Column("origin", "origin", text=True),
    ),
    "Speed by agent task: medians of n passes", "agent_task", note=note,
))  # fmt: skip
