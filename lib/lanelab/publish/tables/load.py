"""The same numbers as the decode and knee figures, as tables: n, median, range, state, origin."""

from __future__ import annotations

from typing import Any

from lanelab.publish.exhibit import Column, Table, table
from lanelab.publish.figures import decode, knee
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, Summary, spread_text

STATE = (Column("state", "state", text=True), Column("origin", "origin", text=True))


def _spread(row: dict[str, Any], field: str) -> str:
    values = [row[f"{field}_low"], row[f"{field}_high"]]
    return spread_text(Summary(row["n"], row[field], *values))


def _with_spreads(rows: Rows, fields: tuple[str, ...]) -> Rows:
    return [{**row, **{f"{field}_range": _spread(row, field) for field in fields}} for row in rows]


def decode_rows(reader: Reader) -> Rows:
    """The decode figure's rows with their ranges as text."""
    return _with_spreads(decode.rows(reader), ("ttft_s", "decode_tok_s"))


def knee_rows(reader: Reader) -> Rows:
    """The knee figure's rows with their ranges as text, and the knee named or said not to be reached."""
    found = _with_spreads(knee.rows(reader), ("aggregate_tok_s",))
    return [{**row, "mark": "not reached" if row["beyond"] else "knee" if row["knee"] else ""} for row in found]


def note(rows: Rows) -> str:
    """Says what contended rows are, where there are any."""
    if any(row["state"] == "contended" for row in rows):
        return "Contended: another client used the lane meanwhile. Such rows stand alone and enter no median."
    return ""


DECODE = table(Table(
    "decode", decode_rows,
    (
        Column("series", "lane", text=True), Column("size", "size", text=True), Column("prompt_tokens", "prompt, tokens", 0),
        Column("n", "n"), Column("failed", "failed"), Column("ttft_s", "TTFT, s"), Column("ttft_s_range", "range", text=True),
        Column("decode_tok_s", "decode, tok/s"), Column("decode_tok_s_range", "range", text=True), *STATE,
    ),
    "Time to first token and decode speed: medians of n requests", "decode", "lanelab measure decode --lane {lane}", note=note,
))  # fmt: skip

KNEE = table(Table(
    "knee", knee_rows,
    (
        Column("series", "lane", text=True), Column("streams", "streams", 0), Column("n", "n"), Column("failed", "failed"),
        Column("aggregate_tok_s", "together, tok/s"), Column("aggregate_tok_s_range", "range", text=True),
        Column("per_stream_tok_s", "each, tok/s"), Column("ttft_p50_s", "TTFT p50, s"), Column("mark", "knee", text=True), *STATE,
    ),
    "Speed by concurrency: medians of n repeats", "knee", "lanelab measure knee --lane {lane}", note=note,
))  # fmt: skip
