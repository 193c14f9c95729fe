"""Limits of an ad-hoc query: its time, its rows, and how much of one cell is fetched.

SQL may come from anybody, and one line of it can count to a trillion or make a cell of a hundred
million values. So a query ends at a time limit, rows beyond a number are counted but not fetched, and
a cell that is too long is cut inside DuckDB, before it becomes Python values.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from lanelab.errors import LabError
from lanelab.receipts.columns import quoted
from lanelab.receipts.table import Table

ITEMS_MAX = 1000  # of a list that is shown in part
_AGAIN_S = 0.05


class TooSlow(LabError):
    """A query that took longer than its limit. Data: `query`, `timeout_s`."""


@dataclass(frozen=True)
class Limits:
    """Of one query; `timeout_s` counts from `begun`, on the monotonic clock."""

    timeout_s: float = 60.0
    rows: int = 100_000
    characters: int = 20_000  # of one cell
    begun: float = 0.0

    @classmethod
    def starting_now(cls, timeout_s: float, rows: int) -> Limits:
        """Limits whose time begins now."""
        return cls(timeout_s, rows, begun=time.monotonic())

    @contextmanager
    def watching(self, connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[None]:
        """Interrupts what the connection runs once the time is over. Raises `TooSlow`."""
        done = threading.Event()

        def watch() -> None:
            left_s = max(self.begun + self.timeout_s - time.monotonic(), 0.0)
            # an interrupt between two queries is lost, so it is said until it is heard
            while not done.wait(left_s):
                connection.interrupt()
                left_s = _AGAIN_S

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        except duckdb.InterruptException as error:
            raise TooSlow(
                f"the query was not done after {self.timeout_s:g} s and was ended: {_short(sql)!r} "
                "(ask for less, or raise --timeout-s)",
                query=sql,
                timeout_s=self.timeout_s,
            ) from error
        finally:
            done.set()
            thread.join()

    def cut(self, alone: str, types: list[str]) -> tuple[str, set[int]]:
        """The query with long cells cut, and the columns that come twice: as they are, and as text if cut.

        The first of the two is null where the second is not.
        """
        names = [quoted(f"c{at}") for at in range(len(types))]
        chosen: list[str] = []
        twice = set()
        for at, (name, its_type) in enumerate(zip(names, types, strict=True)):
            long, text = self._long(name, its_type)
            if not long:
                chosen.append(name)
                continue
            chosen += [f"CASE WHEN {long} THEN NULL ELSE {name} END", f"CASE WHEN {long} THEN {text} END"]
            twice.add(at)
        # one row more than is shown says whether there are more
        return (
            f"SELECT {', '.join(chosen)} FROM (\n{alone}\n) AS asked({', '.join(names)}) LIMIT {self.rows + 1}",  # noqa: S608
            twice,
        )

    def _long(self, name: str, its_type: str) -> tuple[str, str]:
        """SQL for whether a cell is too long, and for what is shown of it; nothing for types of a fixed size."""
        as_text = f"CAST({name} AS VARCHAR)"
        if its_type.endswith("]"):
            over = f"CASE WHEN len({name}) > {ITEMS_MAX} THEN true ELSE length({as_text}) > {self.characters} END"
            return over, f"left(CAST({name}[:{ITEMS_MAX}] AS VARCHAR), {self.characters})"
        if its_type in _FIXED or its_type.startswith("DECIMAL"):
            return "", ""
        return f"length({as_text}) > {self.characters}", f"left({as_text}, {self.characters})"


_FIXED = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "UUID",
        "INTERVAL",
    ]
)


def answer(connection: duckdb.DuckDBPyConnection, sql: str, limits: Limits) -> Table:
    """The answer to one SELECT within limits. Raises `TooSlow` and DuckDB's own errors."""
    with limits.watching(connection, sql):
        alone = _alone(sql)
        described = connection.execute(f"DESCRIBE {alone}").fetchall()
        names, types = [str(row[0]) for row in described], [str(row[1]) for row in described]
        shortened, twice = limits.cut(alone, types)
        found = connection.execute(shortened).fetchall()
        left_out = 0
        if len(found) > limits.rows:
            del found[limits.rows :]
            counted = connection.execute(f"SELECT count(*) FROM (\n{alone}\n)").fetchone()  # noqa: S608
            left_out = int(counted[0]) - limits.rows if counted else 0
    cut = 0
    rows = []
    for row in found:
        cells = []
        values = iter(row)
        for at in range(len(names)):
            cell = next(values)
            if at in twice and (text := next(values)) is not None:
                cell, cut = f"{text}…", cut + 1
            cells.append(cell)
        rows.append(tuple(cells))
    return Table(tuple(names), tuple(types), rows, left_out, cut)


def _alone(sql: str) -> str:
    """The statement without its semicolon and what stands after it."""
    raw = sql.encode()
    ends = [at for at, _ in duckdb.tokenize(sql) if raw[at : at + 1] == b";" and raw[:at].strip()]
    return raw[: ends[0]].decode() if ends else sql


def _short(sql: str) -> str:
    return sql if len(sql) <= 80 else sql[:77] + "…"
