"""How a number is written: rounding, separators, units and the conversions that are allowed.

Rounding is half to even on the shortest decimal form of the value, so that 2.5 becomes 2 and 0.125
with two digits 0.12 on every machine.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

from lanelab.errors import LabError

# (from, to): divisor. The only conversions there are; anything else is a mistake in a facts.yaml.
_DIVISORS: dict[tuple[str, str], int | float] = {
    ("B", "KB"): 10**3, ("B", "MB"): 10**6, ("B", "GB"): 10**9, ("B", "TB"): 10**12,
    ("B", "KiB"): 2**10, ("B", "MiB"): 2**20, ("B", "GiB"): 2**30, ("B", "TiB"): 2**40,
    ("MiB", "GiB"): 2**10, ("GiB", "TiB"): 2**10,
    ("s", "min"): 60, ("s", "h"): 3600, ("s", "ms"): 1e-3, ("s", "µs"): 1e-6, ("ms", "s"): 1000,
    ("1", "%"): 1e-2, ("%", "1"): 100,
    ("tokens", "K tokens"): 1000, ("1", "K"): 1000, ("1", "M"): 10**6, ("1", "B"): 10**9,
}  # fmt: skip


class NoConversion(LabError):
    """No conversion between two units is known. Data: `have`, `want`."""


def convert(value: float, have: str, want: str) -> float:
    """A value in another unit. Raises `NoConversion`."""
    if have == want:
        return value
    divisor = _DIVISORS.get((have, want))
    if divisor is None:
        known = sorted(to for start, to in _DIVISORS if start == have)
        raise NoConversion(
            f"no conversion from {have!r} to {want!r} (valid from {have!r}: {', '.join(known) or 'none'})",
            have=have, want=want,
        )  # fmt: skip
    return value * round(1 / divisor) if divisor < 1 else value / divisor


def rounded(value: float | int, digits: int) -> str:
    """The value with `digits` decimals, half to even, commas between thousands; never `-0`."""
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        result = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
        if result == 0:
            result = abs(result)
        return f"{result:,.{max(digits, 0)}f}"


def default_digits(value: float | int) -> int:
    """Digits that show three significant figures, none for whole numbers."""
    if isinstance(value, int) or value == 0 or not math.isfinite(value):
        return 0
    return max(0, 2 - math.floor(math.log10(abs(value))))


def exact_digits(value: float | int) -> int:
    """Digits that lose nothing of the shortest decimal form."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def number_text(value: float | int | None, digits: int | None = None) -> str:
    """`37.4`, `302,368`, or an en dash for what is not known."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return rounded(value, default_digits(value) if digits is None else digits)


def with_unit(text: str, unit: str | None) -> str:
    """`37.4 tok/s`; a pure number (`1`) has no unit to show."""
    return text if unit in (None, "", "1") else f"{text} {unit}"
