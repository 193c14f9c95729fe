"""facts.yaml: the named numbers of a campaign, and the SQL that its short form stands for.

    decode_tok_s:
      from: {kind: decode, where: {size: 8K, status: ok}, value: decode_tok_s, stat: median}
      digits: 1
      says: decode speed at the middle prompt size

Column names are checked against the kind and values travel as parameters, so nothing that stands in
the file becomes SQL by accident. Rows that were contended are left out of every statistic unless
`where` names their state, and the compiled query says so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from lanelab.errors import BadFile
from lanelab.publish.reader import columns_of, quoted
from lanelab.receipts.kinds import Kind
from lanelab.yamlfile import read_yaml

Stat = Literal["median", "mean", "min", "max", "sum", "count", "first", "only"]
Scalar = str | int | float | bool | None
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_STATS = {
    "median": "median({0})", "mean": "avg({0})", "min": "min({0})", "max": "max({0})", "sum": "sum({0})",
    "count": "count({0})", "only": "min({0})", "first": 'first({0} ORDER BY "started", "receipt", "row")',
}  # fmt: skip


class Strict(BaseModel):
    """Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class FromRows(Strict):
    """The short form: one statistic of one column of one kind."""

    kind: str
    where: dict[str, Scalar | list[Scalar]] = {}
    value: str
    stat: Stat = "only"


class Query(Strict):
    """Where a number comes from: `from` or `sql`, not both."""

    from_: FromRows | None = Field(None, alias="from")
    sql: str | None = None
    says: str = ""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.from_ is None) == (self.sql is None) and not getattr(self, "disputed", None):
            raise ValueError("needs either `from` or `sql`")
        return self


class Entry(Query):
    """One fact. `disputed` lists several sources of one number, which are shown side by side."""

    disputed: list[Query] | None = None
    unit: str | None = None
    digits: int | None = Field(None, ge=0, le=12)
    derived: bool = False  # allows receipts of different origins, and says so

    @model_validator(mode="after")
    def _not_both(self) -> Self:
        if self.disputed is not None and (self.from_ is not None or self.sql is not None):
            raise ValueError("`disputed` stands alone: give each source its own `from` or `sql`")
        if self.disputed is not None and len(self.disputed) < 2:
            raise ValueError("`disputed` needs at least two sources")
        return self


class FactsFile(RootModel[dict[str, Entry]]):
    """The whole file: name to entry."""

    @model_validator(mode="after")
    def _names(self) -> Self:
        for name in self.root:
            if not _NAME.match(name):
                raise ValueError(f"{name!r} is not a fact's name: lower-case letters, digits and _, a letter first")
        return self


def load(path: Path) -> dict[str, Entry]:
    """The entries of a facts.yaml, none if there is no file or only comments in it. Raises `BadFile`."""
    if not path.exists() or not re.search(rb"^\s*[^\s#]", path.read_bytes(), re.M):
        return {}
    return read_yaml(path, FactsFile).root


def line_of(path: Path, name: str) -> int | None:
    """The line on which a fact stands."""
    node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if key.value == name:
                return int(key.start_mark.line) + 1
    return None


def compiled(source: FromRows, kind: Kind) -> tuple[str, list[Any], str]:
    """The short form as SQL, its parameters, and as words. Raises `ValueError` for an unknown column.

    The SQL gives `value`, `receipts` (ids that were read), `n` (rows that entered) and, for kinds whose
    rows hold their own unit, `units` and `flags`.
    """
    columns = columns_of(kind)
    for name in [*source.where, *([] if source.value == "*" else [source.value])]:
        if name not in columns:
            raise ValueError(f"kind {kind.name!r} has no column {name!r} (valid: {', '.join(columns)})")
    tests: list[str] = []
    values: list[Any] = []
    words: list[str] = []
    for name, wanted in source.where.items():
        tests.append(_test(name, wanted, values))
        words.append(f"{name} = {_word(wanted)}")
    if source.value == "*":
        if source.stat != "count":
            raise ValueError(f"value '*' goes with stat 'count', not {source.stat!r}")
        target = "*"
    else:
        target = quoted(source.value)
        tests.append(f"{target} IS NOT NULL")
    if not {"state", "row_state"} & set(source.where) and source.stat not in ("only", "count"):
        state = '"row_state"' if "row_state" in kind.row.model_fields else '"state"'
        tests.append(f"{state} IS DISTINCT FROM 'contended'")
        words.append("not contended")
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    read = f'list(DISTINCT "receipt" ORDER BY "receipt") AS receipts, count({target}) AS n'
    for column in sorted({"unit", "flag"} & set(kind.row.model_fields)):
        read += f", list(DISTINCT {quoted(column)}) AS {quoted(column + 's')}"
    # names are checked and quoted, values are parameters
    sql = f"SELECT {_STATS[source.stat].format(target)} AS value, {read} FROM {quoted(kind.view)}{where}"  # noqa: S608
    said = f"{source.stat} of {source.value} in {kind.view}" + (f" where {', '.join(words)}" if words else "")
    return sql, values, said


def _test(name: str, wanted: Any, values: list[Any]) -> str:
    column = quoted(name)
    if wanted is None:
        return f"{column} IS NULL"
    if isinstance(wanted, list):
        known = [item for item in wanted if item is not None]
        values.extend(known)
        inside = f"{column} IN ({', '.join('?' * len(known))})" if known else "false"
        return inside if len(known) == len(wanted) else f"({inside} OR {column} IS NULL)"
    values.append(wanted)
    return f"{column} = ?"


def _word(wanted: Any) -> str:
    return " or ".join(map(str, wanted)) if isinstance(wanted, list) else "null" if wanted is None else str(wanted)


def bad(path: Path, name: str, why: str) -> BadFile:
    """The error of one fact: file, line and name."""
    return BadFile(path, why, line=line_of(path, name) if path.exists() else None, field=name)
