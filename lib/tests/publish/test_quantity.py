"""How numbers are written."""

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab.publish.quantity import NoConversion, convert, number_text, rounded, with_unit


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (2.5, 0, "2"), (3.5, 0, "4"), (0.125, 2, "0.12"), (0.375, 2, "0.38"), (1.005, 2, "1.00"), (302368, 0, "302,368"),
        (-0.04, 1, "0.0"), (37.35, 1, "37.4"), (37.45, 1, "37.4"), (1e21, 0, "1,000,000,000,000,000,000,000"), (1e-9, 3, "0.000"),
    ],
)  # fmt: skip
def test_half_goes_to_even_on_the_decimal_that_is_shown(value: float, digits: int, text: str) -> None:
    assert rounded(value, digits) == text


@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(0, 12))
def test_rounding_is_within_half_a_last_digit_and_even_on_ties(value: float, digits: int) -> None:
    text = rounded(value, digits)
    shown, exact, step = Decimal(text.replace(",", "")), Decimal(repr(value)), Decimal(1).scaleb(-digits)
    assert abs(shown - exact) * 2 <= step
    if abs(shown - exact) * 2 == step and shown != 0:
        assert (abs(shown) / step) % 2 == 0
    assert not text.startswith("-0.") or any(letter in text for letter in "123456789")


@given(st.integers(-(10**15), 10**15))
def test_separators_group_by_three_and_lose_nothing(value: int) -> None:
    text = number_text(value)
    assert int(text.replace(",", "")) == value
    assert all(len(part) == 3 for part in text.lstrip("-").split(",")[1:])


@given(st.decimals(min_value=-1000, max_value=1000, places=4), st.integers(0, 4))
def test_agrees_with_decimal(value: Decimal, digits: int) -> None:
    expected = value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
    assert Decimal(rounded(float(value), digits).replace(",", "")) == expected


def test_unknown_is_a_dash_and_pure_numbers_have_no_unit() -> None:
    assert number_text(None) == number_text(float("nan")) == "–"
    assert with_unit("7", "1") == with_unit("7", "") == "7"
    assert with_unit("37.4", "tok/s") == "37.4 tok/s"


def test_conversions_are_exact_and_listed() -> None:
    assert convert(573_492_132_336, "B", "GiB") == pytest.approx(534.1061, abs=1e-4)
    assert convert(90.0, "s", "min") == 1.5
    assert convert(0.304, "1", "%") == pytest.approx(30.4)
    assert convert(0.25, "s", "ms") == 250.0
    with pytest.raises(NoConversion, match=r"no conversion from 's' to 'GiB' \(valid from 's': h, min, ms, µs\)"):
        convert(1.0, "s", "GiB")
