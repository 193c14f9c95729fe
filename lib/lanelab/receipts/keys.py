"""The measure key: two measurements with the same key measure the same thing.

It holds workload name and version, parameters, model, machine and the recipe's digest, and never a
boot, a run, a date or a source file, so that a reboot, a changed comment or a new dependency
re-measures nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

from lanelab.receipts.canonical import canonical_bytes
from lanelab.receipts.model import Receipt


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


def key_of(receipt: Receipt, with_model: bool = True) -> tuple[str, dict[str, Any]]:
    """The measure key of a receipt, and its inputs; without the model for a lane that alone knows it."""
    inputs: dict[str, Any] = {
        "version": receipt.source.workload_version or 0,
        "parameters": receipt.parameters,
        "model": receipt.model if with_model else None,
        "machine": receipt.machine,
        "recipe_digest": receipt.recipe.digest if receipt.recipe else None,
    }
    return measure_key(workload=receipt.source.workload or receipt.kind, **inputs), inputs
