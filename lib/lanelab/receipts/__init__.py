"""The record: receipts, their kinds, their store, and questions to them.

`Receipt` is one measurement, `Store` the append-only files of a campaign, `Journal` the rows of a
workload that still runs. Everything else in Lane Lab stands on this floor.
"""

from lanelab.receipts.journal import Journal
from lanelab.receipts.keys import key_of, measure_key
from lanelab.receipts.kinds import KINDS, Row, kind, measured_in, register
from lanelab.receipts.model import (
    Environment,
    Labels,
    Receipt,
    RecipeRef,
    RowsFile,
    Source,
    lane_label,
    new_id,
    utc_text,
)
from lanelab.receipts.store import Store, read_receipt

__all__ = [
    "KINDS", "Environment", "Journal", "Labels", "Receipt", "RecipeRef", "Row", "RowsFile", "Source",
    "Store", "key_of", "kind", "lane_label", "measure_key", "measured_in", "new_id", "read_receipt", "register", "utc_text",
]  # fmt: skip
