"""The ladder: every boot or placement at one prompt size, as a share of one baseline.

The baseline is the control if one is named so (`ctrl`, `control` or `baseline` in a boot's change
or in its name), else the first in time; the figure and its table always name it.
"""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures import decode
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped

_CONTROL = ("ctrl", "control", "baseline")


def rows(reader: Reader) -> Rows:
    """One row a series at the prompt size that most of them share, slowest first; none for a single series."""
    found = [row for row in decode.rows(reader) if row["state"] != "contended" and row["decode_tok_s"]]
    if not found:
        return []
    few = min(row["streams"] for row in found)
    sizes = grouped([row for row in found if row["streams"] == few], lambda row: row["size"])
    most = max(len(group) for group in sizes.values())
    shared = [size for size, group in sizes.items() if len(group) == most]
    size = shared[len(shared) // 2]
    steps = sorted(sizes[size], key=lambda row: row["decode_tok_s"])
    if len(steps) < 2:
        return []
    changes = {str(row["version"]): str(row["change"] or "") for row in reader.rows("boot")}
    base = next((row for row in steps if _is_control(row["series"], changes)), steps[0])
    return [
        {
            "series": row["series"], "change": changes.get(row["series"], ""), "size": size,
            "prompt_tokens": row["prompt_tokens"], "n": row["n"], "decode_tok_s": row["decode_tok_s"],
            "decode_tok_s_low": row["decode_tok_s_low"], "decode_tok_s_high": row["decode_tok_s_high"],
            "of_baseline_pct": 100 * row["decode_tok_s"] / base["decode_tok_s"], "baseline": base["series"],
            "state": row["state"], "origin": row["origin"],
            "receipts": sorted({*row["receipts"], *base["receipts"]}),
        }
        for row in steps
    ]  # fmt: skip


def _is_control(series: str, changes: dict[str, str]) -> bool:
    text = f"{series} {changes.get(series, '')}".lower()
    return any(text.startswith(word) or f" {word}" in text or text.endswith(word) for word in _CONTROL)


def draw(shown: Rows) -> Any:
    """Bars, the fastest on top, each with its speed and its share of the baseline."""
    with style.drawing(1, 0.9 + 0.42 * len(shown)) as (made, (axis,)):
        for place, row in enumerate(shown):
            base = row["series"] == row["baseline"]
            axis.barh(place, row["decode_tok_s"], color=style.GREY if base else style.BLUE, height=0.62,
                      hatch="///" if base else "", edgecolor=style.PAPER, linewidth=0)  # fmt: skip
            low, high = row["decode_tok_s_low"], row["decode_tok_s_high"]
            axis.plot([low, high], [place, place], color=style.INK, linewidth=1.4)
            axis.annotate(
                f"{number_text(row['decode_tok_s'])} · " + ("baseline" if base else f"{number_text(row['of_baseline_pct'], 0)} %"),
                (max(high, row["decode_tok_s"]), place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=10,
            )  # fmt: skip
        axis.set_yticks(range(len(shown)), [row["series"] for row in shown])
        axis.set_xlim(0, max(row["decode_tok_s"] for row in shown) * 1.36)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(f"decode, tok/s, at prompt size {shown[0]['size']}; % of {shown[0]['baseline']}")
        return made


def alt(shown: Rows) -> str:
    """The finding: the fastest step against the baseline."""
    best, base = shown[-1], next(row for row in shown if row["series"] == row["baseline"])
    n = sorted({row["n"] for row in shown})
    return (
        f"{best['series']} decodes at {number_text(best['decode_tok_s'])} tok/s, {number_text(best['of_baseline_pct'], 0)} % of "
        f"the baseline {base['series']} ({number_text(base['decode_tok_s'])} tok/s), at "
        f"{number_text(best['prompt_tokens'], 0)} prompt tokens, one stream; {len(shown)} steps, "
        f"n = {n[0] if len(n) == 1 else f'{n[0]} to {n[-1]}'} each."
    )


figure(Figure("ladder", rows, draw, alt, "Decode speed of every boot as a share of the baseline", "decode", "lanelab measure decode --lane {lane}"))  # fmt: skip
