"""Rows of a parity check: two captures of one forward pass, compared point by point."""

from __future__ import annotations

from lanelab.receipts.kinds import Row, measured_in, register


class Parity(Row):
    """One point of the model in a candidate, against the same point of a trusted reference."""

    ordinal: int = measured_in("1", says="place in the forward pass, from 0")
    point: str
    layer: int | None = measured_in("1", None)
    candidate: str
    norm: float | None = measured_in("1", None, says="L2 norm in the candidate")
    norm_reference: float | None = measured_in("1", None, says="L2 norm in the reference")
    cosine: float | None = measured_in("1", None, says="cosine of candidate and reference")


register("parity", 1, Parity, "one forward pass against a reference, point by point")
