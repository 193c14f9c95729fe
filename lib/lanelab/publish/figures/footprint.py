"""Why it does not fit: what the checkpoint holds beside what the machine has."""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, origin_of

_COLOURS = {"needs": (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE), "has": (style.VERMILION, style.GREY)}
_NAMES = {"needs": "the checkpoint", "has": "the machine"}


def rows(reader: Reader) -> Rows:
    """One row a part, largest first on each side."""
    found = [
        {"side": row["side"], "part": row["part"], "gib": row["gib"], "n": 1, "state": "", "origin": origin_of(row),
         "receipts": [row["receipt"]]}
        for row in reader.rows("footprint")
    ]  # fmt: skip
    return sorted(found, key=lambda row: (row["side"] == "has", row["part"] == "host memory", -row["gib"]))


def draw(shown: Rows) -> Any:
    """Two stacked bars of the same scale; the line is where HBM ends."""
    with style.drawing(1, 3.5) as (made, (axis,)):
        for place, side in enumerate(("has", "needs")):
            start = 0.0
            for number, row in enumerate(row for row in shown if row["side"] == side):
                colour = _COLOURS[side][number % len(_COLOURS[side])]
                axis.barh(place, row["gib"], left=start, height=0.56, color=colour, edgecolor=style.PAPER,
                          linewidth=0.3, hatch=style.HATCHES[number], label=f"{row['part']}, {number_text(row['gib'], 1)} GiB")  # fmt: skip
                start += row["gib"]
        hbm = next((row["gib"] for row in shown if row["part"] == "HBM"), None)
        if hbm is not None:
            axis.axvline(hbm, color=style.INK, linewidth=1.2, linestyle="--")
            axis.annotate(
                "HBM ends here", (hbm, 1.42), xytext=(5, 0), textcoords="offset points", fontsize=10, va="center"
            )
        axis.set_yticks([0, 1], [_NAMES["has"], _NAMES["needs"]])
        axis.set_ylim(-0.45, 1.62)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("GiB")
        handles, labels = axis.get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower left", ncols=1, handlelength=1.6)
        return made


def alt(shown: Rows) -> str:
    """The finding: what is needed against HBM, and against HBM and host together."""
    needs = sum(row["gib"] for row in shown if row["side"] == "needs")
    has = {row["part"]: row["gib"] for row in shown if row["side"] == "has"}
    whole = sum(has.values())
    hbm = has.get("HBM")
    if not needs or hbm is None:
        return "What the checkpoint holds, and what the machine has, in GiB."
    return (
        f"The checkpoint's parts add up to {number_text(needs, 1)} GiB; HBM holds {number_text(hbm, 1)} GiB, "
        f"{number_text(100 * hbm / needs, 0)} % of it; HBM and host memory together hold {number_text(whole, 1)} GiB."
    )


figure(Figure("footprint", rows, draw, alt, "What the checkpoint holds beside what the machine has", "footprint"))
