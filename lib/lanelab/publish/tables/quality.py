"""Quality and profile: teacher-forced comparisons beside their floor, suites, and where the time goes."""

from __future__ import annotations

from lanelab.publish.exhibit import Column, Table, table
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, origin_of

ORIGIN = Column("origin", "origin", text=True)
PROFILE_ROWS = 12  # lines of a profile that are shown; all are in its receipt


def gate(reader: Reader) -> Rows:
    """Comparisons, the floors (a server against its own reboot) first."""
    found = [
        {
            "reference": row["reference"], "candidate": row["candidate"], "floor": "floor" if row["floor"] else "",
            "positions": row["positions"], "flips": row["flips"],
            "flip_pct": None if row["flip_share"] is None else 100 * row["flip_share"],
            "ppl_reference": row["ppl_reference"], "ppl_candidate": row["ppl_candidate"],
            "dlogprob_mean": row["dlogprob_mean"], "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in reader.rows("quality")
    ]  # fmt: skip
    return sorted(found, key=lambda row: (not row["floor"], row["reference"], row["candidate"]))


def suites(reader: Reader) -> Rows:
    """One row a suite, split and server."""
    return [
        {
            "suite": row["suite"], "split": row["split"], "part": row["part"], "weights": row["weights"],
            "placement": row["placement"], "n": row["n"], "ok": row["ok"], "ok_pct": 100 * row["ok"] / row["n"] if row["n"] else None,
            "errors": row["errors"], "flooded": row["flooded"], "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in reader.rows("suite")
    ]  # fmt: skip


def profile(reader: Reader) -> Rows:
    """The lines that cost most GPU time of their own."""
    found = sorted(reader.rows("profile"), key=lambda row: -(row["self_cuda_us"] or 0))
    return [
        {
            "name": row["name"], "category": row["category"], "calls": row["calls"], "self_cuda_pct": row["self_cuda_pct"],
            "self_cuda_us": row["self_cuda_us"], "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in found[:PROFILE_ROWS]
    ]  # fmt: skip


def profile_note(shown: Rows) -> str:
    """Warns against adding the lines up."""
    return "Spans contain operators, operators contain kernels: the lines do not add up." if shown else ""


table(Table(
    "quality", gate,
    (
        Column("reference", "reference", text=True), Column("candidate", "against", text=True), Column("floor", "", text=True),
        Column("positions", "positions", 0), Column("flips", "flips", 0), Column("flip_pct", "flips, %", 3),
        Column("dlogprob_mean", "mean logprob difference", 4), ORIGIN,
    ),
    "Teacher-forced gate: flips beside the floor of a reboot", "quality",
))  # fmt: skip
table(Table(
    "suites", suites,
    (
        Column("suite", "suite", text=True), Column("split", "split", text=True), Column("part", "part", text=True),
        Column("weights", "weights", text=True), Column("placement", "placement", text=True), Column("n", "tasks", 0),
        Column("ok", "solved", 0), Column("ok_pct", "solved, %", 1), Column("errors", "errors", 0),
        Column("flooded", "flooded", 0), ORIGIN,
    ),
    "Task suites", "suite",
))  # fmt: skip
table(Table(
    "profile", profile,
    (
        Column("name", "line", text=True), Column("category", "category", text=True), Column("calls", "calls", 0),
        Column("self_cuda_us", "own GPU time, µs", 0), Column("self_cuda_pct", "share, %", 1), ORIGIN,
    ),
    "Where the time goes: the lines with most GPU time of their own", "profile", note=profile_note,
))  # fmt: skip
