"""Rows as a Markdown pipe table: the one form that Quarto, the fallback and JupyterLab all render."""

from __future__ import annotations

from typing import Any

from lanelab.publish.exhibit import Column, Table
from lanelab.publish.provenance import escaped, receipt_link
from lanelab.publish.quantity import number_text
from lanelab.publish.summary import Rows


def pipe_table(made: Table, rows: Rows, *, campaign: str, site: bool = True) -> str:
    """The table with numbers to the right and, in the last column, links to the receipts of each row."""
    columns = [column for column in made.columns if _used(column, rows)]
    linked = any(row.get("receipts") for row in rows)
    head = [column.head for column in columns] + (["receipt"] if linked else [])
    rule = [":--" if column.text else "--:" for column in columns] + ([":--"] if linked else [])
    lines = [_line(head), _line(rule)]
    for row in rows:
        cells = [_cell(row.get(column.field), column) for column in columns]
        lines.append(_line(cells + ([_receipts(row, campaign, site)] if linked else [])))
    return "\n".join(lines)


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
