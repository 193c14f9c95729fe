"""Long context: which hidden codes were found, and how fast the model still decodes behind that much text."""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures.parts import counted, log_ticks, look, short_count
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, origin_of, series_key, state_of


def rows(reader: Reader) -> Rows:
    """One row a prompt: size, depth, found or not, TTFT, decode speed; contended rows are marked."""
    found = reader.rows("needle")
    name = series_key(found)
    return [
        {
            "series": name(row), "task": row["task"], "prompt_tokens": row["prompt_tokens"] or row["size_tokens"],
            "depth": row["depth"], "passed": row["passed"], "ttft_s": row["ttft_s"], "decode_tok_s": row["decode_tok_s"],
            "n": 1, "state": state_of(row), "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in found
        if row["prompt_tokens"] or row["size_tokens"]
    ]  # fmt: skip


def draw(shown: Rows) -> Any:
    """Depth against size with found and lost told apart; below, decode speed by size."""
    series = grouped(shown, lambda row: row["series"])
    with style.drawing(2, 5.0, sharex=True, height_ratios=(3, 4)) as (made, (upper, lower)):
        needles = [row for row in shown if row["task"] == "needle" and row["depth"] is not None]
        for passed, marker, colour, label in (
            (True, "o", style.GREEN, "code found"), (False, "X", style.VERMILION, "code lost"),
        ):  # fmt: skip
            here = [row for row in needles if row["passed"] is passed]
            if here:
                upper.plot([row["prompt_tokens"] for row in here], [row["depth"] * 100 for row in here], marker=marker,
                           linestyle="none", color=colour, label=label, markersize=8)  # fmt: skip
        upper.set_title("Where the code stands in the prompt, % of its length")
        upper.set_ylim(-8, 108)
        upper.set_yticks([0, 50, 100])
        upper.invert_yaxis()
        for number, (label, group) in enumerate(series.items()):
            colour, marker, _ = look(number)
            for contended in (False, True):
                part = [row for row in group if (state_of_row(row) == "contended") is contended]
                points = [(row["prompt_tokens"], row["decode_tok_s"]) for row in decode_rows(part)]
                if points:
                    lower.plot(*zip(*points, strict=True), marker=marker, linestyle="none", color=colour, markersize=7,
                               markerfacecolor=style.PAPER if contended else colour,
                               label=f"decode, {label}" + (" (contended)" if contended else ""))  # fmt: skip
        lower.set_title("Decode speed behind the prompt, tok/s")
        top = max((row["decode_tok_s"] for row in decode_rows(shown)), default=1)
        lower.set_ylim(0, top * 1.15)
        upper.set_xscale("log")
        log_ticks(lower, sorted({row["prompt_tokens"] for row in shown}))
        lower.set_xlabel("prompt tokens (log scale)")
        from itertools import chain

        pairs = [axis.get_legend_handles_labels() for axis in (upper, lower)]
        handles, labels = (list(chain(*part)) for part in zip(*pairs, strict=True))
        if labels:
            made.legend(handles, labels, loc="outside lower left", ncols=2, columnspacing=1.2, handlelength=1.4)
        return made


def state_of_row(row: dict[str, Any]) -> str:
    """The row's state as `rows` kept it."""
    return str(row["state"])


def decode_rows(shown: Rows) -> Rows:
    """Rows whose decode speed means something: longer answers, or codes where there are none."""
    longer = [row for row in shown if row["task"] == "decode" and row["decode_tok_s"] is not None]
    return longer or [row for row in shown if row["decode_tok_s"] is not None]


def alt(shown: Rows) -> str:
    """The finding: codes found of codes hidden, the longest prompt, and decode at both ends."""
    clean = [row for row in shown if row["state"] != "contended"]
    needles = [row for row in clean if row["task"] == "needle" and row["passed"] is not None]
    good = sum(bool(row["passed"]) for row in needles)
    parts = []
    if needles:
        longest = max(row["prompt_tokens"] for row in needles)
        parts.append(
            f"{good} of {counted(len(needles), 'hidden code')} found, in prompts of up to {number_text(longest, 0)} tokens"
        )
    speeds = sorted(decode_rows(clean), key=lambda row: row["prompt_tokens"])
    if speeds:
        first, last = speeds[0], speeds[-1]
        parts.append(
            f"decode runs at {number_text(first['decode_tok_s'])} tok/s behind {short_count(first['prompt_tokens'])} tokens "
            f"and {number_text(last['decode_tok_s'])} behind {short_count(last['prompt_tokens'])}"
        )
    mixed = len(shown) - len(clean)
    if mixed:
        parts.append(f"{counted(mixed, 'contended row')} drawn hollow and not counted")
    return "; ".join(parts) + ". Each point is one request." if parts else "No clean row of long context yet."


figure(Figure("needles", rows, draw, alt, "Codes found in long prompts, and decode speed behind them", "needle"))  # fmt: skip
