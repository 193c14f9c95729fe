"""What silently broke it: norms of a candidate and of a trusted one, along one forward pass."""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, origin_of

_TOLERANCE = 0.05  # relative difference of norms that counts as a divergence


def rows(reader: Reader) -> Rows:
    """One row a point and candidate, in the order of the forward pass.

    Where the reference's norm is not known, the norm of another candidate at the same point, whose cosine with
    the reference is one, stands in as `trusted_norm`.
    """
    found = sorted(reader.rows("parity"), key=lambda row: (row["ordinal"], row["candidate"]))
    trusted = {row["ordinal"]: row["norm"] for row in found if row["cosine"] is not None and row["cosine"] >= 0.999}
    return [
        {
            "point": row["point"], "layer": row["layer"], "candidate": row["candidate"], "norm": row["norm"],
            "trusted_norm": row["norm_reference"] if row["norm_reference"] is not None else trusted.get(row["ordinal"]),
            "cosine": row["cosine"], "n": 1, "state": "", "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in found
    ]  # fmt: skip


def draw(shown: Rows) -> Any:
    """Pairs of bars: what the norm should be and what it is; a norm of zero is written out, cosines too."""
    points = list(grouped([row for row in shown if not _right(row)], lambda row: row["point"]).values())
    with style.drawing(1, 1.2 + 0.72 * len(points)) as (made, (axis,)):
        for place, group in enumerate(reversed(points)):
            row = group[0]
            for offset, value, colour, hatch, label in (
                (0.19, row["trusted_norm"], style.GREY, "///", "as it should be"),
                (-0.19, row["norm"], style.VERMILION, "", f"with {row['candidate']}"),
            ):
                if value is not None:
                    axis.barh(place + offset, max(value, 0), height=0.34, color=colour, hatch=hatch,
                              edgecolor=style.PAPER, linewidth=0, label=label if place == len(points) - 1 else None)  # fmt: skip
                    axis.annotate(number_text(value, 0 if value >= 100 else 1), (max(value, 0), place + offset), xytext=(4, 0),
                                  textcoords="offset points", va="center", fontsize=10)  # fmt: skip
            if row["norm"] is None and row["cosine"] is not None:
                axis.annotate(f"cosine {number_text(row['cosine'], 2)} (1 would be right)", (0, place), xytext=(4, 0),
                              textcoords="offset points", va="center", fontsize=10)  # fmt: skip
        axis.set_yticks(range(len(points)), [_label(group[0]) for group in reversed(points)])
        axis.set_xscale("symlog", linthresh=1)
        axis.set_xlim(0, 2e4)
        axis.set_xticks([0, 1, 10, 100, 1000, 10000], ["0", "1", "10", "100", "1K", "10K"])
        axis.set_ylim(-0.55, len(points) - 0.45)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("norm (log scale from 1)")
        made.legend(*axis.get_legend_handles_labels(), loc="outside lower left", ncols=2, handlelength=1.6)
        return made


def _right(row: dict[str, Any]) -> bool:
    return row["cosine"] is not None and row["cosine"] >= 0.999


def _label(row: dict[str, Any]) -> str:
    return row["point"] if row["layer"] is None else f"{row['point']}, layer {row['layer']}"


def alt(shown: Rows) -> str:
    """The finding: the first point whose norm is not what it should be, and the end of the pass."""
    first = next(
        (
            row for row in shown
            if row["norm"] is not None and row["trusted_norm"]
            and abs(row["norm"] - row["trusted_norm"]) > _TOLERANCE * row["trusted_norm"]
        ),
        None,
    )  # fmt: skip
    last = next((row for row in reversed(shown) if row["cosine"] is not None and not _right(row)), None)
    if first is None:
        return "No point of the forward pass differs from the reference."
    end = f"; at the {last['point']} the cosine with the reference is {number_text(last['cosine'], 2)}" if last else ""
    return (
        f"With {first['candidate']} the {_label(first)} has a norm of {number_text(first['norm'], 1)} where "
        f"{number_text(first['trusted_norm'], 1)} is right: the first point that differs{end}."
    )


figure(Figure("parity", rows, draw, alt, "Where a candidate leaves the reference along one forward pass", "parity"))
