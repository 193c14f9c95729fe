"""What share of the router's picks a hot list of a given size serves, by the traffic it was ranked on.

A list judged on its own traffic is an oracle: it saw its own exam. The honest curve is the held-out
one. Whole layers (the stock placement) give exactly their share of the cells, an identity.
"""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures.parts import look
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, origin_of

CURVE_POINTS = 8  # fewer points than this are a table, not a curve


def rows(reader: Reader) -> Rows:
    """One row a point of a curve: share of the cells that are hot, share of the picks that they serve."""
    found = [row for row in reader.rows("coverage") if row["hot_cells"] and row["cells"] and not row["identity"]]
    curves = grouped(found, lambda row: (row["receipt"], row["ranking"], row["traffic"], row["phase"]))
    return [
        {
            "ranking": row["ranking"], "traffic": row["traffic"], "phase": row["phase"],
            "held_out": row["ranking"] != row["traffic"] if row["held_out"] is None else row["held_out"],
            "hot_cells": row["hot_cells"], "cells": row["cells"], "hot_pct": 100 * row["hot_cells"] / row["cells"],
            "share_pct": 100 * row["share"], "n": 1, "state": "", "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for curve in curves.values() if len(curve) >= CURVE_POINTS
        for row in sorted(curve, key=lambda row: row["hot_cells"])
    ]  # fmt: skip


def draw(shown: Rows) -> Any:
    """One panel a traffic: a line for each ranking, and the diagonal of whole layers."""
    traffics = grouped(shown, lambda row: row["traffic"])
    rankings = sorted({row["ranking"] for row in shown})
    with style.drawing(len(traffics), 0.7 + 2.5 * len(traffics), sharex=True) as (made, axes):
        for axis, (traffic, group) in zip(axes, traffics.items(), strict=True):
            for ranking, curve in grouped(group, lambda row: row["ranking"]).items():
                colour, marker, _ = look(rankings.index(ranking))
                held_out = curve[0]["held_out"]
                axis.plot([row["hot_pct"] for row in curve], [row["share_pct"] for row in curve], color=colour,
                          marker=marker, markersize=4.5, linestyle="--" if held_out else "-",
                          label=f"ranked on {ranking}" + ("" if held_out else ": itself"))  # fmt: skip
            axis.plot(
                [0, 100], [0, 100], color=style.MUTED, linewidth=1, linestyle=":", label="whole layers (identity)"
            )
            axis.set_title(f"Traffic {traffic}: picks served, %")
            axis.set_ylim(0, 104)
            axis.set_xlim(0, 101)
            axis.legend(loc="lower right", fontsize=9.5, handlelength=2.4)
        axes[-1].set_xlabel("cells that are hot, %")
        return made


def alt(shown: Rows) -> str:
    """The finding: what a foreign ranking loses against the traffic's own, where it loses most."""
    worst: tuple[float, dict[str, Any], dict[str, Any]] | None = None
    for group in grouped(shown, lambda row: (row["traffic"], row["hot_cells"])).values():
        own = next((row for row in group if not row["held_out"]), None)
        for row in group:
            if own and row["held_out"] and (worst is None or own["share_pct"] - row["share_pct"] > worst[0]):
                worst = (own["share_pct"] - row["share_pct"], own, row)
    if worst is None:
        return "Share of router picks that hot lists serve, by their size."
    loss, own, foreign = worst
    return (
        f"A list ranked on other traffic loses up to {number_text(loss, 0)} points: with {number_text(own['hot_pct'], 0)} % of "
        f"the cells hot, {foreign['ranking']} serves {number_text(foreign['share_pct'], 0)} % of the picks of "
        f"{own['traffic']}, its own ranking {number_text(own['share_pct'], 0)} %; whole layers serve exactly their share."
    )


figure(Figure("coverage", rows, draw, alt, "Share of router picks served by a hot list, by its size", "coverage"))  # fmt: skip
