"""Exhibits: the tables and figures of a post, each made from receipts and able to say so.

An exhibit has a name (`knee`), the rows it shows (which are also its CSV and JSON), the command that
measures them again, and either a drawing with an alternative text or the columns of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanelab.errors import NotFound
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows


@dataclass(frozen=True)
class Figure:
    """A drawing of rows. `draw(rows)` gives the SVG's figure; `alt(rows)` states the finding."""

    name: str
    rows: Callable[[Reader], Rows]
    draw: Callable[[Rows], Any]
    alt: Callable[[Rows], str]
    says: str
    view: str  # the SQL view that its rows come from
    rerun: str = ""  # the command that measures it again, with {lane}; empty while there is none


@dataclass(frozen=True)
class Column:
    """A table's column: its field in the rows, its head, and how a value is written."""

    field: str
    head: str
    digits: int | None = None
    text: bool = False


@dataclass(frozen=True)
class Table:
    """Rows in columns. A row's `receipts` become links in a last column."""

    name: str
    rows: Callable[[Reader], Rows]
    columns: tuple[Column, ...]
    says: str
    view: str
    rerun: str = ""
    note: Callable[[Rows], str] = lambda rows: ""


FIGURES: dict[str, Figure] = {}
TABLES: dict[str, Table] = {}


def figure(made: Figure) -> Figure:
    """Make a figure known by its name."""
    FIGURES[made.name] = made
    return made


def table(made: Table) -> Table:
    """Make a table known by its name."""
    TABLES[made.name] = made
    return made


def load_all() -> None:
    """Import every module that makes exhibits."""
    import importlib
    import pkgutil

    from lanelab.publish import figures, tables

    for package in (figures, tables):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


def figure_named(name: str) -> Figure:
    """The figure of that name. Raises `NotFound`."""
    load_all()
    if name not in FIGURES:
        raise NotFound("figure", name, FIGURES)
    return FIGURES[name]


def table_named(name: str) -> Table:
    """The table of that name. Raises `NotFound`."""
    load_all()
    if name not in TABLES:
        raise NotFound("table", name, TABLES)
    return TABLES[name]


def plain_rows(rows: Rows) -> Rows:
    """Rows as JSON holds them: lists and numbers stay, dates become text."""
    return [{key: _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)
