"""The plan in tables: the byte ledger, its numbers, the terms of the ceiling, and what it noticed."""

from __future__ import annotations

from lanelab.publish.exhibit import Column, Table, table
from lanelab.publish.figures.memory import latest
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, origin_of

RERUN = "lanelab run 01-memory-arithmetic"
ORIGIN = Column("origin", "origin", text=True)
_SHOWN = {
    "cells": "cells", "cell_mib": "a cell, scales included", "experts_gib": "routed experts", "nonexpert_gib": "non-expert weights",
    "local_budget_gib": "memory to use", "hot_gib": "hot experts", "hot_cells": "hot cells",
    "hot_layers_equivalent": "hot cells as layers", "cold_gib": "cold experts, scales included", "host_pinned_gib": "pinned in host memory",
    "host_peak_gib": "host memory at its peak", "kv_bytes_per_token": "KV cache for one more token",
    "kv_bytes_per_token_mean": "KV cache a token, mean over a request", "kv_tokens": "KV cache", "context_max": "longest context",
    "cold_read_gib_per_token": "read over the link for a token", "ceiling_tok_s": "decode ceiling",
    "ceiling_overlapped_tok_s": "decode ceiling, both memories read at once", "ceiling_all_hot_tok_s": "decode ceiling, all cells hot",
}  # fmt: skip


def ledger(reader: Reader) -> Rows:
    """One row a role of the checkpoint, largest first."""
    return [
        {
            "role": row["name"].replace("_", " "), "gib": row["value"], "mib": row["value"] * 1024, "dtype": row["of"],
            "loaded": row["text"], "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in latest(reader, "ledger")
    ]  # fmt: skip


def numbers(reader: Reader) -> Rows:
    """The plan's numbers that a reader asks for, in the order of the arithmetic."""
    found = {row["name"]: row for row in latest(reader, "plan") if row["value"] is not None}
    return [
        {
            "what": text, "name": name, "value": found[name]["value"], "unit": found[name]["unit"] or "",
            "origin": origin_of(found[name]), "receipts": [found[name]["receipt"]],
        }
        for name, text in _SHOWN.items()
        if name in found
    ]  # fmt: skip


def terms(reader: Reader) -> Rows:
    """The parts of one decode step."""
    return [
        {
            "term": row["name"], "memory": row["of"], "ms": row["value"], "formula": row["formula"],
            "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in latest(reader, "term")
    ]  # fmt: skip


def findings(reader: Reader) -> Rows:
    """What the plan noticed and assumed."""
    return [
        {
            "what": row["name"].replace("-", " ").replace("_", " "), "severity": row["of"] or "assumed", "text": row["text"],
            "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in [*latest(reader, "finding"), *latest(reader, "assumed")]
    ]  # fmt: skip


table(Table(
    "ledger", ledger,
    (
        Column("role", "role", text=True), Column("gib", "GiB", 2), Column("mib", "MiB", 1), Column("dtype", "stored as", text=True),
        Column("loaded", "", text=True), ORIGIN,
    ),
    "What the checkpoint holds, by role", "plan", RERUN,
))  # fmt: skip
table(Table(
    "plan", numbers, (Column("what", "what", text=True), Column("value", "value"), Column("unit", "unit", text=True), ORIGIN),
    "The plan's numbers", "plan", RERUN,
))  # fmt: skip
table(Table(
    "terms", terms,
    (Column("term", "term", text=True), Column("memory", "read from", text=True), Column("ms", "ms", 2), Column("formula", "formula", text=True), ORIGIN),
    "One decode step: bytes over bandwidth", "plan", RERUN,
))  # fmt: skip
table(Table(
    "findings", findings,
    (Column("what", "rule", text=True), Column("severity", "severity", text=True), Column("text", "finding", text=True), ORIGIN),
    "What the plan noticed and assumed", "plan", RERUN,
))  # fmt: skip
