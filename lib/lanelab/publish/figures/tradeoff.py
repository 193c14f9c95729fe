"""The trade of hot memory: each GiB of hot experts makes decoding faster and the KV cache smaller.

The line takes routing as uniform; the point is the plan itself, which may know a measured coverage.
"""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures.memory import latest
from lanelab.publish.figures.parts import short_count
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, origin_of

_FIELDS = ("hot_cells", "kv_tokens", "context_max", "ceiling_tok_s")


def rows(reader: Reader) -> Rows:
    """One row a hot budget, smallest first; `planned_hot_gib` is where the plan stands."""
    planned = {row["name"]: row["value"] for row in latest(reader, "plan")}
    points = grouped(latest(reader, "sweep"), lambda row: row["at"])
    return [
        {
            "hot_gib": at, **{row["name"]: row["value"] for row in group if row["name"] in _FIELDS},
            "planned_hot_gib": planned.get("hot_gib"),
            **{f"planned_{field}": planned.get(field) for field in ("kv_tokens", "ceiling_tok_s", "coverage", "hot_cells", "cells")},
            "n": 1, "state": "", "origin": origin_of(group[0]),
            "receipts": [group[0]["receipt"]],
        }
        for at, group in sorted(points.items())
    ]  # fmt: skip


def draw(shown: Rows) -> Any:
    """KV tokens above, the decode ceiling below, on one axis of hot GiB; the dashed line is the plan."""
    from matplotlib.ticker import FuncFormatter

    panels = (
        ("kv_tokens", "KV cache, tokens", style.PURPLE),
        ("ceiling_tok_s", "Decode ceiling, tok/s", style.VERMILION),
    )
    with style.drawing(2, 4.4, sharex=True) as (made, axes):
        for axis, (field, title, colour) in zip(axes, panels, strict=True):
            points = [(row["hot_gib"], row[field]) for row in shown if row.get(field) is not None]
            axis.plot([x for x, _ in points], [y for _, y in points], color=colour)
            axis.set_title(title)
            own = shown[0][f"planned_{field}"]
            axis.set_ylim(0, max([y for _, y in points] + [own or 0]) * 1.12 or 1)
            if own is not None and shown[0]["planned_hot_gib"] is not None:
                axis.plot([shown[0]["planned_hot_gib"]], [own], color=colour, marker="D", linestyle="none")
            if (planned := shown[0]["planned_hot_gib"]) is not None:
                axis.axvline(planned, color=style.INK, linewidth=1.2, linestyle="--")
                left = planned > max(row["hot_gib"] for row in shown) / 2
                axis.annotate(
                    "the plan", (planned, 0), xytext=(-5 if left else 5, 6), textcoords="offset points", fontsize=10,
                    ha="right" if left else "left",
                )  # fmt: skip
        if known_coverage(shown[0]):
            first = next(row for row in shown if row.get("ceiling_tok_s") is not None)
            axes[1].annotate(
                "routing taken as uniform", (first["hot_gib"], first["ceiling_tok_s"]), xytext=(2, -14),
                textcoords="offset points", fontsize=10, va="top",
            )  # fmt: skip
            axes[1].annotate(
                "with the plan's coverage", (shown[0]["planned_hot_gib"], shown[0]["planned_ceiling_tok_s"]),
                xytext=(-8, 0), textcoords="offset points", fontsize=10, ha="right", va="center",
            )  # fmt: skip
        axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(float(value))))
        axes[1].set_xlabel("hot experts, GiB of weights in HBM")
        return made


def known_coverage(row: dict[str, Any]) -> bool:
    """Whether the plan's coverage is another than uniform routing would give, so that it leaves the line."""
    if None in (row["planned_ceiling_tok_s"], row["planned_coverage"]) or not row["planned_cells"]:
        return False
    uniform = (row["planned_hot_cells"] or 0) / row["planned_cells"]
    return bool(abs(row["planned_coverage"] - uniform) > 1e-6)


def alt(shown: Rows) -> str:
    """The finding: both ends of the trade."""
    first, last = shown[0], shown[-1]
    emulated = ", emulated" if any("emulated" in row["origin"] for row in shown) else ""
    text = (
        f"From {number_text(first['hot_gib'])} to {number_text(last['hot_gib'])} GiB of hot experts the KV cache shrinks from "
        f"{short_count(first['kv_tokens'])} to {short_count(last['kv_tokens'])} tokens"
    )
    if first.get("ceiling_tok_s") is not None and last.get("ceiling_tok_s") is not None:
        text += (
            f" while the decode ceiling rises from {number_text(first['ceiling_tok_s'], 1)} to "
            f"{number_text(last['ceiling_tok_s'], 1)} tok/s"
        )
    if known_coverage(first):
        text += (
            f" under uniform routing; at the plan's coverage of {number_text(first['planned_coverage'], 3)} it is "
            f"{number_text(first['planned_ceiling_tok_s'], 1)} tok/s"
        )
    return f"{text} (predicted{emulated})."


figure(Figure(
    "tradeoff", rows, draw, alt, "Hot experts against KV cache and decode ceiling", "plan",
    "lanelab run 01-memory-arithmetic",
))  # fmt: skip
