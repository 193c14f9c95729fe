"""Canonical bytes: one spelling for one value, so that any changed byte shows.

RFC 8785 (JSON Canonicalization Scheme) with one addition: NaN and the infinities, which JSON does
not have, are written as null. A digest guards against accidents, not against forgery: whoever can
change a receipt can also compute a new digest.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import rfc8785

from lanelab.errors import LabError

_EXACT = 2**53  # beyond it an integer of JSON is a double to everybody else


class NotCanonical(LabError):
    """A value has no canonical form (an integer beyond 2**53, a key that is not text, a set …)."""


def without_nan(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None; containers are copied."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return value


def canonical_bytes(value: Any) -> bytes:
    """The value's RFC 8785 bytes, NaN as null, without a final newline. Raises `NotCanonical`."""
    try:
        return rfc8785.dumps(without_nan(value))
    except rfc8785.CanonicalizationError as error:
        raise NotCanonical(f"no canonical JSON for this value: {error}") from error
    except RecursionError as error:
        raise NotCanonical("no canonical JSON for this value: it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise NotCanonical("no canonical JSON for this value: a text holds half a surrogate pair") from error


def parse_json(content: bytes) -> Any:
    """Canonical bytes back as a value, so that `canonical_bytes` gives the same bytes again.

    A double of 2**53 or more is spelt without a point (1e16 as 10000000000000000), so such a number
    is read as the double that it is. Raises `ValueError`, `RecursionError`.
    """
    return json.loads(content.decode("utf-8"), parse_int=_number, parse_constant=_refuse)


def _number(text: str) -> int | float:
    if len(text) < 16:
        return int(text)
    return float(text) if len(text) > 20 or abs(int(text)) >= _EXACT else int(text)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def digest_of(value: dict[str, Any]) -> str:
    """`sha256:` and the hex digest of the canonical bytes of a receipt without its `digest`."""
    body = {key: item for key, item in value.items() if key != "digest"}
    return "sha256:" + hashlib.sha256(canonical_bytes(body)).hexdigest()
