"""Pieces that several figures draw: ranges, keys and ticks."""

from __future__ import annotations

import math
from typing import Any

from lanelab.publish import style
from lanelab.publish.quantity import number_text
from lanelab.publish.summary import Rows


def look(number: int) -> tuple[str, str, str]:
    """Colour, marker and line of a series: told apart without colour too."""
    lines = ("-", "--", "-.", ":")
    return (
        style.SERIES[number % len(style.SERIES)],
        style.MARKERS[number % len(style.MARKERS)],
        lines[(number // len(style.SERIES)) % len(lines)],
    )


def range_bars(axis: Any, rows: Rows, x: str, y: str, label: str, number: int, *, hollow: bool = False) -> None:
    """Medians joined by a line, each with a bar from its lowest to its highest repeat."""
    points = [(row[x], row[y], row[f"{y}_low"], row[f"{y}_high"]) for row in rows if row[y] is not None]
    if not points:
        return
    points.sort()
    colour, marker, line = look(number)
    below = [value - low for _, value, low, _ in points]
    above = [high - value for _, value, _, high in points]
    axis.errorbar(
        [point[0] for point in points], [point[1] for point in points], yerr=[below, above], label=label,
        color=colour, marker=marker, linestyle="none" if hollow else line, elinewidth=1.1,
        markerfacecolor=style.PAPER if hollow else colour,
    )  # fmt: skip


def key_below(figure: Any, axis: Any) -> None:
    """One key for all axes, under the figure, in at most two columns; none for a single series."""
    handles, labels = axis.get_legend_handles_labels()
    if len(labels) > 1:
        columns = 1 if max(map(len, labels)) > 26 else 2
        figure.legend(handles, labels, loc="outside lower left", ncols=columns, handlelength=2.2, columnspacing=1.2)


def log_ticks(axis: Any, values: list[float]) -> None:
    """Ticks at the values that were measured, left out where they would touch."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    if len(set(values)) == 1:
        axis.set_xlim(values[0] / 2, values[0] * 2)  # one point has no range of its own
    kept: list[float] = []
    span = math.log(values[-1] / values[0]) if len(values) > 1 and values[0] > 0 else 1.0
    for value in values:
        if not kept or math.log(value / kept[-1]) > 0.09 * span:
            kept.append(value)
    axis.xaxis.set_major_locator(FixedLocator(kept))
    axis.xaxis.set_major_formatter(FixedFormatter([short_count(value) for value in kept]))
    axis.xaxis.set_minor_locator(NullLocator())


def short_count(value: float) -> str:
    """`512`, `11.5K`, `1.05M`: counts on an axis."""
    for limit, letter in ((1e6, "M"), (1e3, "K")):
        if value >= limit:
            text = number_text(value / limit, 1 if value < 100 * limit else 0)
            return text.removesuffix(".0") + letter
    return number_text(value, 0)


def cycle(rows: Rows) -> bool:
    """Whether the rows hold more than one series."""
    return len({row["series"] for row in rows}) > 1


def from_zero(axis: Any, rows: Rows, field: str) -> None:
    """A vertical axis from zero with a little room above the highest range."""
    top = max((row[f"{field}_high"] or row[field] or 0 for row in rows), default=0)
    axis.set_ylim(0, top * 1.14 or 1)


def counted(number: int, noun: str) -> str:
    """`no request`, `1 stream`, `8 streams`."""
    return f"no {noun}" if number == 0 else f"{number_text(number)} {noun}" + ("" if number == 1 else "s")
