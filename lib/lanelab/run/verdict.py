"""How long a run may take, and how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.S)


def plain(text: str) -> str:
    """One line that can be printed: without terminal escapes, control characters and runs of blanks."""
    text = _ESCAPES.sub("", text)
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


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
