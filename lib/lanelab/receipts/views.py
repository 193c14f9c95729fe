"""SQL over receipts: DuckDB views `<kind>` and `<kind>_all`, one row per receipt row.

Each view has the receipt's own columns (`receipts.kinds.ENVELOPE`) and the fields of the kind's row
model, with the model's types, also when no receipt of the kind exists. `<kind>` holds the receipts
that count (see `current`), `<kind>_all` everything; the view `receipts` has one row a receipt and
says by whose doing one does not count. Private receipts are left out unless asked for.

SQL may come from anybody: the data are loaded first, then DuckDB loses its access to files and to
the network, and its settings are locked.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lanelab.errors import BadFile, LabError, NotFound
from lanelab.receipts import limits
from lanelab.receipts.columns import columns, quoted
from lanelab.receipts.current import Claim, Standing, read_runs, standings
from lanelab.receipts.kinds import ENVELOPE, Kind, load_all
from lanelab.receipts.load import Loaded, load
from lanelab.receipts.table import Table

MEMORY_LIMIT = "2GB"  # a query that wants more is refused; nothing is spilled to disk
_TIMES = {"started", "finished"}
_TYPES = {"started": "TIMESTAMP", "finished": "TIMESTAMP", "parameters": "JSON", "row": "BIGINT"}
_OWN = tuple(name for name in ENVELOPE if name != "row")
_STANDING = {
    "kind": "VARCHAR", "kind_version": "BIGINT", "counts": "BOOLEAN", "superseded_by": "VARCHAR",
    "retracted_by": "VARCHAR", "run_status": "VARCHAR",
}  # fmt: skip
# With these off, DuckDB's plan over empty tables still names every column that the query reads.
_PLAN_ONLY = "expression_rewriter,statistics_propagation,filter_pushdown,filter_pullup,empty_result_pullup,join_order,late_materialization"


class BadQuery(LabError):
    """SQL that is not one query, or that DuckDB refuses. Data: `query`."""

    exit_code = 2


def open(
    campaign_dirs: Path | Iterable[Path], current_run: str | None = None, *, private: bool = False
) -> duckdb.DuckDBPyConnection:
    """A connection with all views over these campaign folders, everything loaded.

    `current_run` (default: the environment's LANELAB_RUN) is the run that is being made. Raises
    `BadFile` for a receipt that cannot be read.
    """
    return _connect(_folders(campaign_dirs), current_run, private=private, wanted=None)


def ask(
    campaign_dirs: Path | Iterable[Path],
    sql: str,
    current_run: str | None = None,
    *,
    private: bool = False,
    within: limits.Limits | None = None,
) -> Table:
    """The answer to one SELECT, reading only the kinds and fields that it needs.

    What it needs is taken from DuckDB's plan of the query over empty views. With `within`, time, rows
    and cells are bounded. Raises `BadQuery`, `BadFile`, `TooSlow`.
    """
    folders = _folders(campaign_dirs)
    wanted = _needed(sql, within)
    connection = _connect(folders, current_run, private=private, wanted=wanted)
    if within is None:
        return answer(connection, sql)
    only_select(connection, sql)
    try:
        return limits.answer(connection, sql, within)
    except duckdb.Error as error:
        raise _refused(sql, error) from error


def known_run(campaign_dirs: Path | Iterable[Path], run: str) -> None:
    """Raises `NotFound` for a run that has neither a record nor, being made, a receipt."""
    folders = _folders(campaign_dirs)
    known = {name for folder in folders for name in read_runs(folder).by_id}
    if run in known:
        return
    made = ask(folders, "SELECT DISTINCT run FROM receipts WHERE run IS NOT NULL", private=True)
    known |= {str(row[0]) for row in made.rows}
    if run not in known:
        raise NotFound("run", run, known)


def answer(connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any] = ()) -> Table:
    """One SELECT on an open connection; `values` fill its `?`. Raises `BadQuery`."""
    only_select(connection, sql)
    try:
        result = connection.execute(sql, list(values))
        described = result.description or []
        rows = result.fetchall()
    except duckdb.Error as error:
        raise _refused(sql, error) from error
    return Table(tuple(str(part[0]) for part in described), tuple(str(part[1]) for part in described), rows)


def only_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises `BadQuery` unless the text is exactly one SELECT (or DESCRIBE, SHOW, SUMMARIZE)."""
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise _refused(sql, error) from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        found = ", ".join(kinds) if kinds else "nothing"
        raise BadQuery(f"a query is one SELECT over the views, not {found}: {_short(sql)!r}", query=sql)


def view_columns(kind: Kind) -> dict[str, str]:
    """Column name to SQL type of the views of a kind, in order."""
    own = {name: _TYPES.get(name, "VARCHAR") for name in ENVELOPE}
    return {**own, **{column.name: column.sql for column in columns(kind.row)}}


def _refused(sql: str, error: duckdb.Error) -> BadQuery:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    hints = [line for line in lines[1:] if line.startswith(("Did you mean", "Candidate bindings"))]
    return BadQuery("; ".join([f"the query fails: {text}", *hints[:1]]), query=sql)


def _short(sql: str) -> str:
    return sql if len(sql) <= 80 else sql[:77] + "…"


def _folders(campaign_dirs: Path | Iterable[Path]) -> list[Path]:
    return [campaign_dirs] if isinstance(campaign_dirs, Path) else list(campaign_dirs)


def _needed(sql: str, within: limits.Limits | None = None) -> dict[str, set[str]] | None:
    """Table to the columns that a query reads. None means: not known, load everything."""
    connection = _locked(_empty(load_all()))
    only_select(connection, sql)
    try:
        with within.watching(connection, sql) if within else contextlib.nullcontext():
            plan = json.loads(connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])
    except duckdb.Error as error:
        raise _refused(sql, error) from error
    except (ValueError, IndexError, TypeError):
        return None
    found: dict[str, set[str]] = {}
    stack = list(plan)
    while stack:
        node = stack.pop()
        stack.extend(node.get("children", []))
        extra = node.get("extra_info", {})
        if isinstance(extra, dict) and isinstance(extra.get("Table"), str):
            table = extra["Table"].rsplit(".", 1)[-1].strip('"')
            read = extra.get("Projections", [])
            found.setdefault(table, set()).update([read] if isinstance(read, str) else read)
    return found


def _empty(kinds: dict[str, Kind]) -> duckdb.DuckDBPyConnection:
    connection = _connection()
    connection.execute(f"SET disabled_optimizers = '{_PLAN_ONLY}'")
    _create_receipts(connection)
    for its_kind in kinds.values():
        fields = ", ".join(f"{quoted(column.name)} {column.sql}" for column in columns(its_kind.row))
        connection.execute(f'CREATE TABLE {_rows_table(its_kind)} (_receipt BIGINT, "row" BIGINT, {fields})')
        _create_views(connection, its_kind)
    return connection


def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        }
    )


def _locked(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    with contextlib.suppress(duckdb.InvalidInputException):  # in Jupyter it needs ipywidgets even to be switched off
        connection.execute("SET enable_progress_bar = false")  # it would write into the answer
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _connect(
    folders: list[Path], current_run: str | None, *, private: bool, wanted: dict[str, set[str]] | None
) -> duckdb.DuckDBPyConnection:
    kinds = load_all()
    current = current_run if current_run is not None else os.environ.get("LANELAB_RUN")
    needed = _kinds_needed(kinds, wanted)
    loaded = {}
    for its_kind in kinds.values():
        if its_kind.name not in needed and its_kind.name != "retraction":
            continue
        fields = None
        if wanted is not None:
            fields = wanted.get(_rows_name(its_kind), set()) - {"_receipt", "row"}
            if not fields and _rows_name(its_kind) in wanted:
                fields = {_cheapest(its_kind)}  # to count rows, one field of each is enough
        if its_kind.name == "retraction":
            fields = None
        # a private receipt also supersedes and retracts, so all are read and the private ones dropped after
        loaded[its_kind.name] = load(its_kind.name, folders, fields)
    connection = _connection()
    _create_receipts(connection)
    _fill_receipts(connection, loaded, _all_standings(folders, loaded, current), private=private)
    for its_kind in kinds.values():
        if its_kind.name in loaded:
            _create_rows(connection, its_kind, loaded[its_kind.name])
        else:
            fields_sql = ", ".join(f"{quoted(column.name)} {column.sql}" for column in columns(its_kind.row))
            connection.execute(f'CREATE TABLE {_rows_table(its_kind)} (_receipt BIGINT, "row" BIGINT, {fields_sql})')
        _create_views(connection, its_kind)
    return _locked(connection)


def _kinds_needed(kinds: dict[str, Kind], wanted: dict[str, set[str]] | None) -> set[str]:
    if wanted is None:
        return set(kinds)
    found = {its_kind.name for its_kind in kinds.values() if _rows_name(its_kind) in wanted}
    return found if found or "_receipts" not in wanted else set(kinds)


def _cheapest(its_kind: Kind) -> str:
    plain = [column for column in columns(its_kind.row) if not column.as_json]
    return min(plain or columns(its_kind.row), key=lambda column: pa.types.is_nested(column.arrow)).name


def _rows_name(its_kind: Kind) -> str:
    return f"_rows_{its_kind.view}"


def _rows_table(its_kind: Kind) -> str:
    return f"store.{quoted(_rows_name(its_kind))}"


def _create_receipts(connection: duckdb.DuckDBPyConnection) -> None:
    own = ", ".join(f"{quoted(name)} {_TYPES.get(name, 'VARCHAR')}" for name in _OWN)
    more = ", ".join(f"{quoted(name)} {its_type}" for name, its_type in _STANDING.items())
    connection.execute("CREATE SCHEMA store")
    connection.execute(f"CREATE TABLE store._receipts (_receipt BIGINT, _kind VARCHAR, {own}, {more})")
    named = ", ".join(quoted(name) for name in (*_OWN, *_STANDING))
    connection.execute(f"CREATE VIEW receipts AS SELECT {named} FROM store._receipts")  # noqa: S608


def _create_views(connection: duckdb.DuckDBPyConnection, its_kind: Kind) -> None:
    own = ", ".join(f"e.{quoted(name)}" if name != "row" else 'r."row"' for name in ENVELOPE)
    fields = ", ".join(
        f"CAST(r.{quoted(column.name)} AS {column.sql}) AS {quoted(column.name)}"
        if column.sql in {"JSON", "TIMESTAMP"}
        else f"r.{quoted(column.name)}"
        for column in columns(its_kind.row)
    )
    body = (
        f"SELECT {own}, {fields} FROM {_rows_table(its_kind)} r "  # noqa: S608 (names of registered kinds)
        f"JOIN store._receipts e ON r._receipt = e._receipt AND e._kind = '{its_kind.name}'"
    )
    connection.execute(f"CREATE VIEW {quoted(its_kind.view + '_all')} AS {body}")
    connection.execute(f"CREATE VIEW {quoted(its_kind.view)} AS {body} WHERE e.counts")


def _create_rows(connection: duckdb.DuckDBPyConnection, its_kind: Kind, loaded: Loaded) -> None:
    rows = loaded.rows
    assert rows is not None
    connection.register("_arrow", rows)
    there = set(rows.column_names)
    # a field that this query does not read is null: it keeps the view's shape and costs nothing
    listed = ", ".join(
        quoted(column.name) if column.name in there else f"CAST(NULL AS {column.sql}) AS {quoted(column.name)}"
        for column in columns(its_kind.row)
    )
    held = f"store.{quoted(f'_held_{its_kind.view}')}"
    connection.execute(f"CREATE TABLE {held} AS SELECT * FROM _arrow")  # noqa: S608
    connection.execute(f'CREATE VIEW {_rows_table(its_kind)} AS SELECT _receipt, "row", {listed} FROM {held}')  # noqa: S608
    connection.unregister("_arrow")


def _fill_receipts(
    connection: duckdb.DuckDBPyConnection,
    loaded: dict[str, Loaded],
    standing: dict[tuple[Path, str], tuple[Standing, str | None]],
    *,
    private: bool,
) -> None:
    values: dict[str, list[Any]] = {name: [] for name in ("_receipt", "_kind", *_OWN, *_STANDING)}
    for kind_name, found in loaded.items():
        for number, (envelope, folder) in enumerate(zip(found.envelopes, found.campaign_dirs, strict=True)):
            if envelope.visibility != "public" and not private:
                continue
            held, status = standing[folder, envelope.id]
            for name in _OWN:
                values[name].append(_own_value(envelope, name))
            row = (number, kind_name, kind_name, envelope.kind_version, held.counts, held.superseded_by,
                   held.retracted_by, status)  # fmt: skip
            for name, value in zip(("_receipt", "_kind", *_STANDING), row, strict=True):
                values[name].append(value)
    if not values["_receipt"]:
        return
    types = {"_receipt": pa.int64(), "kind_version": pa.int64(), "counts": pa.bool_()}
    names = ("_receipt", "_kind", *_OWN, *_STANDING)
    table = pa.table([pa.array(values[name], type=types.get(name, pa.string())) for name in names], names=list(names))
    connection.register("_arrow_receipts", table)
    listed = ", ".join(quoted(name) for name in names)
    try:
        connection.execute(f"INSERT INTO store._receipts SELECT {listed} FROM _arrow_receipts")  # noqa: S608
    except duckdb.Error as error:
        raise BadFile(_odd_time(loaded), "has a time that is none (valid: 2026-09-22T22:50:30Z)") from error
    connection.unregister("_arrow_receipts")


def _own_value(envelope: Any, name: str) -> Any:
    if name in {"state", "emulated"}:
        return getattr(envelope.labels, name)
    if name == "recipe":
        return envelope.recipe.name if envelope.recipe else None
    if name == "parameters":
        return bytes(envelope.parameters).decode()
    value = getattr(envelope, "id" if name == "receipt" else name)
    return value.removesuffix("Z") if name in _TIMES and value else value


def _odd_time(loaded: dict[str, Loaded]) -> Path:
    for found in loaded.values():
        for envelope, folder in zip(found.envelopes, found.campaign_dirs, strict=True):
            for value in (envelope.started, envelope.finished):
                try:
                    if value:
                        duckdb.execute("SELECT CAST(? AS TIMESTAMP)", [value.removesuffix("Z")])
                except duckdb.Error:
                    return folder / "receipts" / envelope.kind / f"{envelope.id}.json"
    return Path("receipts")


def _all_standings(
    folders: list[Path], loaded: dict[str, Loaded], current_run: str | None
) -> dict[tuple[Path, str], tuple[Standing, str | None]]:
    result = {}
    for folder in folders:
        runs = read_runs(folder)
        claims = [claim for found in loaded.values() for claim in _claims(found, folder)]
        held = standings(claims, runs, current_run)
        for claim in claims:
            run = runs.by_id.get(claim.run or "")
            result[folder, claim.id] = (held[claim.id], run.status if run else None)
    return result


def _claims(found: Loaded, folder: Path) -> Iterable[Claim]:
    retracts: dict[int, list[str]] = {}
    if found.kind.name == "retraction" and found.rows is not None:
        for number, target in zip(found.rows["_receipt"].to_pylist(), found.rows["retracts"].to_pylist(), strict=True):
            retracts.setdefault(number, []).append(target)
    for number, (envelope, its_folder) in enumerate(zip(found.envelopes, found.campaign_dirs, strict=True)):
        if its_folder == folder:
            yield Claim(
                envelope.id, envelope.kind, envelope.step, envelope.run, envelope.supersedes,
                tuple(retracts.get(number, ())),
            )  # fmt: skip
