"""The receipts behind a number: found by id, with their bytes proved before anything is published."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lanelab.errors import LabError, NotFound
from lanelab.receipts import Receipt, RowsFile, read_receipt
from lanelab.receipts.canonical import digest_of


class BrokenReceipt(LabError):
    """A receipt's bytes are not those that were written. Data: `path`, `why`."""


class PrivateReceipt(LabError):
    """Something public would be made from a private receipt. Data: `id`."""


@dataclass(frozen=True)
class Proof:
    """One receipt that was read, and what it proves."""

    id: str
    kind: str
    origin: str
    digest: str
    date: str  # the day it was finished or started, UTC; empty if neither is known
    emulated: str | None
    state: str
    visibility: str


class Ledger:
    """Looks up receipts of one campaign folder and proves their bytes, each once."""

    def __init__(self, campaign_dir: Path) -> None:
        self.campaign_dir = campaign_dir
        self._proofs: dict[str, Proof] = {}

    def proof(self, receipt_id: str) -> Proof:
        """What the receipt of that id proves. Raises `NotFound`, `BadFile`, `BrokenReceipt`."""
        if receipt_id not in self._proofs:
            found = list((self.campaign_dir / "receipts").glob(f"*/{receipt_id}.json"))
            if not found:
                raise NotFound("receipt", receipt_id, hint=f"no such file under {self.campaign_dir / 'receipts'}")
            receipt = read_receipt(found[0])
            prove(found[0], receipt)
            self._proofs[receipt_id] = Proof(
                receipt.id, receipt.kind, receipt.origin, receipt.digest or "", date_of(receipt),
                receipt.labels.emulated, receipt.labels.state, receipt.visibility,
            )  # fmt: skip
        return self._proofs[receipt_id]

    def proofs(self, ids: Iterable[str]) -> list[Proof]:
        """The proofs of several receipts, in order."""
        return [self.proof(receipt_id) for receipt_id in ids]


def prove(path: Path, receipt: Receipt) -> None:
    """Refuse a receipt whose bytes, digest or rows file changed. Raises `BrokenReceipt`."""
    import hashlib

    if path.read_bytes() != receipt.file_bytes():
        raise BrokenReceipt(
            f"{path}: not the canonical bytes of a receipt: it was changed after it was written",
            path=str(path), why="bytes",
        )  # fmt: skip
    if receipt.digest != digest_of(receipt.body()):
        raise BrokenReceipt(f"{path}: its digest does not fit its content", path=str(path), why="digest")
    if isinstance(receipt.rows, RowsFile):
        rows = path.parent / receipt.rows.name
        if not rows.is_file() or hashlib.sha256(rows.read_bytes()).hexdigest() != receipt.rows.sha256:
            raise BrokenReceipt(f"{rows}: the rows of {receipt.id} are missing or were changed", path=str(rows),
                                why="rows")  # fmt: skip


def date_of(receipt: Receipt) -> str:
    """`2026-09-22`: when it was finished, else started; empty if the receipt does not know."""
    moment = receipt.finished or receipt.started
    return moment.strftime("%Y-%m-%d") if moment else ""
