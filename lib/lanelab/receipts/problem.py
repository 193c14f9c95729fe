"""One finding of a verification."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Severity = Literal["error", "note"]


@dataclass(frozen=True)
class Problem:
    """One finding. `what` is its class, a word for programs; notes do not fail a verification."""

    path: Path
    what: str
    message: str
    severity: Severity = "error"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
