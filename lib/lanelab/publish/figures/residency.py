"""The trick that made it fast: which share of the router's picks finds its expert in HBM, by placement."""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, origin_of


def rows(reader: Reader) -> Rows:
    """Whole layers against hot lists of the same size on the same decode traffic; one row a placement.

    The receipt that holds most lists beside its whole layers is shown, a published one before a derived one.
    """
    found = [row for row in reader.rows("coverage") if row["phase"] == "decode" and row["hot_cells"]]
    stock = [row for row in found if row["identity"]]
    if not stock:
        return []
    base = max(stock, key=lambda row: (len(_lists(found, row)), row["origin"] != "derived"))
    lists = _lists(found, base)
    return [
        {
            "placement": _name(row), "hot_cells": row["hot_cells"], "cells": row["cells"], "hot_share_pct": 100 * row["share"],
            "cold_share_pct": 100 * (1 - row["share"]), "traffic": row["traffic"], "n": 1, "state": "",
            "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in [base, *sorted(lists, key=lambda row: row["share"])]
    ]  # fmt: skip


def _lists(found: Rows, base: dict[str, Any]) -> Rows:
    """Hot lists of the base's size, judged on its traffic in the same receipt."""
    same = ("traffic", "hot_cells", "receipt")
    return [row for row in found if not row["identity"] and all(row[name] == base[name] for name in same)]


def _name(row: dict[str, Any]) -> str:
    if row["identity"]:
        return "whole layers"
    if row["held_out"] is False:
        return "best list, knows the exam"
    _, mixed_in, _ = row["ranking"].partition(" mixed in at ")
    if mixed_in:
        return f"hot list, {row['ranking'].partition(' mixed in at ')[0].split()[-1]} mixed in"
    return "hot list"


def draw(shown: Rows) -> Any:
    """One bar a placement: left what HBM serves, right what crosses the link."""
    with style.drawing(1, 1.35 + 0.5 * len(shown)) as (made, (axis,)):
        for place, row in enumerate(reversed(shown)):
            first = place == len(shown) - 1
            axis.barh(
                place, row["hot_share_pct"], color=style.BLUE, height=0.6, label="served from HBM" if first else None
            )
            axis.barh(place, row["cold_share_pct"], left=row["hot_share_pct"], color=style.ORANGE, hatch="///", height=0.6,
                      edgecolor=style.PAPER, linewidth=0, label="read over the link" if first else None)  # fmt: skip
            axis.annotate(f"{number_text(row['hot_share_pct'], 1)} %", (row["hot_share_pct"], place), xytext=(-5, 0), ha="right",
                          textcoords="offset points", va="center", fontsize=10, color=style.PAPER, fontweight="bold")  # fmt: skip
        axis.set_yticks(range(len(shown)), [row["placement"] for row in reversed(shown)])
        axis.set_xlim(0, 100)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("router picks, %")
        made.legend(*axis.get_legend_handles_labels(), loc="outside lower left", ncols=2, handlelength=1.6)
        return made


def alt(shown: Rows) -> str:
    """The finding: whole layers against the best held-out list of the same size."""
    base = shown[0]
    lists = [row for row in shown[1:] if "exam" not in row["placement"]]
    if not lists:
        return f"Whole layers serve {number_text(base['hot_share_pct'], 1)} % of the picks from HBM."
    best = max(lists, key=lambda row: row["hot_share_pct"])
    return (
        f"With {number_text(base['hot_cells'], 0)} of {number_text(base['cells'], 0)} cells in HBM, whole layers serve "
        f"{number_text(base['hot_share_pct'], 1)} % of the picks and the hot list {number_text(best['hot_share_pct'], 1)} %, "
        f"judged on {base['traffic']}."
    )


figure(Figure("residency", rows, draw, alt, "Share of the router's picks that HBM serves, by placement", "coverage"))
