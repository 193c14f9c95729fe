"""The journal: rows of a running workload, on disk before the workload is done.

Each row is one JSON line, appended and fsynced. A killed run or a dead box keeps its rows; the next
run of the same measure key reads them and goes on. A torn last line (the power went while it was
written) is dropped when the journal is opened again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from lanelab.errors import BadFile
from lanelab.receipts.canonical import canonical_bytes
from lanelab.receipts.files import sync_folder


class Journal:
    """Rows of one measure key in `<campaign>/journal/<key>.jsonl`; `close(done=True)` removes it."""

    def __init__(self, campaign_dir: Path, key: str, *, resume: bool = True) -> None:
        self.path = campaign_dir / "journal" / f"{key}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not resume:
            self.path.unlink(missing_ok=True)
        self.header, self.rows = self._read()
        self._file = open(self.path, "ab")
        sync_folder(self.path.parent)

    def _read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if not self.path.exists():
            return {}, []
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            with open(self.path, "r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())
        header: dict[str, Any] = {}
        rows = []
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                kind, value = entry["entry"], entry["value"]
            except (ValueError, KeyError, TypeError) as error:
                raise BadFile(self.path, f"is not a journal line: {error}", line=number) from error
            if kind == "header":
                header = value
            else:
                rows.append(value)
        return header, rows

    def begin(self, header: dict[str, Any]) -> None:
        """Note once what is measured and since when; kept from the first run when resumed."""
        if not self.header:
            self.header = header
            self._put("header", header)

    def append(self, row: dict[str, Any]) -> None:
        """Keep one row: it is on disk when this returns."""
        self._put("row", row)
        self.rows.append(row)

    def _put(self, entry: str, value: dict[str, Any]) -> None:
        self._file.write(canonical_bytes({"entry": entry, "value": value}) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self, *, done: bool) -> None:
        """Close; when the receipt is written (`done`) the journal has served and goes."""
        self._file.close()
        if done:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self.close(done=False)
