"""Rows as a Markdown pipe table: the one form that Quarto, the fallback and JupyterLab all render."""

from __future__ import annotations

from typing import Any

from lanelab.publish.exhibit import Column, Table
from lanelab.publish.provenance import escaped, receipt_link
from lanelab.publish.quantity import number_text
from lanelab.publish.summary import Rows


def pipe_table(made: Table, rows: Rows, *, campaign: str, site: bool = True) -> str:
    """The table with numbers to the right and, in the last column, links to the receipts of each row."""
    same = {column.field for column, _ in common(made, rows)}
    columns = [column for column in made.columns if _used(column, rows) and column.field not in same]
    linked = any(row.get("receipts") for row in rows)
    head = [column.head for column in columns] + (["receipt"] if linked else [])
    rule = [":--" if column.text else "--:" for column in columns] + ([":--"] if linked else [])
    lines = [_line(head), _line(rule)]
    for row in rows:
        cells = [_cell(row.get(column.field), column) for column in columns]
        lines.append(_line(cells + ([_receipts(row, campaign, site)] if linked else [])))
    return "\n".join(lines)


def common(made: Table, rows: Rows) -> list[tuple[Column, str]]:
    """Origin and state where all of several rows agree: said once below the table, not in every row."""
    found = []
    for column in made.columns:
        values = {str(row.get(column.field) or "") for row in rows}
        if column.field in ("origin", "state") and len(rows) > 1 and len(values) == 1 and "" not in values:
            found.append((column, values.pop()))
    return found


def common_note(made: Table, rows: Rows) -> str:
    """`All rows: published; state unknown.`, or nothing."""
    parts = [f"{column.head} {value}" if column.field == "state" else value for column, value in common(made, rows)]
    return f"All rows: {'; '.join(reversed(parts))}." if parts else ""


def _used(column: Column, rows: Rows) -> bool:
    return any(row.get(column.field) not in (None, "") for row in rows)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Any, column: Column) -> str:
    if value is None or value == "":
        return "–" if not column.text else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and not column.text:
        return number_text(value, column.digits)
    text = " ".join(str(value).split())
    return escaped(text)


def _receipts(row: dict[str, Any], campaign: str, site: bool) -> str:
    ids = row.get("receipts") or []
    shown = [receipt_link(campaign, receipt_id, site=site) for receipt_id in ids[:3]]
    return " ".join(shown) + (f" +{len(ids) - 3}" if len(ids) > 3 else "")
