"""Medians, quantiles and intervals, each with its formula.

`quantile` interpolates linearly between order statistics: position q·(n − 1) (Hyndman and Fan's
type 7, the default of R and numpy). The interval of a median is the percentile bootstrap: resample
with replacement, take the medians' quantiles. With few values an interval is wide or says nothing,
so n always stands beside it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lanelab.errors import LabError

KNEE_SHARE = 0.95


class NoValues(LabError):
    """There is nothing to take a statistic of."""


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile (0 ≤ q ≤ 1), interpolated linearly. Raises `NoValues`."""
    if not values:
        raise NoValues("no values to take a quantile of")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"a quantile is between 0 and 1, not {q}")
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    share = position - low
    return ordered[low] * (1.0 - share) + ordered[high] * share if share else ordered[low]


def median(values: Sequence[float]) -> float:
    """The 0.5-quantile. Raises `NoValues`."""
    return quantile(values, 0.5)


@dataclass(frozen=True)
class Spread:
    """How values lie: n, smallest, quartiles, largest."""

    n: int
    min: float
    q1: float
    median: float
    q3: float
    max: float

    @property
    def iqr(self) -> float:
        """q3 − q1, the width of the middle half."""
        return self.q3 - self.q1


def spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the values that are there; None if there are none."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    return Spread(
        len(known), min(known), quantile(known, 0.25), median(known), quantile(known, 0.75), max(known)
    )  # fmt: skip


def median_interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float] | None:
    """The percentile bootstrap interval of the median; None for fewer than two values.

    The seed is fixed, so that the same receipts print the same interval.
    """
    if len(values) < 2:
        return None
    draw = random.Random(seed)
    medians = [median(draw.choices(values, k=len(values))) for _ in range(resamples)]
    tail = (1.0 - level) / 2.0
    return quantile(medians, tail), quantile(medians, 1.0 - tail)


@dataclass(frozen=True)
class KneePoint:
    """The knee: `streams` and its median aggregate; `best_…` is where the aggregate is highest."""

    streams: int
    aggregate_tok_s: float
    best_streams: int
    best_tok_s: float
    share: float


def knee(points: Iterable[tuple[int, float | None]], *, share: float = KNEE_SHARE) -> KneePoint | None:
    """The smallest concurrency whose median aggregate reaches `share` of the best median.

    `points` are (streams, aggregate tok/s), one a repetition; points without a figure do not count.
    More streams than the knee bring less than 1 − share, and cost every stream latency.
    """
    levels: dict[int, list[float]] = {}
    for streams, aggregate in points:
        if aggregate is not None and math.isfinite(aggregate):
            levels.setdefault(streams, []).append(aggregate)
    if not levels:
        return None
    medians = {streams: median(values) for streams, values in sorted(levels.items())}
    best_streams = max(medians, key=lambda streams: (medians[streams], -streams))
    best = medians[best_streams]
    at = min(streams for streams, value in medians.items() if value >= share * best)
    return KneePoint(at, medians[at], best_streams, best, share)
