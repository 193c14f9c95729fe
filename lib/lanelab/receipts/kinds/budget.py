"""Rows of a residency budget: what a placement of the experts left for the KV cache and the host."""

from __future__ import annotations

from typing import Literal

from lanelab.receipts.kinds import Row, measured_in, register


class Budget(Row):
    """One placement as it was engaged in one boot; see DESIGN's words for `placement`."""

    placement: Literal["layers", "two-bank", "stitched"]
    hot_gib: float | None = measured_in("GiB", None, says="weights of the hot cells, scales not counted")
    hot_cells: int | None = measured_in("cells", None)
    cells: int | None = measured_in("cells", None)
    kv_gib: float | None = measured_in("GiB", None)
    kv_tokens: int | None = measured_in("tokens", None)
    max_model_len: int | None = measured_in("tokens", None)
    hbm_free_gib: float | None = measured_in("GiB", None)
    host_avail_gib: float | None = measured_in("GiB", None)
    train_coverage: float | None = measured_in(
        "1", None, says="share of the ranking's own traffic that the hot cells serve"
    )
    decode_tok_s: float | None = measured_in("tok/s", None, says="one stream at an 11.5K prompt")


register("budget", 1, Budget, "what each hot budget left for KV and host, and the speed it gave")
