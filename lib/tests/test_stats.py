"""Known answers and properties of the statistics."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab import stats

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_known_quantiles() -> None:
    assert stats.quantile([1, 2, 3, 4], 0.25) == 1.75
    assert stats.quantile([10.0], 0.9) == 10.0
    assert stats.quantile([3, 1, 2], 0.5) == 2
    assert stats.quantile([1, 2, 3, 4, 5], 1.0) == 5


@given(NUMBERS)
def test_median_is_the_standard_librarys(values: list[float]) -> None:
    assert stats.median(values) == pytest.approx(statistics.median(values))


@given(NUMBERS, st.floats(0, 1))
def test_a_quantile_lies_between_the_extremes_and_ignores_order(values: list[float], q: float) -> None:
    found = stats.quantile(values, q)
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6
    assert stats.quantile(values[::-1], q) == found


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_quartiles_are_the_standard_librarys(values: list[float]) -> None:
    spread = stats.spread(values)
    assert spread is not None
    assert [spread.q1, spread.median, spread.q3] == pytest.approx(statistics.quantiles(values, n=4, method="inclusive"))
    assert spread.iqr == pytest.approx(spread.q3 - spread.q1)


def test_nothing_and_gaps() -> None:
    with pytest.raises(stats.NoValues):
        stats.median([])
    assert stats.spread([None, float("nan")]) is None
    spread = stats.spread([None, 2.0, 4.0])
    assert spread is not None and (spread.n, spread.median) == (2, 3.0)


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    draw = random.Random(4)
    covered = 0
    for trial in range(150):
        found = stats.median_interval([draw.gauss(10, 2) for _ in range(25)], resamples=300, seed=trial)
        assert found is not None
        covered += found[0] <= 10 <= found[1]
    assert 0.87 <= covered / 150 <= 1.0
    assert stats.median_interval([1.0]) is None
    assert stats.median_interval([1, 2, 3]) == stats.median_interval([1, 2, 3])


def test_the_knee_of_a_curve_that_saturates() -> None:
    curve = [(1, 10.0), (1, 12.0), (2, 20.0), (4, 38.5), (8, 40.0), (16, 39.0), (16, None)]
    found = stats.knee(curve)
    assert found is not None
    assert (found.streams, found.best_streams, found.best_tok_s) == (4, 8, 40.0)
    assert stats.knee(curve, share=1.0) == stats.KneePoint(8, 40.0, 8, 40.0, 1.0)
    assert stats.knee([(1, None)]) is None


@given(st.lists(st.tuples(st.integers(1, 32), st.floats(0.1, 1e4)), min_size=1, max_size=40))
def test_no_smaller_level_reaches_the_share(points: list[tuple[int, float]]) -> None:
    found = stats.knee(points)
    assert found is not None and found.streams <= found.best_streams
    for streams in {level for level, _ in points if level < found.streams}:
        assert stats.median([value for level, value in points if level == streams]) < found.share * found.best_tok_s
