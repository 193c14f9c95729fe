"""What this project worked out from the published counts; never published by the sources.

Each derived receipt names the receipts it was computed from, and the function that computed it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanelab.importers.mimo26.routing import CELLS, COUNTS, STOCK_CELLS, counts_of
from lanelab.importers.mimo26.source import PublishedFolder, frame
from lanelab.receipts import Receipt
from lanelab.routing import coverage, hot_cells, jaccard, stock_cells
from lanelab.routing.coverage import Counts

# weights alone, 18 MiB a cell, as the budgets of v24, v19b and v22 count
_BUDGETS = {6257: 110.0, 8064: 141.8, 8692: 152.8}
_FIRST_HOT_ROW = 48  # stock: layers 49 to 69, rows 48 to 68


def derived(source: PublishedFolder) -> list[Receipt]:
    """Coverage of each ranking on each traffic, the overlap of the lists, and the histogram's own ranges."""
    counts = {name: _array(source.json(f"routing/{file}.json")) for name, (file, *_) in COUNTS.items()}
    shares: list[dict[str, Any]] = []
    for traffic, on in counts.items():
        stock = coverage(stock_cells((69, 384), _FIRST_HOT_ROW), on)
        shares.append(_row("layers", traffic, STOCK_CELLS, 141.75, stock, identity=True))
        for ranking, by in counts.items():
            shares += [
                _row(ranking, traffic, cells, gib, coverage(hot_cells(by, cells), on))
                for cells, gib in _BUDGETS.items()
            ]
    curve = [
        _row(ranking, traffic, cells, None, coverage(hot_cells(counts[ranking], cells), counts[traffic]))
        for traffic in ("live-mhot", "live-rlhot")
        for ranking in counts
        for cells in (round(CELLS * step / 20) for step in range(1, 21))
    ]
    lists = {name: hot_cells(array, 8692) for name, array in counts.items()}
    names = list(lists)
    overlaps = [
        {"a": a, "b": b, "hot_cells": 8692, "jaccard": jaccard(lists[a], lists[b]),
         "pearson": float(np.corrcoef(counts[a].ravel(), counts[b].ravel())[0, 1])}
        for index, a in enumerate(names)
        for b in names[index + 1 :]
    ]  # fmt: skip
    of = [f"routing-counts-{name}" for name in counts]
    return [
        _frame("coverage", "derived-budgets", shares, of, "lanelab.routing.coverage"),
        _frame("coverage", "derived-curve", curve, of, "lanelab.routing.coverage"),
        _frame("overlap", "derived", overlaps, of, "lanelab.routing.jaccard; ties at the edge go to the lower cell"),
        _frame("figure", "derived-histogram", _ranges(counts["hist-8prompt"]), of[:1], "sorted counts of each layer"),
    ]


def _array(value: dict[str, Any]) -> Counts:
    return np.array(list(counts_of(value).values()), dtype=np.int64)  # (layers, experts)


def _row(
    ranking: str, traffic: str, cells: int, gib: float | None, share: float, *, identity: bool = False
) -> dict[str, Any]:
    return {
        "ranking": ranking, "traffic": traffic, "phase": "both" if traffic == "hist-8prompt" else "decode",
        "held_out": None if identity else ranking != traffic, "hot_gib": gib, "hot_cells": cells, "cells": CELLS,
        "share": share, "identity": identity,
    }  # fmt: skip


def _ranges(counts: Counts) -> list[dict[str, Any]]:
    """Experts that carry half of a layer's picks, and experts never picked, over the layers the post speaks of."""
    down = -np.sort(-counts, axis=1)
    half = (np.cumsum(down, axis=1) < counts.sum(axis=1, keepdims=True) / 2).sum(axis=1) + 1
    never = (counts == 0).sum(axis=1)
    rows = []
    for name, values, first, last in (
        ("early_experts_50pct", half, 1, 22),
        ("late_experts_50pct", half, 30, 69),
        ("late_never", never, 30, 69),
    ):
        for part, pick in (("0", values[first - 1 : last].min()), ("1", values[first - 1 : last].max())):
            rows.append(
                {"collection": "derived", "name": name, "part": part, "value": float(pick), "unit": "experts",
                 "flag": "derived", "note": f"layers {first} to {last} of the counts"}
            )  # fmt: skip
    return rows


def _frame(kind: str, name: str, rows: list[dict[str, Any]], of: list[str], by: str) -> Receipt:
    return frame(
        kind, name, rows, path=None, origin="derived", commits=("6cd315c9", "57111f17", "afdb4121"),
        dated="2026-09-28", parameters={"from": of, "by": by}, note="computed from the named receipts",
    )  # fmt: skip
