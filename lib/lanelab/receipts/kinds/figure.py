"""A published number as it stands in its source: name, value, unit, and what the source says about it."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, register


class Figure(Row):
    """One number (or one text) of a source. A list or table of the source is several rows: `part` tells them apart.

    `unit` stands in the row, since every name has its own. `flag` is the source's own word on it. A corrected
    figure keeps the value it replaces.
    """

    collection: str
    name: str
    part: str = ""  # "" for a single value, else the path to it: "0", "h1.solved.0"
    value: float | None = None
    text: str | None = None
    unit: str | None = None
    flag: Literal["predicted", "measured", "derived", "corrected"] | None = None
    used_in: list[str] = []
    said_in: str | None = None
    corrected_on: str | None = None
    old_value: str | None = None
    note: str | None = None


register("figure", 1, Figure, "published numbers by name")
