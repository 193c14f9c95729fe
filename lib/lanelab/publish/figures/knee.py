"""The concurrency knee: what all streams get together, and what each of them gets.

The knee is marked by the rule that the workload itself uses; levels that failed or were contended
are drawn hollow and never enter a median.
"""

from __future__ import annotations

from typing import Any

from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures.parts import key_below, log_ticks, look, range_bars
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, one, origin_of, receipts_of, series_key, state_of, summary

KNEE_SHARE = 0.9


def knee_of(levels: list[tuple[int, float]]) -> int | None:
    """The fewest streams whose aggregate reaches 90 % of the best level's. Levels: (streams, aggregate tok/s)."""
    best = max((speed for _, speed in levels), default=0.0)
    reached = [streams for streams, speed in levels if best > 0 and speed >= KNEE_SHARE * best]
    return min(reached, default=None)


def rows(reader: Reader) -> Rows:
    """One row a series, level and state: n, median and range of both speeds, failures, whether it is the knee."""
    found = reader.rows("knee")
    name = series_key(found)
    result: Rows = []
    for (series, streams, contended), group in grouped(
        found, lambda row: (name(row), row["streams"], state_of(row) == "contended")
    ).items():
        whole, each = (summary(row[field] for row in group) for field in ("aggregate_tok_s", "per_stream_tok_s"))
        result.append({
            "series": series, "streams": streams, "state": "contended" if contended else one(group, state_of),
            "n": whole.n, "failed": sum(row["failed"] or 0 for row in group),
            "aggregate_tok_s": whole.median, "aggregate_tok_s_low": whole.low, "aggregate_tok_s_high": whole.high,
            "per_stream_tok_s": each.median, "per_stream_tok_s_low": each.low, "per_stream_tok_s_high": each.high,
            "ttft_p50_s": summary(row["ttft_p50_s"] for row in group).median,
            "knee": False, "origin": one(group, origin_of), "receipts": receipts_of(group),
        })  # fmt: skip
    for line in grouped(result, lambda row: row["series"]).values():
        clean = [row for row in line if row["state"] != "contended" and row["aggregate_tok_s"] and not row["failed"]]
        at = knee_of([(row["streams"], row["aggregate_tok_s"]) for row in clean])
        for row in clean:
            row["knee"] = row["streams"] == at
    return sorted(result, key=lambda row: (row["series"], row["streams"], row["state"]))


def draw(shown: Rows) -> Any:
    """Aggregate above, per stream below."""
    series = grouped(shown, lambda row: row["series"])
    with style.drawing(2, 4.5 + 0.22 * ((len(series) + 1) // 2), sharex=True) as (made, axes):
        for axis, field, title in zip(
            axes,
            ("aggregate_tok_s", "per_stream_tok_s"),
            ("All streams together, tok/s", "Each stream, tok/s"),
            strict=True,
        ):
            for number, (label, group) in enumerate(series.items()):
                clean = [row for row in group if row["state"] != "contended"]
                range_bars(axis, clean, "streams", field, label, number)
                mixed = [row for row in group if row["state"] == "contended"]
                range_bars(axis, mixed, "streams", field, f"{label} (contended)", number, hollow=True)
                _marks(axis, clean, field, number, alone=len(series) == 1)
            axis.set_title(title)
            axis.margins(y=0.16)
            axis.set_ylim(bottom=0)
            axis.set_xscale("log")
        log_ticks(axes[1], sorted({row["streams"] for row in shown}))
        axes[1].set_xlabel("streams at once (log scale); ring: the knee; ×: requests failed")
        key_below(made, axes[0])
        return made


def _marks(axis: Any, clean: Rows, field: str, number: int, *, alone: bool) -> None:
    for row in clean:
        if row[field] is None:
            continue
        if row["knee"] and field == "aggregate_tok_s":
            axis.plot(row["streams"], row[field], marker="o", markersize=14, markerfacecolor="none",
                      markeredgecolor=look(number)[0], markeredgewidth=1.6, linestyle="none")  # fmt: skip
            if alone:
                axis.annotate(f"knee: {row['streams']} streams, {number_text(row[field])} tok/s",
                              (row["streams"], row[field]), xytext=(0, -20), textcoords="offset points", ha="center",
                              fontsize=10)  # fmt: skip
        if row["failed"]:
            axis.plot(row["streams"], row[field], marker="x", markersize=12, color=style.VERMILION,
                      markeredgewidth=2, linestyle="none")  # fmt: skip


def alt(shown: Rows) -> str:
    """The finding: where the knee stands and what one more stream costs, of the fastest series."""
    clean = [row for row in shown if row["state"] != "contended" and row["aggregate_tok_s"]]
    if not clean:
        return "No clean row of the knee yet."
    best = max(clean, key=lambda row: row["aggregate_tok_s"])
    line = [row for row in clean if row["series"] == best["series"]]
    knee = next((row for row in line if row["knee"]), best)
    count = len({row["series"] for row in clean})
    head = f"{best['series']}, the highest of {count}: " if count > 1 else ""
    failed = sum(row["failed"] for row in line)
    n = sorted({row["n"] for row in line})
    return (
        f"{head}the knee stands at {knee['streams']} streams with {number_text(knee['aggregate_tok_s'])} tok/s together and "
        f"{number_text(knee['per_stream_tok_s'])} each; one stream alone gets "
        f"{number_text(next((row['per_stream_tok_s'] for row in line if row['streams'] == 1), None))} tok/s; the most is "
        f"{number_text(best['aggregate_tok_s'])} tok/s at {best['streams']}. "
        + (f"{failed} requests failed. " if failed else "No request failed. ")
        + f"n = {n[0] if len(n) == 1 else f'{n[0]} to {n[-1]}'} a level; bars show the range."
    )


figure(Figure("knee", rows, draw, alt, "lanelab measure knee --lane {lane}",
              "Aggregate and per-stream speed by concurrency"))  # fmt: skip
