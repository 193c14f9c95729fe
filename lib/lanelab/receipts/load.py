"""Reading many receipts at once, as columns.

A store of a million rows is some hundred megabytes of JSON; as plain Python objects it takes longer
to build than to ask. So each receipt is decoded in one pass (msgspec) into an envelope and rows that
have only the fields which are asked for, and the rows go batch by batch into Arrow arrays. Files are
read ahead by a second thread. Rows in Parquet are read by Arrow. Digests are `verify`'s business.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lanelab.errors import BadFile
from lanelab.receipts.columns import Column, arrow_schema, columns
from lanelab.receipts.kinds import Kind, kind

_BATCH_ROWS = 20_000  # rows turned into Arrow arrays in one go
_READ_AHEAD = 64  # receipts that wait in memory


class Labelled(msgspec.Struct, gc=False):
    """What the views need of a receipt's labels."""

    state: str | None = None
    emulated: str | None = None


class Named(msgspec.Struct, gc=False):
    """What the views need of a recipe."""

    name: str | None = None


class Beside(msgspec.Struct, gc=False):
    """Rows in a Parquet file beside the receipt."""

    name: str
    count: int
    sha256: str


class Envelope(msgspec.Struct, gc=False):
    """A receipt without its rows; `parameters` is JSON bytes."""

    id: str
    kind: str
    campaign: str
    origin: str
    parameters: msgspec.Raw = msgspec.Raw(b"{}")
    kind_version: int = 1
    visibility: str = "public"
    labels: Labelled = msgspec.field(default_factory=Labelled)
    recipe: Named | None = None
    machine: str | None = None
    model: str | None = None
    boot: str | None = None
    lane: str | None = None
    step: str | None = None
    run: str | None = None
    started: str | None = None
    finished: str | None = None
    supersedes: str | None = None
    digest: str | None = None


@dataclass
class Loaded:
    """Receipts of one kind: their envelopes, the folder each stands in, and their rows.

    `rows` has a column for each field that was asked for, `_receipt` (index into `envelopes`) and
    `row` (position within the receipt, from 0).
    """

    kind: Kind
    envelopes: list[Envelope] = field(default_factory=list)
    campaign_dirs: list[Path] = field(default_factory=list)
    rows: pa.Table | None = None


def load(kind_name: str, campaign_dirs: Iterable[Path], wanted: set[str] | None) -> Loaded:
    """All receipts of one kind, with the row fields named in `wanted` (None: all of them).

    An empty `wanted` reads no rows. Raises `BadFile` for a receipt that cannot be read.
    """
    its_kind = kind(kind_name)
    found = Loaded(its_kind)
    chosen = [column for column in columns(its_kind.row) if wanted is None or column.name in wanted]
    batches = _Batches(chosen)
    files = list(_files(kind_name, campaign_dirs))
    if not files:
        found.rows = batches.table()
        return found
    decoder = _decoder(chosen, with_rows=bool(chosen))
    was_enabled = gc.isenabled()
    gc.disable()  # a million young objects, none of them garbage
    try:
        for path, campaign_dir, content in _contents(files):
            envelope = _decoded(path, content, decoder)
            if envelope.kind != kind_name:
                raise BadFile(path, f"is of kind {envelope.kind!r} and stands in the folder of {kind_name!r}")
            number = len(found.envelopes)
            rows = _taken_rows(envelope)
            found.envelopes.append(envelope)
            found.campaign_dirs.append(campaign_dir)
            if isinstance(rows, Beside):
                batches.add_table(number, _beside(path, rows, its_kind, chosen))
            elif rows is not None:
                batches.add_rows(number, rows)
        found.rows = batches.table()
    finally:
        if was_enabled:
            gc.enable()
    return found


def _taken_rows(envelope: Any) -> list[Any] | Beside | None:
    rows = getattr(envelope, "rows", None)
    if rows is not None:
        envelope.rows = None
    return rows


class _Batches:
    """Rows on their way into columns."""

    def __init__(self, chosen: list[Column]) -> None:
        self.chosen = chosen
        self.tables: list[pa.Table] = []
        self.rows: list[Any] = []
        self.numbers: list[int] = []
        self.counts: list[int] = []

    def add_rows(self, number: int, rows: list[Any]) -> None:
        self.rows += rows
        self.numbers.append(number)
        self.counts.append(len(rows))
        if len(self.rows) > _BATCH_ROWS:
            self._flush()

    def add_table(self, number: int, table: pa.Table) -> None:
        self._flush()
        arrays = [table[column.name] for column in self.chosen]
        self.tables.append(_placed([number], [table.num_rows], arrays, self.chosen))

    def table(self) -> pa.Table:
        self._flush()
        fields = [("_receipt", pa.int64()), ("row", pa.int64())]
        schema = pa.schema([*fields, *((column.name, column.arrow) for column in self.chosen)])
        return pa.concat_tables(self.tables) if self.tables else schema.empty_table()

    def _flush(self) -> None:
        if self.counts:
            arrays = []
            for column in self.chosen:
                values: Iterable[Any] = map(attrgetter(column.name), self.rows)
                if column.as_json:
                    values = (None if raw in {b"", b"null"} else raw.decode() for raw in map(bytes, values))
                arrays.append(pa.array(list(values), type=column.arrow))
            self.tables.append(_placed(self.numbers, self.counts, arrays, self.chosen))
        self.rows, self.numbers, self.counts = [], [], []


def _placed(numbers: list[int], counts: list[int], arrays: list[Any], chosen: list[Column]) -> pa.Table:
    """Columns with the place of each row: its receipt and its position there."""
    lengths = np.array(counts, dtype=np.int64)  # (receipts,)
    place = np.arange(lengths.sum(), dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    names = ["_receipt", "row", *(column.name for column in chosen)]
    return pa.table([pa.array(np.repeat(np.array(numbers, dtype=np.int64), lengths)), pa.array(place), *arrays], names)


def _decoder(chosen: list[Column], *, with_rows: bool) -> msgspec.json.Decoder[Any]:
    if not with_rows:
        return msgspec.json.Decoder(Envelope)
    fields = [
        (column.name, msgspec.Raw, msgspec.Raw(b"")) if column.as_json
        else (column.name, _python_type(column.arrow) | None, None)
        for column in chosen
    ]  # fmt: skip
    row = msgspec.defstruct("Row", fields, gc=False)
    whole = msgspec.defstruct("Whole", [("rows", list[row] | Beside)], bases=(Envelope,), gc=False, kw_only=True)  # type: ignore[valid-type]
    return msgspec.json.Decoder(whole)


def _python_type(arrow: pa.DataType) -> Any:
    if pa.types.is_list(arrow):
        return list[_python_type(arrow.value_type) | None]  # type: ignore[misc]
    if pa.types.is_struct(arrow):
        return msgspec.defstruct("Part", [(part.name, _python_type(part.type) | None, None) for part in arrow])
    return {pa.string(): str, pa.int64(): int, pa.float64(): float, pa.bool_(): bool}[arrow]


def _contents(files: list[tuple[Path, Path]]) -> Iterator[tuple[Path, Path, bytes]]:
    """Receipt file, its campaign folder, its bytes; read ahead."""
    groups = [files[start : start + _READ_AHEAD] for start in range(0, len(files), _READ_AHEAD)]
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(_read_all, groups[0]) if groups else None
        for number, group in enumerate(groups, start=1):
            assert ahead is not None
            contents = ahead.result()
            ahead = pool.submit(_read_all, groups[number]) if number < len(groups) else None
            for (path, campaign_dir), content in zip(group, contents, strict=True):
                yield path, campaign_dir, content


def _read_all(group: list[tuple[Path, Path]]) -> list[bytes]:
    return [_bytes_of(path) for path, _ in group]


def _bytes_of(path: Path) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error


def _files(kind_name: str, campaign_dirs: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    for campaign_dir in campaign_dirs:
        folder = campaign_dir / "receipts" / kind_name
        try:
            listed = os.listdir(folder)  # noqa: PTH208 (names are enough, and there are thousands)
            names = sorted(name for name in listed if name.endswith(".json") and name[0] != ".")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadFile(folder, f"cannot be listed: {error.strerror}") from error
        for name in names:
            yield folder / name, campaign_dir


def _decoded(path: Path, content: bytes, decoder: msgspec.json.Decoder[Any]) -> Envelope:
    try:
        found = decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFile(path, f"is not a receipt: {error}") from error
    assert isinstance(found, Envelope)
    return found


def _beside(path: Path, rows: Beside, its_kind: Kind, chosen: list[Column]) -> pa.Table:
    table = read_parquet(path, rows.name, its_kind, [column.name for column in chosen])
    if table.num_rows != rows.count:
        raise BadFile(path.with_name(rows.name), f"holds {table.num_rows} rows, its receipt says {rows.count}")
    return table


def read_parquet(receipt_path: Path, name: str, its_kind: Kind, names: list[str] | None = None) -> pa.Table:
    """The Parquet file beside a receipt, in the types of its kind; a column it lacks is null. Raises `BadFile`."""
    if name != f"{receipt_path.stem}.parquet":
        raise BadFile(receipt_path, f"its rows must stand in {receipt_path.stem}.parquet, not {name!r}", field="rows")
    path = receipt_path.with_name(name)
    schema = arrow_schema(its_kind.row)
    try:
        with open(path, "rb") as file:
            content = pq.ParquetFile(file)
            there = set(content.schema_arrow.names)
            chosen = [part for part in schema if names is None or part.name in names]
            table = content.read(columns=[part.name for part in chosen if part.name in there], use_threads=False)
            rows = content.metadata.num_rows
            arrays = [table[part.name].cast(part.type) if part.name in there else pa.nulls(rows, part.type)
                      for part in chosen]  # fmt: skip
    except OSError as error:
        why = error.strerror or str(error)
        raise BadFile(path, f"cannot be read: {why}") from error
    except pa.ArrowException as error:
        raise BadFile(path, f"is not the Parquet file of a {its_kind.name} receipt: {error}") from error
    return pa.table(arrays, schema=pa.schema(chosen))
