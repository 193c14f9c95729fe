"""A row model as columns: its Arrow types (Parquet, fast reading) and its SQL types (the views).

A field that has no plain column type (a dict, `Any`, a union) travels as JSON text: a column keeps
every value as it was, where a table library would merge the dicts of all rows into one struct.
"""

from __future__ import annotations

import json
import types
import typing
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from lanelab.receipts.canonical import canonical_bytes
from lanelab.receipts.kinds import Row

_PLAIN = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_SQL = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}


@dataclass(frozen=True)
class Column:
    """One field of a row model. `sql` is the type that queries see; `arrow` how it is stored."""

    name: str
    arrow: pa.DataType
    sql: str
    as_json: bool = False


@cache
def columns(row: type[Row]) -> tuple[Column, ...]:
    """The columns of a row model, in its order."""
    return tuple(_column(name, field.annotation) for name, field in row.model_fields.items())


def arrow_schema(row: type[Row]) -> pa.Schema:
    """The Parquet schema of a row model."""
    return pa.schema([(column.name, column.arrow) for column in columns(row)])


def to_table(row: type[Row], rows: list[dict[str, Any]]) -> pa.Table:
    """Plain rows (validated, as JSON values) as an Arrow table. Raises `pyarrow.ArrowInvalid`, `TypeError`."""
    arrays = []
    for column in columns(row):
        values = [item.get(column.name) for item in rows]
        if column.as_json:
            values = [None if value is None else canonical_bytes(value).decode() for value in values]
        arrays.append(pa.array(values, type=column.arrow))
    return pa.table(arrays, schema=arrow_schema(row))


def from_table(row: type[Row], table: pa.Table) -> list[dict[str, Any]]:
    """The inverse of `to_table`."""
    rows: list[dict[str, Any]] = table.to_pylist()
    names = [column.name for column in columns(row) if column.as_json]
    for item in rows:
        for name in names:
            if isinstance(item.get(name), str):
                item[name] = json.loads(item[name])
    return rows


def _column(name: str, annotation: Any) -> Column:
    if _without_none(annotation) in {datetime, date}:
        return Column(name, pa.string(), "TIMESTAMP")
    found = _arrow(annotation)
    if found is None:
        return Column(name, pa.string(), "JSON", as_json=True)
    return Column(name, found, _sql(found))


def _without_none(annotation: Any) -> Any:
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        rest = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(rest) == 1:
            return rest[0]
        if set(rest) == {int, float}:
            return float
    return annotation


def _arrow(annotation: Any) -> pa.DataType | None:
    """The Arrow type of an annotation, None if only JSON text can hold it."""
    annotation = _without_none(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    found: pa.DataType | None = None
    if origin is typing.Annotated:
        found = _arrow(arguments[0])
    elif origin is typing.Literal:
        kinds = {type(value) for value in arguments}
        found = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
    elif origin is list and arguments and (inner := _arrow(arguments[0])) is not None:
        found = pa.list_(inner)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {name: _arrow(field.annotation) for name, field in annotation.model_fields.items()}
        if fields and None not in fields.values():
            found = pa.struct(list(fields.items()))
    elif isinstance(annotation, type):
        found = _PLAIN.get(annotation)
    return found


def _sql(arrow: pa.DataType) -> str:
    if pa.types.is_list(arrow):
        return f"{_sql(arrow.value_type)}[]"
    if pa.types.is_struct(arrow):
        return "STRUCT(" + ", ".join(f"{quoted(part.name)} {_sql(part.type)}" for part in arrow) + ")"
    return _SQL[arrow]


def quoted(name: str) -> str:
    """A SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
