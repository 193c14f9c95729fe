"""Taking a receipt back, in public."""

from lanelab.receipts.kinds import Row, register


class Retraction(Row):
    """One receipt that no longer counts; it stays on disk and in the `_all` views."""

    retracts: str
    reason: str


register("retraction", 1, Retraction, "receipts that no longer count, and why")
