"""Placements: what each hot budget left, the ladder against a baseline, coverage, and long context."""

from __future__ import annotations

from lanelab.publish.exhibit import Column, Table, table
from lanelab.publish.figures import ladder, needles
from lanelab.publish.figures.coverage import CURVE_POINTS
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, Summary, grouped, origin_of, spread_text, summary
from lanelab.publish.tables.load import note as contended_note

ORIGIN = Column("origin", "origin", text=True)


def budgets(reader: Reader) -> Rows:
    """One row a budget that was engaged, smallest hot bank first."""
    found = [
        {
            "boot": row["boot"] or row["recipe"], "placement": row["placement"], "hot_gib": row["hot_gib"],
            "hot_cells": row["hot_cells"], "kv_tokens": row["kv_tokens"], "max_model_len": row["max_model_len"],
            "hbm_free_gib": row["hbm_free_gib"], "host_avail_gib": row["host_avail_gib"],
            "train_coverage_pct": None if row["train_coverage"] is None else 100 * row["train_coverage"],
            "decode_tok_s": row["decode_tok_s"], "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in reader.rows("budget")
    ]  # fmt: skip
    return sorted(found, key=lambda row: (row["hot_cells"] or 0, str(row["boot"])))


def ladder_rows(reader: Reader) -> Rows:
    """The ladder's rows, fastest first, with their ranges as text."""
    return [
        {**row, "range": spread_text(Summary(row["n"], row["decode_tok_s"], row["decode_tok_s_low"], row["decode_tok_s_high"]))}
        for row in reversed(ladder.rows(reader))
    ]  # fmt: skip


def ladder_note(shown: Rows) -> str:
    """Names the baseline."""
    return f"Baseline: {shown[0]['baseline']}. Same prompt size, one stream." if shown else ""


def ab(reader: Reader) -> Rows:
    """The baseline against the fastest step: two rows of the ladder."""
    steps = ladder_rows(reader)
    base = [row for row in steps if row["series"] == row["baseline"]]
    best = [row for row in steps[:1] if row["series"] != row["baseline"]]
    return [*base, *best] if base and best else []


def coverage(reader: Reader) -> Rows:
    """Single points of coverage (curves stand in the figure)."""
    curves = grouped(
        reader.rows("coverage"), lambda row: (row["receipt"], row["ranking"], row["traffic"], row["phase"])
    )
    return [
        {
            "ranking": row["ranking"], "traffic": row["traffic"], "phase": row["phase"], "hot_cells": row["hot_cells"],
            "share_pct": 100 * row["share"],
            "kind": "identity" if row["identity"] else "held out" if row["held_out"] else "own traffic",
            "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for curve in curves.values() if len(curve) < CURVE_POINTS
        for row in curve
    ]  # fmt: skip


def needle_rows(reader: Reader) -> Rows:
    """One row a size and state: codes found, TTFT, decode."""
    found = needles.rows(reader)
    result: Rows = []
    for (series, size, state), group in grouped(
        found, lambda row: (row["series"], round(row["prompt_tokens"] / 8192), row["state"])
    ).items():
        codes = [row for row in group if row["task"] == "needle" and row["passed"] is not None]
        longer = [row["decode_tok_s"] for row in group if row["task"] == "decode"]
        result.append({
            "series": series, "prompt_tokens": summary(row["prompt_tokens"] for row in group).median, "n": len(group),
            "found": f"{sum(bool(row['passed']) for row in codes)} of {len(codes)}" if codes else "",
            "ttft_s": summary(row["ttft_s"] for row in group).median, "decode_tok_s": summary(longer).median,
            "state": state, "origin": group[0]["origin"], "receipts": sorted({item for row in group for item in row["receipts"]}),
        })  # fmt: skip
        assert size is not None
    return sorted(result, key=lambda row: (row["prompt_tokens"], row["series"], row["state"]))


table(Table(
    "budgets", budgets,
    (
        Column("boot", "boot", text=True), Column("placement", "placement", text=True), Column("hot_gib", "hot, GiB", 1),
        Column("hot_cells", "hot cells", 0), Column("kv_tokens", "KV tokens", 0), Column("hbm_free_gib", "HBM free, GiB", 1),
        Column("host_avail_gib", "host free, GiB", 1), Column("train_coverage_pct", "coverage, %", 1),
        Column("decode_tok_s", "decode, tok/s", 1), ORIGIN,
    ),
    "What each hot budget left for the KV cache and the host, and the speed it gave", "budget",
))  # fmt: skip
_LADDER = (
    Column("series", "boot", text=True), Column("change", "what changed", text=True), Column("n", "n"),
    Column("decode_tok_s", "decode, tok/s", 1), Column("range", "range", text=True),
    Column("of_baseline_pct", "of baseline, %", 0), Column("state", "state", text=True), ORIGIN,
)  # fmt: skip
table(Table("ladder", ladder_rows, _LADDER, "The ladder: decode speed as a share of the baseline", "decode", "lanelab measure decode --lane {lane}", note=ladder_note))  # fmt: skip
table(Table("ab", ab, _LADDER, "A against B: the control and the fastest step", "decode", "lanelab measure decode --lane {lane}", note=ladder_note))  # fmt: skip
table(Table(
    "coverage", coverage,
    (
        Column("ranking", "ranked on", text=True), Column("traffic", "judged on", text=True), Column("phase", "phase", text=True),
        Column("hot_cells", "hot cells", 0), Column("share_pct", "picks served, %", 1), Column("kind", "kind", text=True), ORIGIN,
    ),
    "Share of the router's picks that a hot list serves", "coverage",
))  # fmt: skip
table(Table(
    "needles", needle_rows,
    (
        Column("series", "boot", text=True), Column("prompt_tokens", "prompt, tokens", 0), Column("n", "n"),
        Column("found", "codes found", text=True), Column("ttft_s", "TTFT, s", 1), Column("decode_tok_s", "decode, tok/s", 1),
        Column("state", "state", text=True), ORIGIN,
    ),
    "Long context: codes found, time to first token, decode speed", "needle", note=contended_note,
))  # fmt: skip
