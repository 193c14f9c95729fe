"""The append-only store: one file a receipt, never edited after it is written."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from lanelab.errors import BadFile, LabError, NotFound
from lanelab.receipts.canonical import canonical_bytes, without_nan
from lanelab.receipts.files import write_atomic
from lanelab.receipts.kinds import kind
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

        Raises `BadRows`, `AlreadyWritten`, `NoSpace`.
        """
        ready = redact(checked(receipt))
        rows = ready.rows
        if isinstance(rows, list) and len(canonical_bytes(rows)) > INLINE_LIMIT_BYTES:
            content = parquet_bytes(ready.kind, rows)
            name = f"{ready.id}.parquet"
            write_atomic(self.dir / ready.kind / name, content)
            ready = ready.model_copy(
                update={"rows": RowsFile(name=name, count=len(rows), sha256=hashlib.sha256(content).hexdigest())}
            )
        sealed = ready.sealed()
        try:
            write_atomic(self.path_of(sealed), sealed.file_bytes(), replace=False)
        except FileExistsError as error:
            raise AlreadyWritten(f"receipt {sealed.id} exists and is never edited", id=sealed.id) from error
        return sealed

    def paths(self) -> Iterator[Path]:
        """The receipt files, by kind and id."""
        if self.dir.is_dir():
            yield from sorted(self.dir.glob("*/*.json"))

    def read(self, receipt_id: str) -> Receipt:
        """The receipt of that id. Raises `NotFound`, `BadFile`."""
        found = list(self.dir.glob(f"*/{receipt_id}.json"))
        if not found:
            raise NotFound("receipt", receipt_id, (path.stem for path in self.paths()))
        return read_receipt(found[0])

    def rows(self, receipt: Receipt) -> list[dict[str, Any]]:
        """A receipt's rows, wherever they stand."""
        if isinstance(receipt.rows, RowsFile):
            table = pq.read_table(self.dir / receipt.kind / receipt.rows.name)
            return table.to_pylist()
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
    """Rows as Parquet; columns in the order of the row model."""
    names = list(kind(kind_name).row.model_fields)
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read_receipt(path: Path) -> Receipt:
    """Parse one receipt file; neither digest nor rows are checked (see `verify`). Raises `BadFile`."""
    try:
        return Receipt.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadFile(path, first["msg"], field=".".join(str(part) for part in first["loc"])) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"is not a receipt: {error}") from error
