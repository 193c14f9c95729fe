"""Hot lists: known answers, and what must hold for any counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lanelab.routing import coverage, hot_cells, jaccard, stock_cells
from lanelab.routing.coverage import BadCounts

counts_like = arrays(np.int64, (3, 5), elements=st.integers(0, 1000)).filter(lambda counts: counts.sum() > 0)


def test_known_answer() -> None:
    counts = np.array([[5, 1, 0], [2, 2, 0]])
    hot = hot_cells(counts, 2)
    assert hot.tolist() == [[True, False, False], [True, False, False]]  # the tie of 2 and 2 goes to the lower expert
    assert coverage(hot, counts) == 0.7
    assert coverage(stock_cells((2, 3), 1), counts) == 0.4
    assert jaccard(hot, stock_cells((2, 3), 1)) == 0.25


@given(counts_like, st.integers(0, 15))
def test_no_list_of_that_size_serves_more(counts: np.ndarray, size: int) -> None:
    best = coverage(hot_cells(counts, size), counts)
    other = np.zeros(15, dtype=bool)
    other[np.random.default_rng(size).permutation(15)[:size]] = True
    assert coverage(other.reshape(3, 5), counts) <= best
    if size:
        assert coverage(hot_cells(counts, size - 1), counts) <= best


@given(st.integers(0, 3), st.integers(1, 50))
def test_whole_layers_serve_their_share_whatever_the_traffic(first: int, picks: int) -> None:
    rng = np.random.default_rng(picks)
    counts = np.array([rng.multinomial(picks, np.full(5, 0.2)) for _ in range(3)])  # each layer: the same total
    assert coverage(stock_cells((3, 5), first), counts) == pytest.approx((3 - first) / 3)


def test_bad_shapes_are_named() -> None:
    counts = np.ones((2, 3), dtype=np.int64)
    with pytest.raises(BadCounts, match="7 hot cells"):
        hot_cells(counts, 7)
    with pytest.raises(BadCounts, match="one shape"):
        coverage(np.ones((3, 2), dtype=bool), counts)
    with pytest.raises(BadCounts, match="0 picks"):
        coverage(np.ones((2, 3), dtype=bool), counts * 0)
