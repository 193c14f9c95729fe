"""One value has one spelling, and the spelling gives the value back."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanelab.receipts.canonical import NotCanonical, canonical_bytes, parse_json

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_reading_and_writing_again_gives_the_same_bytes(value: object) -> None:
    content = canonical_bytes(value)
    assert canonical_bytes(parse_json(content)) == content


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # RFC 8785, appendix B and section 3.2.3
        (1e21, b"1e+21"), (1e16, b"10000000000000000"), (1e-7, b"1e-7"), (0.000001, b"0.000001"), (-0.0, b"0"),
        (4.5, b"4.5"), (333333333.33333329, b"333333333.3333333"), (5e-324, b"5e-324"), (2.0, b"2"),
        ({"\u20ac": 1, "\r": 2, "1": 3, "\U0001f600": 4, "\ufb33": 5, "\u0080": 6, "\u00f6": 7},
         '{"\\r":2,"1":3,"\u0080":6,"\u00f6":7,"\u20ac":1,"\U0001f600":4,"\ufb33":5}'.encode()),
        (math.nan, b"null"), ([math.inf, -math.inf], b"[null,null]"),
    ],
)  # fmt: skip
def test_known_spellings(value: object, expected: bytes) -> None:
    assert canonical_bytes(value) == expected


@pytest.mark.parametrize("value", [2**53, {"a": {1, 2}}, {1: 2}, "\ud800", [b"x"]])
def test_what_has_no_spelling_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical_bytes(value)
    assert "\n" not in str(refused.value)


def test_deep_nesting_is_refused_not_a_crash() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises((NotCanonical, RecursionError)):
        canonical_bytes(value)


def test_numbers_that_only_json_allows() -> None:
    assert parse_json(b"10000000000000000") == 1e16
    assert isinstance(parse_json(b"9007199254740991"), int)
    assert parse_json(b"1" * 400 + b"") == math.inf
    for text in (b"NaN", b"Infinity", b"-Infinity"):
        with pytest.raises(ValueError, match="not JSON"):
            parse_json(text)
    assert json.loads(canonical_bytes({"a": 1.5})) == {"a": 1.5}
