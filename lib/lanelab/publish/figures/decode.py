"""Time to first token and decode speed by prompt size, with every repeat's range."""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures.parts import cycle, from_zero, key_below, log_ticks, range_bars
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, one, origin_of, receipts_of, series_key, state_of, summary


def rows(reader: Reader) -> Rows:
    """One row a series, prompt size and state: n, median, range of TTFT and decode speed."""
    found = [row for row in reader.rows("decode")]
    name = series_key(found)
    many = len({row["streams"] for row in found}) > 1
    result: Rows = []
    for (series, size, streams, state), group in grouped(
        found, lambda row: (name(row), row["size"], row["streams"], state_of(row) == "contended")
    ).items():
        good = [row for row in group if row["status"] == "ok"]
        ttft, speed = summary(row["ttft_s"] for row in good), summary(row["decode_tok_s"] for row in good)
        prefill = summary(row["prefill_tok_s"] for row in good)
        result.append({
            "series": f"{series}, C{streams}" if many else series, "size": size, "streams": streams,
            "prompt_tokens": summary(row["prompt_tokens"] for row in good).median,
            "state": "contended" if state else one(group, state_of), "n": len(good), "failed": len(group) - len(good),
            "ttft_s": ttft.median, "ttft_s_low": ttft.low, "ttft_s_high": ttft.high,
            "decode_tok_s": speed.median, "decode_tok_s_low": speed.low, "decode_tok_s_high": speed.high,
            "prefill_tok_s": prefill.median, "origin": one(group, origin_of), "receipts": receipts_of(group),
            "others_busy_cores": reader.others_busy_cores(receipts_of(group), "decode"),
        })  # fmt: skip
    return sorted(result, key=lambda row: (row["series"], row["prompt_tokens"] or 0, row["state"]))


def draw(shown: Rows) -> Any:
    """TTFT above, decode speed below, on one axis of prompt tokens."""
    series = grouped([row for row in shown if row["prompt_tokens"]], lambda row: row["series"])
    with style.drawing(2, 4.5 + 0.22 * ((len(series) + 1) // 2), sharex=True) as (made, axes):
        for axis, field, title in zip(
            axes, ("ttft_s", "decode_tok_s"), ("Time to first token, s", "Decode speed, tok/s"), strict=True
        ):
            for number, (label, group) in enumerate(series.items()):
                clean = [row for row in group if row["state"] != "contended"]
                range_bars(axis, clean, "prompt_tokens", field, label, number)
                mixed = [row for row in group if row["state"] == "contended"]
                range_bars(axis, mixed, "prompt_tokens", field, f"{label} (contended)", number, hollow=True)
            axis.set_title(title)
            axis.set_xscale("log")
            from_zero(axis, shown, field)
        log_ticks(axes[1], sorted({row["prompt_tokens"] for row in shown if row["prompt_tokens"]}))
        axes[1].set_xlabel("prompt tokens (log scale)")
        key_below(made, axes[1])
        return made


def alt(shown: Rows) -> str:
    """The finding: how both change from the shortest to the longest prompt, of the fastest series."""
    clean = [row for row in shown if row["state"] != "contended" and row["decode_tok_s"] and row["prompt_tokens"]]
    if not clean:
        return "No clean row of decode speed yet."
    best = max(clean, key=lambda row: row["decode_tok_s"])["series"]
    line = [row for row in clean if row["series"] == best]
    first, last = line[0], line[-1]
    n = sorted({row["n"] for row in line})
    times = f"n = {n[0]}" if len(n) == 1 else f"n = {n[0]} to {n[-1]}"
    head = f"{best}, the fastest of {len({row['series'] for row in clean})}: " if cycle(clean) else ""
    if first is last:
        return (
            f"{head}at {number_text(first['prompt_tokens'], 0)} prompt tokens decode runs at "
            f"{number_text(first['decode_tok_s'])} tok/s and the first token takes {number_text(first['ttft_s'])} s ({times})."
        )
    return (
        f"{head}decode goes from {number_text(first['decode_tok_s'])} to {number_text(last['decode_tok_s'])} tok/s as the "
        f"prompt grows from {number_text(first['prompt_tokens'], 0)} to {number_text(last['prompt_tokens'], 0)} tokens, "
        f"while the time to first token goes from {number_text(first['ttft_s'])} to {number_text(last['ttft_s'])} s "
        f"({times} a size; bars show the range)."
    )


figure(Figure("decode", rows, draw, alt, "Time to first token and decode speed by prompt size", "decode", "lanelab measure decode --lane {lane}"))  # fmt: skip
