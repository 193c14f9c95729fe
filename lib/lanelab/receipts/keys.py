"""The measure key: two measurements with the same key measure the same thing.

It holds workload name and version, parameters, model, machine and the recipe's digest, and never a
boot, a run, a date or a source file, so that a reboot, a changed comment or a new dependency
re-measures nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

from lanelab.receipts.canonical import canonical_bytes


def measure_key(
    *,
    workload: str,
    version: int,
    parameters: dict[str, Any],
    model: str | None,
    machine: str | None,
    recipe_digest: str | None,
) -> str:
    """Hex digest of what is measured; `parameters` are those that change the figures."""
    parts = {
        "workload": workload,
        "version": version,
        "parameters": parameters,
        "model": model,
        "machine": machine,
        "recipe": recipe_digest,
    }
    return hashlib.sha256(canonical_bytes(parts)).hexdigest()
