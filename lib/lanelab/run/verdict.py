"""How long a run may take, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Limits:
    """Seconds; None is no limit."""

    start_s: float = 60.0
    cell_s: float | None = None
    run_s: float | None = None


@dataclass
class Verdict:
    """How the execution ended. `cause` is the status's finer word, `why` the line for people."""

    status: str
    cause: str | None = None
    why: str | None = None
