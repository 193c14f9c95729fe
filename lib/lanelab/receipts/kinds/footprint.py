"""Rows of a footprint: what a checkpoint holds, and what a machine has to hold it in."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register


class Footprint(Row):
    """One part of what is needed, or one memory that is there."""

    side: Literal["needs", "has"]
    part: str
    gib: float = measured_in("GiB")
    note: str | None = None


register("footprint", 1, Footprint, "what a checkpoint holds and what a machine has")
