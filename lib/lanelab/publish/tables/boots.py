"""Boots, with the failed ones: what was changed, what came of it, and the walls that were hit."""

from __future__ import annotations

import re
from typing import Any

from lanelab.publish.exhibit import Column, Table, table
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows, origin_of

GOOD = "serving"
_WORDS = {
    "serving": "serves", "bad_flag": "bad flag", "bad_config": "bad configuration", "oom_device": "out of GPU memory",
    "oom_host_killed": "killed: host memory", "kv_too_small": "KV cache too small", "weights_missing": "weights missing",
    "port_in_use": "port in use", "died_after_ready": "died after ready", "hung": "hung", "garbage": "serves garbage",
    "unknown": "unknown",
}  # fmt: skip


def rows(reader: Reader) -> Rows:
    """One row a boot in the campaign's order; what the sources do not say stays empty."""
    found = sorted(reader.rows("boot"), key=lambda row: (row["ordinal"], str(row["started"]), row["receipt"]))
    return [
        {
            "version": row["version"], "change": row["change"], "outcome": outcome(row), "good": row["outcome"] == GOOD,
            "reason": row["reason"], "hot_gib": row["hot_gib"], "offload_gb": row["offload_gb"],
            "kv_tokens": row["kv_tokens"], "max_model_len": row["max_model_len"],
            "weights_s": row["weights_s"], "origin": origin_of(row), "receipts": [row["receipt"]],
        }
        for row in found
    ]  # fmt: skip


def outcome(row: dict[str, Any]) -> str:
    """The lab's class in words, with what the source said where it says more."""
    said = row["outcome_said"] or ""
    known = _WORDS.get(row["outcome"] or "", "")
    if known.endswith("garbage") and said.startswith("garbage"):
        said = re.sub(r"^\((.*)\)$", r"\1", said.removeprefix("garbage").strip())
    if not known or known == "unknown":
        return said or "not said"
    return known if not said or _same(known, said) else f"{known} ({said})"


def _same(a: str, b: str) -> bool:
    def words(text: str) -> set[str]:
        return set(re.findall(r"[a-z]+", text.lower().replace("serving", "serves")))

    return words(b) <= words(a)


def walls(reader: Reader) -> Rows:
    """The boots that did not come up sane and say why, in order."""
    return [row for row in rows(reader) if not row["good"] and row["reason"] and row["outcome"] != "not said"]


def note(shown: Rows) -> str:
    """How many of the boots say nothing about their outcome."""
    silent = [row["version"] for row in shown if row["outcome"] == "not said"]
    return f"The sources say nothing of the outcome of {', '.join(silent)}." if silent else ""


table(Table(
    "boots", rows,
    (
        Column("version", "boot", text=True), Column("change", "what changed", text=True),
        Column("outcome", "outcome", text=True), Column("reason", "why", text=True), Column("hot_gib", "hot, GiB"),
        Column("kv_tokens", "KV tokens", 0), Column("weights_s", "weights, s"), Column("origin", "origin", text=True),
    ),
    "Every boot in order, failures included", "boot", note=note,
))  # fmt: skip
table(Table(
    "walls", walls,
    (
        Column("version", "boot", text=True), Column("change", "what was tried", text=True),
        Column("outcome", "what happened", text=True), Column("reason", "why", text=True), Column("origin", "origin", text=True),
    ),
    "The walls: boots that did not come up sane, and why", "boot",
))  # fmt: skip
