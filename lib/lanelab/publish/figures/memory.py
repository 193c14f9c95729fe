"""What stands where: the parts of HBM and of host memory under the latest plan.

Both bars are drawn on one scale in GiB; where one memory is so much smaller that it would vanish (an
emulated tier), each is drawn as shares of itself, and the axis says so.
"""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, origin_of

_NAMES = {"hbm": "HBM", "host": "host memory"}
_COLOURS = {
    "experts, hot": style.VERMILION, "experts": style.VERMILION, "experts, cold": style.BLUE, "expert scales": style.ORANGE,
    "non-expert weights": style.GREEN, "KV cache": style.PURPLE, "reserve": style.SKY,
    "system, engine and loader": style.SKY, "left to others": style.GREY, "free": style.GREY,
}  # fmt: skip
_VANISHES = 12  # times larger than the other
_EMPTY = {"left to others", "free"}  # drawn hollow: nothing of the model is there


def latest(reader: Reader, group: str) -> Rows:
    """Rows of one group of the latest plan."""
    found = reader.rows("plan")
    last = found[-1]["receipt"] if found else None
    return [row for row in found if row["receipt"] == last and row["group"] == group]


def rows(reader: Reader) -> Rows:
    """One row a part, in the order in which the parts are stacked."""
    return [
        {
            "memory": row["of"], "part": row["name"], "gib": row["value"], "model": row["model"], "machine": row["machine"],
            "n": 1, "state": "", "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in latest(reader, "memory")
    ]  # fmt: skip


def draw(shown: Rows) -> Any:
    """One stacked bar a memory, all on one scale; the key gives each part's GiB."""
    memories = [name for name in ("host", "hbm") if any(row["memory"] == name for row in shown)]
    sizes = {name: sum(row["gib"] for row in shown if row["memory"] == name) for name in memories}
    shares = max(sizes.values()) > _VANISHES * min(sizes.values())
    with style.drawing(1, 1.3 + 0.55 * len(memories) + 0.2 * len(shown)) as (made, (axis,)):
        for place, memory in enumerate(memories):
            start = 0.0
            for number, row in enumerate(row for row in shown if row["memory"] == memory):
                hollow = row["part"] in _EMPTY
                width = 100 * row["gib"] / sizes[memory] if shares else row["gib"]
                axis.barh(
                    place, width, left=start, height=0.56, color=style.PAPER if hollow else _COLOURS[row["part"]],
                    edgecolor=style.GREY if hollow else style.PAPER, linewidth=0.8 if hollow else 0.3,
                    hatch="" if hollow else style.HATCHES[number % len(style.HATCHES)],
                    label=f"{_NAMES[memory]}: {row['part']}, {_gib(row['gib'])}",
                )  # fmt: skip
                start += width
        axis.set_yticks(range(len(memories)), [_NAMES[memory] for memory in memories])
        axis.set_ylim(-0.45, len(memories) - 0.45)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("% of each memory" if shares else "GiB")
        handles, labels = axis.get_legend_handles_labels()
        made.legend(handles, labels, loc="outside lower left", ncols=1, handlelength=1.6)
        return made


def _gib(value: float) -> str:
    return f"{number_text(value, 1)} GiB" if value >= 1 else f"{number_text(value * 1024, 1)} MiB"


def alt(shown: Rows) -> str:
    """The finding: where the experts are, and what is left for the KV cache."""
    sizes = {(row["memory"], row["part"]): row["gib"] for row in shown}
    hot = sizes.get(("hbm", "experts, hot"), 0) + sizes.get(("hbm", "experts"), 0) + sizes.get(("host", "experts"), 0)
    cold = sizes.get(("host", "experts, cold"), 0)
    cache = sizes.get(("hbm", "KV cache"), 0) + sizes.get(("host", "KV cache"), 0)
    local = "HBM" if any(row["memory"] == "hbm" for row in shown) else "host memory"
    where = f"{_gib(hot)} of expert weights stand in {local}"
    if cold:
        where += f" and {_gib(cold)} in host memory"
    emulated = ", emulated" if any("emulated" in row["origin"] for row in shown) else ""
    return f"{where}; {_gib(cache)} are left for the KV cache (predicted{emulated})."


figure(Figure(
    "memory", rows, draw, alt, "What stands where under the plan", "plan", "lanelab run 01-memory-arithmetic",
))  # fmt: skip
