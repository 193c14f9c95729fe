"""Canonical bytes: one spelling for one value, so that any changed byte shows.

RFC 8785 (JSON Canonicalization Scheme) with one addition: NaN and the infinities, which JSON does
not have, are written as null. A digest guards against accidents, not against forgery: whoever can
change a receipt can also compute a new digest.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import rfc8785

from lanelab.errors import LabError


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


def digest_of(value: dict[str, Any]) -> str:
    """`sha256:` and the hex digest of the canonical bytes of a receipt without its `digest`."""
    body = {key: item for key, item in value.items() if key != "digest"}
    return "sha256:" + hashlib.sha256(canonical_bytes(body)).hexdigest()
