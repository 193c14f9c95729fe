"""The append-only store: one file a receipt, never edited after it is written."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import ValidationError

from lanelab.errors import BadFile, LabError, NotFound
from lanelab.receipts.canonical import canonical_bytes, parse_json, without_nan
from lanelab.receipts.columns import from_table, to_table
from lanelab.receipts.files import folder_lock, write_atomic
from lanelab.receipts.kinds import kind
from lanelab.receipts.load import read_parquet
from lanelab.receipts.model import Receipt, RowsFile
from lanelab.receipts.redact import redact

INLINE_LIMIT_BYTES = 1_000_000  # rows beyond this go to a Parquet file beside the receipt


class BadRows(LabError):
    """Rows do not fit their kind. Data: `kind`, `row`, `field`."""


class AlreadyWritten(LabError):
    """A receipt of that id exists: receipts are never edited. Data: `id`."""


class Store:
    """The receipts of one campaign folder (`data/campaigns/<campaign>`)."""

    def __init__(self, campaign_dir: Path) -> None:
        self.campaign_dir = campaign_dir
        self.dir = campaign_dir / "receipts"

    def path_of(self, receipt: Receipt) -> Path:
        """Where a receipt stands, or would stand."""
        return self.dir / receipt.kind / f"{receipt.id}.json"

    def write(self, receipt: Receipt) -> Receipt:
        """Check the rows against their kind, redact, seal and write. Returns what was written.

        Raises `BadRows`, `AlreadyWritten`, `NoSpace`, `NotCanonical`.
        """
        ready = redact(checked(receipt))
        path = self.path_of(ready)
        beside: bytes | None = None
        if isinstance(ready.rows, list) and len(canonical_bytes(ready.rows)) > INLINE_LIMIT_BYTES:
            beside = parquet_bytes(ready.kind, ready.rows)
            rows = RowsFile(
                name=f"{ready.id}.parquet", count=len(ready.rows), sha256=hashlib.sha256(beside).hexdigest()
            )
            ready = ready.model_copy(update={"rows": rows})
        sealed = ready.sealed()
        with folder_lock(path.parent):
            if path.exists():
                raise AlreadyWritten(f"receipt {sealed.id} exists and is never edited", id=sealed.id)
            if beside is not None:
                # rows first: a crash between the two leaves rows without a receipt, never the reverse
                write_atomic(path.with_suffix(".parquet"), beside)
            write_atomic(path, sealed.file_bytes(), replace=False)
        return sealed

    def paths(self) -> Iterator[Path]:
        """The receipt files, by kind and id."""
        if self.dir.is_dir():
            yield from sorted(path for path in self.dir.glob("*/*.json") if not path.name.startswith("."))

    def read(self, receipt_id: str) -> Receipt:
        """The receipt of that id. Raises `NotFound`, `BadFile`."""
        for path in self.paths():
            if path.stem == receipt_id:
                return read_receipt(path)
        raise NotFound("receipt", receipt_id, (path.stem for path in self.paths()))

    def rows(self, receipt: Receipt) -> list[dict[str, Any]]:
        """A receipt's rows, wherever they stand. Raises `BadFile`."""
        if isinstance(receipt.rows, RowsFile):
            its_kind = kind(receipt.kind)
            return from_table(its_kind.row, read_parquet(self.path_of(receipt), receipt.rows.name, its_kind))
        return receipt.rows

    def retract(self, receipt_id: str, reason: str, retraction: Receipt) -> Receipt:
        """Take a receipt back by writing `retraction`, a receipt of kind `retraction`."""
        self.read(receipt_id)
        return self.write(retraction.model_copy(update={"rows": [{"retracts": receipt_id, "reason": reason}]}))


def checked(receipt: Receipt) -> Receipt:
    """The receipt with its rows validated and its kind's version and units filled in. Raises `BadRows`."""
    its_kind = kind(receipt.kind)
    rows = receipt.rows
    if isinstance(rows, list):
        clean = []
        for number, row in enumerate(rows):
            try:
                clean.append(its_kind.row.model_validate(without_nan(row)).model_dump(mode="json"))
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(str(part) for part in first["loc"])
                raise BadRows(
                    f"row {number} of a {receipt.kind} receipt: {field}: {first['msg']}",
                    kind=receipt.kind, row=number, field=field,
                ) from error  # fmt: skip
        rows = clean
    return receipt.model_copy(
        update={"rows": rows, "kind_version": its_kind.version, "units": {**its_kind.units, **receipt.units}}
    )


def parquet_bytes(kind_name: str, rows: list[dict[str, Any]]) -> bytes:
    """Rows as Parquet; columns in the order and the types of the row model."""
    buffer = io.BytesIO()
    pq.write_table(to_table(kind(kind_name).row, rows), buffer, compression="zstd")
    return buffer.getvalue()


def read_receipt(path: Path) -> Receipt:
    """Parse one receipt file; neither digest nor rows are checked (see `verify`). Raises `BadFile`."""
    try:
        return Receipt.model_validate(parse_json(path.read_bytes()))
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadFile(path, first["msg"], field=".".join(str(part) for part in first["loc"])) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"is not a receipt: {error}") from error
