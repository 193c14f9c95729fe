"""Several rows of one thing as n, median and spread; contended rows never enter.

The spread is the whole range, smallest to largest: with the few repeats that a lane minute buys, a
quartile would be made of one value.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lanelab.publish.quantity import number_text

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Summary:
    """n values with their median, smallest and largest; None where there is no value."""

    n: int
    median: float | None
    low: float | None
    high: float | None


def summary(values: Iterable[float | None]) -> Summary:
    """Median and range of the values that are known."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return Summary(0, None, None, None)
    return Summary(len(known), statistics.median(known), known[0], known[-1])


def spread_text(found: Summary, digits: int | None = None) -> str:
    """`36.6–37.5`, or an en dash where there is nothing to spread."""
    if found.n < 2 or found.low is None or found.high is None:
        return "–"
    if found.low == found.high:
        return "none"
    return f"{number_text(found.low, digits)}–{number_text(found.high, digits)}"


def state_of(row: dict[str, Any]) -> str:
    """The row's own state, else its receipt's."""
    own = row.get("row_state")
    return str(own if own not in (None, "unknown") else row.get("state") or "unknown")


def origin_of(row: dict[str, Any]) -> str:
    """`measured`, `published` … with `emulated` where the receipt says so."""
    return f"{row.get('origin', 'unknown')}{', emulated' if row.get('emulated') else ''}"


def one(rows: Rows, of: Callable[[dict[str, Any]], str]) -> str:
    """What several rows agree on, or every value once."""
    return ", ".join(sorted({of(row) for row in rows}))


def grouped(rows: Rows, key: Callable[[dict[str, Any]], Any]) -> dict[Any, Rows]:
    """Rows by key, in order of first appearance."""
    found: dict[Any, Rows] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def series_key(rows: Rows) -> Callable[[dict[str, Any]], str]:
    """How the rows are told apart: by boot, recipe, lane or machine, whichever first differs."""
    for column in ("recipe", "boot", "lane", "machine", "model"):
        names = {_name(row.get(column)) for row in rows}
        if len(names - {""}) > 1 or (column == "boot" and len(names) > 1):
            return lambda row, column=column: _name(row.get(column)) or "unnamed"  # type: ignore[misc]
    for column in ("recipe", "lane", "boot"):
        names = {_name(row.get(column)) for row in rows}
        if names and "" not in names:
            return lambda row, column=column: _name(row.get(column))  # type: ignore[misc]
    return lambda row: "all rows"


def _name(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("name")
    return "" if value is None else str(value)


def receipts_of(rows: Rows) -> list[str]:
    """Ids of the receipts that the rows stand in."""
    return sorted({str(row["receipt"]) for row in rows if row.get("receipt")})


BUSY_CORES = 0.5  # kept busy by others: from here on a reader is told, since a lane on that machine was slower for it


def busy_note(rows: Rows) -> str:
    """Says how much of the machine others used meanwhile, where it was enough to matter."""
    most = max((row["others_busy_cores"] for row in rows if row.get("others_busy_cores") is not None), default=0.0)
    if most < BUSY_CORES:
        return ""
    return f"The machine was not quiet: other processes kept up to {most:.1f} cores busy meanwhile."
