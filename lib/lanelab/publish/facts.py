"""Facts: numbers of a post, each read from receipts by a query, each with its proof.

A fact gives exactly one value or an error that names it and its line. It carries the ids, digests,
origins and dates of the receipts that it was read from. Receipts of different origins (or emulated
beside real ones) are refused in one number unless the fact says `derived`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from lanelab.errors import LabError, NotFound
from lanelab.publish import facts_file
from lanelab.publish.facts_file import Entry, FromRows, Query
from lanelab.publish.ledger import Ledger, Proof
from lanelab.publish.prose import is_number
from lanelab.publish.quantity import NoConversion, convert, number_text, with_unit
from lanelab.publish.reader import BadQuery, Reader
from lanelab.publish.typed import is_typed
from lanelab.receipts.kinds import kind as kind_of


class NothingMeasured(LabError):
    """A fact's query finds no row. Data: `fact`, `path`, `line`."""


@dataclass(frozen=True)
class Fact:
    """One named number with its proof. `value` is None when nothing is measured yet (drafts only)."""

    campaign: str
    name: str
    value: float | int | str | None
    unit: str | None
    digits: int | None
    text: str  # as printed, with its unit
    says: str
    origin: str  # measured | published | derived | predicted
    query: str  # in words, or the SQL of the long form
    sql: str
    n: int | None = None  # rows that entered
    receipts: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    emulated: str | None = None
    flag: str | None = None  # what its source says of a published figure: predicted, measured, derived, corrected
    disputed: list[Fact] = field(default_factory=list)

    @property
    def plain(self) -> str:
        """The number alone, without its unit."""
        return str(self.value) if isinstance(self.value, str) else number_text(self.value, self.digits)


def evaluate(
    campaign_dir: Path, *, strict: bool = True, reader: Reader | None = None, only: str | None = None
) -> dict[str, Fact]:
    """All facts of a campaign, or one.

    With `strict=False` a fact without rows becomes one whose text is "not measured yet"; every other
    mistake raises `BadFile` with file, line and fact, `BrokenReceipt` or `PrivateReceipt`.
    """
    found = Facts(campaign_dir, reader or Reader(campaign_dir), strict=strict)
    if only is not None and only not in found:
        raise NotFound("fact", only, found, hint=f"facts stand in {found.path}")
    return {name: found[name] for name in found if only in (None, name)}


_EVALUATED: dict[tuple[Path, bool], tuple[str, dict[str, Fact]]] = {}


def evaluated(campaign_dir: Path, *, strict: bool = True) -> dict[str, Fact]:
    """`evaluate`, once for the same files: the pages of one build ask several times."""
    stamp = _stamp(campaign_dir)
    key = (campaign_dir, strict)
    if _EVALUATED.get(key, ("",))[0] != stamp:
        _EVALUATED[key] = (stamp, evaluate(campaign_dir, strict=strict))
    return _EVALUATED[key][1]


def _stamp(campaign_dir: Path) -> str:
    digest = hashlib.sha256()
    for path in [
        campaign_dir / "facts.yaml",
        *sorted(campaign_dir.glob("receipts/*/*")),
        *campaign_dir.glob("runs/*/*/run.json"),
    ]:
        if path.is_file():
            status = path.stat()
            digest.update(f"{path} {status.st_mtime_ns} {status.st_size} {status.st_ino}\n".encode())
    return digest.hexdigest()


class Facts(Mapping[str, Fact]):
    """A campaign's facts, each read when it is asked for; drafts may miss rows."""

    def __init__(self, campaign_dir: Path, reader: Reader, *, strict: bool = False) -> None:
        self.path = campaign_dir / "facts.yaml"
        self.entries = facts_file.load(self.path)
        self.reader = reader
        self.strict = strict
        self._ledger = Ledger(campaign_dir)
        self._found: dict[str, Fact] = {}

    def __getitem__(self, name: str) -> Fact:
        if name not in self._found:
            entry = self.entries[name]
            try:
                self._found[name] = _fact(self.path, name, entry, self.reader, self._ledger)
            except NothingMeasured:
                if self.strict:
                    raise
                self._found[name] = _blank(self.reader.campaign, name, entry)
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def _fact(path: Path, name: str, entry: Entry, reader: Reader, ledger: Ledger) -> Fact:
    if entry.disputed is None:
        return _single(path, name, entry, entry, reader, ledger)
    sides = [_single(path, name, entry, side, reader, ledger) for side in entry.disputed]
    return Fact(
        reader.campaign, name, None, sides[0].unit, entry.digits, " against ".join(side.text for side in sides),
        entry.says, "derived" if len({side.origin for side in sides}) > 1 else sides[0].origin,
        "sources disagree: " + "; ".join(side.says or side.query for side in sides), "",
        receipts=_merged(side.receipts for side in sides), digests=_merged(side.digests for side in sides),
        origins=_merged(side.origins for side in sides), dates=_merged(side.dates for side in sides), disputed=sides,
    )  # fmt: skip


def _merged(lists: Any) -> list[str]:
    return list(dict.fromkeys(item for part in lists for item in part))


def _single(path: Path, name: str, entry: Entry, source: Query, reader: Reader, ledger: Ledger) -> Fact:
    try:
        asked = _asked(source, reader)
        value, ids, n, unit, said, sql = asked.value, asked.receipts, asked.n, asked.unit, asked.said, asked.sql
        if value is None:
            line = facts_file.line_of(path, name)
            raise NothingMeasured(f"{path}:{line}: fact {name!r}: no row for: {said}", fact=name, path=str(path),
                                  line=line)  # fmt: skip
        if entry.unit and unit not in (None, entry.unit) and not isinstance(value, str):
            value, said = convert(value, str(unit), entry.unit), f"{said}, {unit} as {entry.unit}"
    except (BadQuery, NoConversion, ValueError, NotFound) as error:
        raise facts_file.bad(path, name, str(error)) from error
    proofs = ledger.proofs(ids)
    _allowed(path, name, entry, proofs)
    origins = sorted({proof.origin for proof in proofs})
    emulated = next((proof.emulated for proof in proofs if proof.emulated), None)
    shown_unit = unit if entry.unit is None else entry.unit
    text = value if isinstance(value, str) else number_text(value, entry.digits)
    return Fact(
        reader.campaign, name, value, shown_unit, entry.digits, with_unit(text, shown_unit), source.says or entry.says,
        "derived" if entry.derived else origins[0], said, sql, n, ids, [proof.digest for proof in proofs], origins,
        sorted({proof.date for proof in proofs if proof.date}), emulated, asked.flag,
    )  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    """An answer: the value, the receipts it was read from, rows that entered, unit, query in words and SQL."""

    value: Any
    receipts: list[str]
    n: int | None
    unit: str | None
    said: str
    sql: str
    flag: str | None = None


def _asked(source: Query, reader: Reader) -> _Asked:
    return _asked_short(source.from_, reader) if source.from_ is not None else _asked_sql(source.sql or "", reader)


def _asked_short(short: FromRows, reader: Reader) -> _Asked:
    its_kind = kind_of(short.kind)
    sql, values, said = facts_file.compiled(short, its_kind)
    unit = its_kind.units.get(short.value) if short.stat != "count" else "1"
    if not (reader.campaign_dir / "receipts" / short.kind).is_dir():
        return _Asked(None, [], 0, unit, said, sql)
    row = reader.select(sql, values)[0]
    if not row["receipts"]:
        return _Asked(None, [], 0, unit, said, sql)
    if short.stat == "only" and row["n"] > 1:
        raise ValueError(f"{row['n']} rows, but stat 'only' needs one; narrow `where` or choose another stat")
    unit = unit or _agreed(row.get("units"))
    return _Asked(
        _plain(row["value"]),
        list(row["receipts"]),
        row["n"],
        unit,
        said,
        _filled(sql, values),
        _agreed(row.get("flags")),
    )


def _asked_sql(query: str, reader: Reader) -> _Asked:
    sql = " ".join(query.split())
    rows = reader.select(query)
    if not rows:
        return _Asked(None, [], 0, None, sql, sql)
    if len(rows) > 1:
        raise ValueError(f"the SQL gives {len(rows)} rows, but a fact is one value")
    row = rows[0]
    others = [name for name in row if name not in ("value", "receipts", "receipt", "n", "unit", "flag")]
    if "value" not in row and len(others) != 1:
        raise ValueError(f"name the SQL's result column `value` (it gives: {', '.join(row)})")
    value = row["value"] if "value" in row else row[others[0]]
    if any(map(is_number, str(value))) and is_typed(query, reader.connection):
        raise ValueError(f"the SQL's value {value!r} is typed, not read: select a column of the receipts' rows")
    if value is None:
        return _Asked(None, [], 0, None, sql, sql)
    ids = row.get("receipts") or row.get("receipt") or _read_by(query, reader)
    return _Asked(_plain(value), sorted(set(_flat(ids))), row.get("n"), row.get("unit"), sql, sql, row.get("flag"))


def _agreed(values: list[Any] | None) -> str | None:
    """The one value that all rows behind a fact have in a column, if they have one."""
    return str(values[0]) if values and len(values) == 1 and values[0] is not None else None


def _read_by(sql: str, reader: Reader) -> list[str]:
    """Ids of a long form that does not select them: only a view of one receipt leaves no doubt."""
    ids: set[str] = set()
    for view in reader.views_in(sql):
        ids |= {row["receipt"] for row in reader.select(f'SELECT DISTINCT "receipt" FROM "{view}"')}  # noqa: S608 (a view's own name)
    if len(ids) != 1:
        raise ValueError('the SQL does not say what it read: add list(DISTINCT "receipt") AS receipts')
    return list(ids)


def _flat(value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in _flat(part)]
    return [] if value is None else [str(value)]


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (int, float, str)) or value is None:
        return value
    raise ValueError(f"a fact is a number or a text, not {type(value).__name__}")


def _filled(sql: str, values: list[Any]) -> str:
    """The compiled SQL as a reader can paste it into `lanelab query`."""
    parts = sql.split("?")
    shown = [_literal(value) for value in values] + [""]
    return "".join(part + value for part, value in zip(parts, shown, strict=True))


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "''") + "'"


def _allowed(path: Path, name: str, entry: Entry, proofs: list[Proof]) -> None:
    if not proofs:
        raise facts_file.bad(path, name, "the query reads no receipt: a number without a receipt is no fact")
    private = [proof.id for proof in proofs if proof.visibility == "private"]
    if private:
        raise facts_file.bad(path, name, f"it reads the private receipt {private[0]}; publish it or read another")
    origins = sorted({proof.origin for proof in proofs})
    if len(origins) > 1 and not entry.derived:
        raise facts_file.bad(path, name, f"it mixes origins ({', '.join(origins)}); say `derived: true` or narrow it")
    if len({proof.emulated is not None for proof in proofs}) > 1 and not entry.derived:
        raise facts_file.bad(path, name, "it mixes emulated receipts with real ones; say `derived: true` or narrow it")


def _blank(campaign: str, name: str, entry: Entry) -> Fact:
    return Fact(campaign, name, None, entry.unit, entry.digits, "not measured yet", entry.says, "predicted", "", "")
