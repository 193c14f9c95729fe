"""The answer to a query: as plain JSON values for programs, as a table for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Table:
    """An answer: column names, their SQL types, rows as Python values."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    rows_left_out: int = 0
    cells_cut: int = 0

    def to_data(self) -> dict[str, Any]:
        """Plain JSON values: times as text with a Z; of columns of one name the later get a number."""
        names: list[str] = []
        for name in self.columns:
            again = names.count(name) or sum(known.rpartition(":")[0] == name for known in names)
            names.append(f"{name}:{again}" if name in names else name)
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in self.rows]
        data = {"columns": names, "types": list(self.types), "rows": rows, "count": len(rows)}
        left = {"rows_left_out": self.rows_left_out, "cells_cut": self.cells_cut}
        return data | {name: count for name, count in left.items() if count}

    def to_text(self, width: int | None = None) -> str:
        """A table for people: numbers to the right, one line a row; with a `width`, cut to that many characters."""
        cells = [[_cell(value) for value in row] for row in self.rows]
        widths = [max([len(name), *(len(row[at]) for row in cells)]) for at, name in enumerate(self.columns)]
        if width is not None:
            widths = _fitted(widths, width)
        right = [any(isinstance(row[at], (int, float)) for row in self.rows) for at in range(len(self.columns))]
        lines = [self.columns, ["─" * width for width in widths], *cells]
        shown = [
            "  ".join(
                _cut(text, wide).rjust(wide) if is_right else _cut(text, wide).ljust(wide)
                for text, wide, is_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        ]
        if width is not None:
            shown = [_cut(line, width) for line in shown]
        count = f"{len(cells)} row{'' if len(cells) == 1 else 's'}"
        count += f", {self.rows_left_out:,} more left out" if self.rows_left_out else ""
        count += f", {self.cells_cut:,} long cells cut" if self.cells_cut else ""
        return "\n".join([*shown, f"({count})"])


def _fitted(widths: list[int], width: int) -> list[int]:
    """Column widths that fit into a line: the widest columns give way first, none below 4 characters."""
    room = width - 2 * (len(widths) - 1)
    if sum(widths) <= room:
        return widths
    limit = max(widths, default=0)
    while limit > 4 and sum(min(wide, limit) for wide in widths) > room:
        limit -= 1
    return [min(wide, limit) for wide in widths]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def plain(value: Any) -> Any:
    """A value of an answer as JSON can hold it: times with a Z, decimals as numbers, bytes as hex."""
    if isinstance(value, datetime):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.1f}"
    if isinstance(value, (dict, list)):
        return json.dumps(plain(value), ensure_ascii=False)
    return " ".join(str(plain(value)).split())
