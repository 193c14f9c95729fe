"""Receipts as rows: the one way that facts, tables and figures read a campaign.

A reader opens the SQL views of one campaign folder. On the site it reads public receipts only; in an
open notebook it also shows those of the run that is being made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lanelab.receipts import read_receipt, views
from lanelab.receipts.kinds import ENVELOPE, Kind, load_all
from lanelab.receipts.views import BadQuery

_ENVELOPE_ORDER = 'ORDER BY "started", "receipt", "row"'
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class Reader:
    """Rows of one campaign's receipts, by kind or by SQL."""

    def __init__(self, campaign_dir: Path, *, current_run: str | None = None, public_only: bool = True) -> None:
        self.campaign_dir = campaign_dir
        self.campaign = campaign_dir.name
        self.public_only = public_only
        self.current_run = current_run
        self._busy_cores: dict[str, float | None] = {}

    @cached_property
    def connection(self) -> Any:
        """The DuckDB connection, opened at the first question."""
        return views.open([self.campaign_dir], self.current_run, private=not self.public_only)

    def rows(self, kind_name: str, *, everything: bool = False) -> list[dict[str, Any]]:
        """Rows of `<kind>` (or `<kind>_all`) in the order they were made; empty for an unused kind."""
        found = load_all().get(kind_name)
        if found is None or not (self.campaign_dir / "receipts" / kind_name).is_dir():
            return []
        view = f"{found.view}_all" if everything else found.view
        return self.select(f'SELECT * FROM "{view}" {_ENVELOPE_ORDER}')  # noqa: S608 (a registered kind)

    def select(self, query: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The rows of one SELECT; `values` fill its `?`. Raises `BadQuery`."""
        found = views.answer(self.connection, query, values)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def others_busy_cores(self, receipts: Sequence[str], kind_name: str) -> float | None:
        """The most cores that processes of neither lane nor client kept busy while these receipts were measured.

        None where nobody looked. Raises `BadFile`.
        """
        found = [self._busy(kind_name, name) for name in receipts]
        return max((cores for cores in found if cores is not None), default=None)

    def _busy(self, kind_name: str, receipt: str) -> float | None:
        if receipt not in self._busy_cores:
            path = self.campaign_dir / "receipts" / kind_name / f"{receipt}.json"
            cores = read_receipt(path).labels.evidence.get("others_busy_cores_max")
            self._busy_cores[receipt] = float(cores) if isinstance(cores, (int, float)) else None
        return self._busy_cores[receipt]

    def views_in(self, query: str) -> list[str]:
        """The kinds' views that a query names."""
        known = {name for kind in load_all().values() for name in (kind.view, f"{kind.view}_all")}
        return sorted(known & set(_WORD.findall(query)))


def columns_of(kind: Kind) -> list[str]:
    """Names that a fact may read or filter on: the row's fields and the receipt's own."""
    return sorted({*kind.row.model_fields, *ENVELOPE})


def quoted(name: str) -> str:
    """A column name for SQL. Raises `BadQuery` for anything but a plain name."""
    if not _PLAIN.match(name):
        raise BadQuery(f"{name!r} is not a column name", query=name)
    return f'"{name}"'


__all__ = ["BadQuery", "Reader", "columns_of", "quoted"]
