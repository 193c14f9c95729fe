"""Reading many receipts at once, as columns.

A store of a million rows is some hundred megabytes of JSON; as Python objects it takes longer to
build than to ask. So the envelope of each receipt is decoded alone, its rows kept as raw bytes
(msgspec), and the raw rows of many receipts go together through Arrow's JSON reader, which makes
columns and works beside the thread that reads the files. A field that is not asked for is skipped.
Receipts with odd rows, and Parquet files, are read one by one. Digests are `verify`'s business.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from lanelab.errors import BadFile
from lanelab.receipts.columns import Column, arrow_schema, columns, to_table
from lanelab.receipts.kinds import Kind, kind

_BATCH_BYTES = 6 << 20  # rows parsed in one go: small enough to stay near the caches, large enough for few calls
_WORKERS = 2


class Labelled(msgspec.Struct, gc=False):
    """What the views need of a receipt's labels."""

    state: str | None = None
    emulated: str | None = None


class Named(msgspec.Struct, gc=False):
    """What the views need of a recipe."""

    name: str | None = None


class Envelope(msgspec.Struct, gc=False):
    """A receipt without its rows; `parameters` and `rows` are JSON bytes."""

    id: str
    kind: str
    campaign: str
    origin: str
    rows: msgspec.Raw
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


class Beside(msgspec.Struct):
    """Rows in a Parquet file beside the receipt."""

    name: str
    count: int
    sha256: str


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


_ENVELOPE = msgspec.json.Decoder(Envelope)
_BESIDE = msgspec.json.Decoder(Beside)


def load(kind_name: str, campaign_dirs: Iterable[Path], wanted: set[str] | None, *, private: bool) -> Loaded:
    """All receipts of one kind, with the row fields named in `wanted` (None: all of them).

    An empty `wanted` reads no rows. Raises `BadFile` for a receipt that cannot be read.
    """
    its_kind = kind(kind_name)
    found = Loaded(its_kind)
    chosen = [column for column in columns(its_kind.row) if wanted is None or column.name in wanted]
    was_enabled = gc.isenabled()
    gc.disable()  # hundreds of thousands of young objects, none of them garbage
    try:
        with ThreadPoolExecutor(_WORKERS) as pool:
            parts = [part for part in _read(found, chosen, campaign_dirs, pool, private=private, rows=wanted != set())]
            tables = [part.result() for part in parts]
    finally:
        if was_enabled:
            gc.enable()
    fields = [("_receipt", pa.int64()), ("row", pa.int64()), *((column.name, column.arrow) for column in chosen)]
    schema = pa.schema(fields)
    found.rows = pa.concat_tables(tables) if tables else schema.empty_table()
    return found


def _read(
    found: Loaded, chosen: list[Column], campaign_dirs: Iterable[Path], pool: ThreadPoolExecutor, *,
    private: bool, rows: bool,
) -> Iterator[Future[pa.Table]]:  # fmt: skip
    batch: list[tuple[int, Path, msgspec.Raw]] = []
    size = 0
    as_columns = bool(chosen) and not any(column.as_json for column in chosen)
    for path, campaign_dir in _files(found.kind.name, campaign_dirs):
        envelope = read_envelope(path)
        if envelope.kind != found.kind.name:
            raise BadFile(path, f"is of kind {envelope.kind!r} and stands in the folder of {found.kind.name!r}")
        if envelope.visibility != "public" and not private:
            continue
        number = len(found.envelopes)
        content, envelope.rows = envelope.rows, msgspec.Raw()
        found.envelopes.append(envelope)
        found.campaign_dirs.append(campaign_dir)
        if not rows:
            continue
        if as_columns and memoryview(content)[:1] == b"[":
            batch.append((number, path, content))
            size += memoryview(content).nbytes
            if size > _BATCH_BYTES:
                yield pool.submit(_batch_table, batch, chosen)
                batch, size = [], 0
        else:
            yield pool.submit(_one_table, number, path, content, found.kind, chosen)
    if batch:
        yield pool.submit(_batch_table, batch, chosen)


def _files(kind_name: str, campaign_dirs: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    for campaign_dir in campaign_dirs:
        folder = campaign_dir / "receipts" / kind_name
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".json") and name[0] != ".")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadFile(folder, f"cannot be listed: {error.strerror}") from error
        for name in names:
            yield folder / name, campaign_dir


def read_envelope(path: Path) -> Envelope:
    """One receipt's envelope. Raises `BadFile`."""
    try:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        return _ENVELOPE.decode(content)
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFile(path, f"is not a receipt: {error}") from error


def _batch_table(batch: list[tuple[int, Path, msgspec.Raw]], chosen: list[Column]) -> pa.Table:
    """Rows of many receipts; if one of them does not fit, all are read alone, so that it is named."""
    try:
        lists = _arrow_lists([content for _, _, content in batch], chosen)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        tables = []
        for number, path, content in batch:
            try:
                lists = _arrow_lists([content], chosen)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise BadFile(path, f"its rows do not fit their kind: {error}", field="rows") from error
            tables.append(_table([number], lists, chosen))
        return pa.concat_tables(tables)
    return _table([number for number, _, _ in batch], lists, chosen)


def _arrow_lists(contents: list[msgspec.Raw], chosen: list[Column]) -> pa.ListArray:
    """(receipts,) lists of row structs."""
    buffer = b"".join(piece for content in contents for piece in (b'{"rows":', memoryview(content), b"}\n"))
    struct = pa.struct([(column.name, column.arrow) for column in chosen])
    table = pj.read_json(
        pa.BufferReader(buffer),
        read_options=pj.ReadOptions(block_size=len(buffer) + 1, use_threads=False),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("rows", pa.list_(struct))]), unexpected_field_behavior="ignore"
        ),
    )
    lists = table["rows"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks)
    if len(lists) != len(contents) or lists.null_count:
        raise pa.ArrowInvalid("not one list of rows a receipt")
    return lists


def _table(numbers: list[int], lists: pa.ListArray, chosen: list[Column]) -> pa.Table:
    counts = lists.value_lengths().to_numpy()
    structs = lists.flatten()
    arrays = [structs.field(column.name) for column in chosen]
    return _with_place(np.array(numbers, dtype=np.int64), counts, arrays, chosen)


def _with_place(
    numbers: np.ndarray[Any, Any], counts: np.ndarray[Any, Any], arrays: list[Any], chosen: list[Column]
) -> pa.Table:
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    place = np.arange(total, dtype=np.int64) - np.repeat(starts, counts)
    names = ["_receipt", "row", *(column.name for column in chosen)]
    return pa.table([pa.array(np.repeat(numbers, counts)), pa.array(place), *arrays], names=names)


def _one_table(number: int, path: Path, content: msgspec.Raw, its_kind: Kind, chosen: list[Column]) -> pa.Table:
    names = [column.name for column in chosen]
    try:
        if memoryview(content)[:1] == b"{":
            beside = _BESIDE.decode(content)
            table = read_parquet(path, beside.name, its_kind, names or None)
            if table.num_rows != beside.count:
                raise BadFile(path.with_name(beside.name), f"holds {table.num_rows} rows, its receipt says {beside.count}")
        else:
            table = to_table(its_kind.row, msgspec.json.decode(content, type=list[dict[str, Any]]))
    except (msgspec.DecodeError, pa.ArrowInvalid, pa.ArrowTypeError, TypeError, RecursionError) as error:
        raise BadFile(path, f"its rows do not fit their kind: {error}", field="rows") from error
    arrays = [table[name] for name in names]
    return _with_place(np.array([number]), np.array([table.num_rows]), arrays, chosen)


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
