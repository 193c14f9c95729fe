"""Receipts that a run used again: an earlier run measured them whole, then died before its own end.

The notebook notes each id in its run's folder at once, so that the receipt counts for the run while
it goes on, and when it ends; the runner puts the ids into `run.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from lanelab.receipts.files import sync_folder
from lanelab.receipts.keys import key_of
from lanelab.receipts.model import Receipt
from lanelab.receipts.store import read_receipt

NAME = "reused.txt"


def noted(run_dir: Path) -> list[str]:
    """The ids that a run used again, in its order."""
    try:
        return (run_dir / NAME).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []


def note(run_dir: Path, receipt_id: str) -> None:
    """Add an id; it is on disk when this returns."""
    if receipt_id in noted(run_dir):
        return
    with open(run_dir / NAME, "a", encoding="utf-8") as file:
        file.write(receipt_id + "\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(run_dir)


def left_behind(campaign_dir: Path, *, step: str | None, kind: str, key: str, run_dir: Path) -> Receipt | None:
    """The newest receipt of this measure key whose run did not end well and came after the latest good one.

    None for a run folder outside the campaign's, whose notes nobody would find. Raises `BadFile`.
    """
    runs = campaign_dir / "runs" / (step or "")
    if step is None or run_dir.parent.resolve() != runs.resolve():
        return None
    good = max((name for name in _good_runs(runs)), default="")
    found = [
        receipt
        for receipt in map(read_receipt, sorted((campaign_dir / "receipts" / kind).glob("*.json")))
        if receipt.run and receipt.step == step and good < receipt.run < run_dir.name and key_of(receipt)[0] == key
    ]
    retracted = _retracted(campaign_dir)
    return max((item for item in found if item.id not in retracted), key=lambda item: item.id, default=None)


def _good_runs(runs: Path) -> Iterable[str]:
    """Ids of the runs that ended well; a run's id begins with its time, so ids sort by it."""
    for path in runs.glob("*/run.json"):
        try:
            if json.loads(path.read_bytes()).get("status") == "ok":
                yield path.parent.name
        except (OSError, ValueError, AttributeError):
            continue


def _retracted(campaign_dir: Path) -> set[str]:
    folder = campaign_dir / "receipts" / "retraction"
    found = set()
    for receipt in map(read_receipt, folder.glob("*.json")):
        found |= {row["retracts"] for row in receipt.rows} if isinstance(receipt.rows, list) else set()
    return found
