"""CSV and JSON beside every figure and table: exactly the rows that are drawn."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lanelab.publish import exhibit
from lanelab.publish.generated import put
from lanelab.publish.reader import Reader
from lanelab.publish.summary import Rows
from lanelab.receipts.canonical import without_nan


def write(site_dir: Path, campaigns: Iterable[Path]) -> list[Path]:
    """Write `data/<campaign>/fig-<name>.csv|json` and `tbl-…` for every exhibit that has rows; returns the paths."""
    exhibit.load_all()
    made: list[Path] = []
    for campaign_dir in campaigns:
        reader = Reader(campaign_dir)
        exhibits: list[tuple[str, exhibit.Figure | exhibit.Table]] = [
            *(("fig", one) for one in exhibit.FIGURES.values()),
            *(("tbl", one) for one in exhibit.TABLES.values()),
        ]
        for prefix, one in exhibits:
            rows = exhibit.plain_rows(one.rows(reader))
            if rows:
                stem = site_dir / "data" / campaign_dir.name / f"{prefix}-{one.name}"
                made.append(put(stem.with_suffix(".csv"), csv_text(rows)))
                made.append(put(stem.with_suffix(".json"), json_text(one.says, rows)))
    return made


def csv_text(rows: Rows) -> str:
    """RFC 4180 with LF; lists are joined by spaces, unknown values are empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_flat(row.get(name)) for name in names])
    return buffer.getvalue()


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    # a cell that starts like a formula would run in a spreadsheet
    return "'" + value if isinstance(value, str) and value[:1] in ("=", "+", "@", "\t") else value


def json_text(says: str, rows: Rows) -> str:
    """An object with what the rows are, and the rows."""
    return json.dumps({"says": says, "rows": without_nan(rows)}, ensure_ascii=False, indent=1) + "\n"
