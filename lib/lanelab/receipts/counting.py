"""The receipts of a campaign that count, as receipts; `views` gives their rows to SQL."""

from __future__ import annotations

from pathlib import Path

from lanelab.receipts import current
from lanelab.receipts.keys import key_of
from lanelab.receipts.model import Receipt
from lanelab.receipts.store import Store, read_receipt


def counting(campaign_dir: Path) -> list[Receipt]:
    """Read once, by kind and id. Raises `BadFile`."""
    found = [read_receipt(path) for path in Store(campaign_dir).paths()]
    claims = [
        current.Claim(item.id, item.kind, item.step, item.run, item.supersedes, _retracts(item)) for item in found
    ]
    standing = current.standings(claims, current.read_runs(campaign_dir))
    return [item for item in found if standing[item.id].counts]


def _retracts(receipt: Receipt) -> tuple[str, ...]:
    if receipt.kind != "retraction" or not isinstance(receipt.rows, list):
        return ()
    return tuple(str(row.get("retracts")) for row in receipt.rows)


def replaced_by(receipt: Receipt, campaign_dir: Path) -> str | None:
    """The receipt that a new one of the same step and measure key takes the place of, so that none is counted twice.

    Outside a run that is any that counts. A run takes the place of its step's earlier runs by itself, so
    inside one only a receipt that was made outside any run is named.
    """
    same = [
        item
        for item in counting(campaign_dir)
        if item.kind == receipt.kind and item.step == receipt.step and key_of(item)[0] == key_of(receipt)[0]
        and (receipt.run is None or item.run is None)
    ]  # fmt: skip
    return max((item.id for item in same), default=None, key=lambda name: name.partition("-")[2])
