"""The journal: rows of a running workload, on disk before the workload is done.

Each row is one JSON line, appended and fsynced. A killed run or a dead box keeps its rows; the next
run of the same measure key reads them and goes on. A torn last line (the power went while it was
written) is dropped when the journal is opened again; a line that the disk had no room for is taken
back at once. One process writes a journal at a time: a lock file beside it, whose lock dies with
its process, says which.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Any

from lanelab.errors import BadFile, LabError, NoSpace
from lanelab.receipts.canonical import canonical_bytes, parse_json
from lanelab.receipts.files import make_folder, refusals, sync_folder, write_all

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class JournalBusy(LabError):
    """Another process measures the same thing now. Data: `path`, `pid`."""


class BadKey(LabError):
    """A journal's key cannot be a file's name. Data: `key`."""


class Journal:
    """Rows of one measure key in `<campaign>/journal/<key>.jsonl`; `close(done=True)` removes it.

    `resume=False` throws away what an earlier run left. Raises `JournalBusy`, `BadFile`, `NoSpace`.
    """

    def __init__(self, campaign_dir: Path, key: str, *, resume: bool = True) -> None:
        if not _KEY.fullmatch(key):
            raise BadKey(f"{key!r} is no journal key (letters, digits, '.', '_' and '-', at most 200)", key=key)
        self.path = campaign_dir / "journal" / f"{key}.jsonl"
        make_folder(self.path.parent)
        self._lock_path = self.path.with_suffix(".lock")
        self._lock: int | None = _take_lock(self._lock_path, self.path)
        try:
            with refusals(self.path):
                if not resume:
                    self.path.unlink(missing_ok=True)
                self.header, self.rows = self._read()
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
                self._size = os.fstat(self._file).st_size
                sync_folder(self.path.parent)
        except BaseException:
            os.close(self._lock)
            raise

    def _read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if not self.path.exists():
            return {}, []
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        header: dict[str, Any] = {}
        rows = []
        for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
            try:
                entry = parse_json(line)
                kind, value = entry["entry"], entry["value"]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise BadFile(self.path, f"is not a journal line: {error}", line=number) from error
            if kind not in {"header", "row"} or not isinstance(value, dict):
                raise BadFile(self.path, f"is not a journal line: entry {str(kind)[:40]!r}", line=number)
            if kind == "header":
                header = value
            else:
                rows.append(value)
        if whole != content:
            with open(self.path, "r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())
        return header, rows

    def begin(self, header: dict[str, Any]) -> None:
        """Note once what is measured and since when; kept from the first run when resumed."""
        if not self.header:
            self._put("header", header)
            self.header = header

    def append(self, row: dict[str, Any]) -> None:
        """Keep one row: it is on disk when this returns. Raises `NoSpace`, and then the row is not kept."""
        self._put("row", row)
        self.rows.append(row)

    def _put(self, entry: str, value: dict[str, Any]) -> None:
        line = canonical_bytes({"entry": entry, "value": value}) + b"\n"
        try:
            write_all(self._file, line)
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._size)  # a part of a line would spoil the next one
            raise NoSpace(self.path, error.strerror or str(error)) from error
        self._size += len(line)

    def close(self, *, done: bool) -> None:
        """Close; when the receipt is written (`done`) the journal has served and goes."""
        if self._lock is None:
            return
        os.close(self._file)
        if done:
            self.path.unlink(missing_ok=True)
        self._lock_path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(done=False)


def _take_lock(path: Path, journal: Path) -> int:
    """An exclusive lock on a file that names its holder. Raises `JournalBusy`, `NoSpace`."""
    while True:
        with refusals(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(handle)
            os.close(handle)
            who = f"process {holder}" if holder else "another process"
            raise JournalBusy(
                f"{who} measures the same thing now and holds {journal}; wait for it or stop it",
                path=str(journal), pid=holder,
            ) from error  # fmt: skip
        if not _still(path, handle):
            os.close(handle)  # its last holder deleted it between our open and our lock
            continue
        try:
            os.ftruncate(handle, 0)
            write_all(handle, json.dumps({"pid": os.getpid()}).encode())
        except OSError:
            pass  # a full disk hides who holds the lock, the lock itself holds
        return handle


def _still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> int | None:
    try:
        pid = json.loads(os.pread(handle, 200, 0))["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) else None
