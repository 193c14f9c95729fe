"""Rows of routing: how often the router picked each cell, and what share of the traffic a hot list serves."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register


class RoutingCount(Row):
    """Picks of one cell (one expert of one layer)."""

    layer: int = measured_in("1", says="index of the layer in the model")
    expert: int = measured_in("1", says="index of the expert in its layer")
    phase: Literal["decode", "prefill", "both", "unknown"] = "unknown"
    picks: int = measured_in("picks", says="times that the router chose it")


class Coverage(Row):
    """The share of router picks that a set of hot cells serves.

    `ranking` names the traffic the cells were ranked on, `traffic` the traffic they are judged on: the same
    name means an oracle (it saw its own exam), except for `layers`, the stock placement of whole layers, whose
    share is an identity (every layer has the same number of picks), not a measurement.
    """

    ranking: str
    traffic: str
    phase: Literal["decode", "prefill", "both", "unknown"] = "unknown"
    held_out: bool | None = None
    hot_gib: float | None = measured_in("GiB", None, says="weights of the hot cells, scales not counted")
    hot_cells: int | None = measured_in("cells", None)
    cells: int | None = measured_in("cells", None)
    share: float = measured_in("1", says="picks of hot cells / all picks")
    identity: bool = False  # true by arithmetic, whatever the traffic
    note: str | None = None


class Overlap(Row):
    """How alike two hot lists are."""

    a: str
    b: str
    hot_cells: int = measured_in("cells")
    jaccard: float = measured_in("1", says="cells in both / cells in either")
    pearson: float | None = measured_in("1", None, says="correlation of the two traffics' counts")


register("routing-counts", 1, RoutingCount, "router picks by layer and expert")
register("coverage", 1, Coverage, "share of the traffic that a hot list serves")
register("overlap", 1, Overlap, "how alike two hot lists are")
