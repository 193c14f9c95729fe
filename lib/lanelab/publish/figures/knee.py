"""The concurrency knee: what all streams get together, and what each of them gets.

The knee is marked by the rule that the workload itself uses; levels that failed or were contended
are drawn hollow and never enter a median.
"""

from __future__ import annotations

from typing import Any

from lanelab import stats
from lanelab.publish import style
from lanelab.publish.exhibit import Figure, figure
from lanelab.publish.figures.parts import counted, from_zero, key_below, log_ticks, look, range_bars
from lanelab.publish.quantity import number_text
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, grouped, one, origin_of, receipts_of, series_key, state_of, summary


def rows(reader: Reader) -> Rows:
    """One row a series, level and state: n, median and range of both speeds, failures, whether it is the knee."""
    found = reader.rows("knee")
    name = series_key(found)
    result: Rows = []
    for (series, streams, contended), group in grouped(
        found, lambda row: (name(row), row["streams"], state_of(row) == "contended")
    ).items():
        whole = summary(value for row in group for value in _runs(row))
        each = summary(row["per_stream_tok_s"] for row in group)
        failures = [row["failed"] for row in group if row["failed"] is not None]
        result.append({
            "series": series, "streams": streams, "state": "contended" if contended else one(group, state_of),
            "n": whole.n, "failed": sum(failures) if failures else None,
            "aggregate_tok_s": whole.median, "aggregate_tok_s_low": whole.low, "aggregate_tok_s_high": whole.high,
            "per_stream_tok_s": each.median, "per_stream_tok_s_low": each.low, "per_stream_tok_s_high": each.high,
            "ttft_p50_s": summary(row["ttft_p50_s"] for row in group).median,
            "knee": False, "beyond": False, "origin": one(group, origin_of), "receipts": receipts_of(group),
            "others_busy_cores": reader.others_busy_cores(receipts_of(group), "knee"),
        })  # fmt: skip
    for line in grouped(result, lambda row: row["series"]).values():
        clean = [row for row in line if row["state"] != "contended" and row["aggregate_tok_s"] and not row["failed"]]
        at = stats.knee((row["streams"], row["aggregate_tok_s"]) for row in clean)
        for row in clean:
            row["knee"] = at is not None and row["streams"] == at.streams
            row["beyond"] = row["knee"] and row["streams"] == max(other["streams"] for other in line)
    return sorted(result, key=lambda row: (row["series"], row["streams"], row["state"]))


def _runs(row: dict[str, Any]) -> list[float | None]:
    """The values behind a row: its single runs where a published row is their mean, else itself."""
    return row.get("runs_tok_s") or [row["aggregate_tok_s"]]


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
                range_bars(axis, clean, "streams", field, label + _knee_text(clean), number)
                mixed = [row for row in group if row["state"] == "contended"]
                range_bars(axis, mixed, "streams", field, f"{label} (contended)", number, hollow=True)
                _marks(axis, clean, field, number)
            alone = _knee_text(shown) if len(series) == 1 and field == "aggregate_tok_s" else ""
            axis.set_title(title + alone)
            axis.set_xscale("log")
            from_zero(axis, shown, field)
        log_ticks(axes[1], sorted({row["streams"] for row in shown}))
        beyond = any(row["beyond"] for row in shown)
        ring = "the knee, or the edge where it was not reached" if beyond else "the knee"
        failed = "; ×: requests failed" if any(row["failed"] for row in shown) else ""
        axes[1].set_xlabel(f"streams at once (log scale); ring: {ring}{failed}")
        key_below(made, axes[0])
        return made


def _knee_text(rows: Rows) -> str:
    at = next((row for row in rows if row["knee"]), None)
    if at is None:
        return ""
    return f" (no knee up to {at['streams']})" if at["beyond"] else f" (knee: {at['streams']})"


def _marks(axis: Any, clean: Rows, field: str, number: int) -> None:
    for row in clean:
        if row[field] is None:
            continue
        if row["knee"] and field == "aggregate_tok_s":
            axis.plot(row["streams"], row[field], marker="o", markersize=14, markerfacecolor="none",
                      markeredgecolor=look(number)[0], markeredgewidth=1.6, linestyle="none")  # fmt: skip
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
    where = "no knee was reached up to" if knee["beyond"] else "the knee stands at"
    count = len({row["series"] for row in clean})
    head = f"{best['series']}, the highest of {count}: " if count > 1 else ""
    known = [row["failed"] for row in line if row["failed"] is not None]
    n = sorted({row["n"] for row in line})
    one_stream = next((row["per_stream_tok_s"] for row in line if row["streams"] == 1), None)
    failures = f"{counted(sum(known), 'request')} failed. " if known else ""
    return (
        f"{head}{where} {counted(knee['streams'], 'stream')}, with {number_text(knee['aggregate_tok_s'])} tok/s "
        f"together and {number_text(knee['per_stream_tok_s'])} each; "
        + (f"one stream alone gets {number_text(one_stream)} tok/s; " if one_stream else "")
        + f"the most is {number_text(best['aggregate_tok_s'])} tok/s at {counted(best['streams'], 'stream')}. {failures}"
        + f"n = {n[0] if len(n) == 1 else f'{n[0]} to {n[-1]}'} a level"
        + ("; bars show the range." if n[-1] > 1 else ".")
    )


figure(Figure("knee", rows, draw, alt, "Aggregate and per-stream speed by concurrency", "knee", "lanelab measure knee --lane {lane}"))  # fmt: skip
