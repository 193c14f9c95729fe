"""Which cells to keep hot, and what share of the traffic they then serve.

A cell is one expert of one layer. Counts are router picks, shaped (layers, experts). Every token picks the same
number of experts in every layer, so all layers have the same total and cells of different layers compare directly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanelab.errors import LabError

Counts = npt.NDArray[np.int64]
Cells = npt.NDArray[np.bool_]


class BadCounts(LabError):
    """Counts or hot cells of the wrong shape or size. Data: `shape`."""


def hot_cells(counts: Counts, how_many: int) -> Cells:
    """The `how_many` cells with the most picks, as a mask (layers, experts).

    Ties go to the lower layer, then the lower expert, so that the same counts always give the same list.
    Raises `BadCounts` if there are fewer cells than that.
    """
    if counts.ndim != 2 or not 0 <= how_many <= counts.size:
        raise BadCounts(
            f"{how_many} hot cells of counts shaped {counts.shape}: valid are 0 to the number of cells",
            shape=list(counts.shape),
        )
    best = np.argsort(-counts.ravel(), kind="stable")[:how_many]
    mask = np.zeros(counts.size, dtype=np.bool_)
    mask[best] = True
    return mask.reshape(counts.shape)


def stock_cells(shape: tuple[int, int], first_hot_layer: int) -> Cells:
    """Whole layers from row `first_hot_layer` on, as a mask (layers, experts): the placement without a hot list."""
    mask = np.zeros(shape, dtype=np.bool_)
    mask[first_hot_layer:] = True
    return mask


def coverage(hot: Cells, counts: Counts) -> float:
    """The share of all picks that fall on hot cells, 0 to 1. Raises `BadCounts` if there are no picks."""
    if hot.shape != counts.shape or counts.sum() <= 0:
        raise BadCounts(
            f"hot cells shaped {hot.shape} and counts shaped {counts.shape} with {int(counts.sum())} picks: "
            "both must have one shape, with at least one pick",
            shape=list(counts.shape),
        )
    return float(counts[hot].sum() / counts.sum())


def jaccard(a: Cells, b: Cells) -> float:
    """Cells in both over cells in either; 1 for two empty lists."""
    either = int(np.logical_or(a, b).sum())
    return float(np.logical_and(a, b).sum() / either) if either else 1.0
