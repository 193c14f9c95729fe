"""The one line of a server's log that says why it ended.

The last exception of an engine is often only "initialization failed, see above": the cause stands
earlier. `boot read` (a floor up) classifies a log; this only finds a line worth showing.
"""

from __future__ import annotations

import re
from pathlib import Path

TAIL_BYTES = 400_000
_PREFIX = re.compile(r"^\s*(\([\w ]*pid=\d+\)\s*)?((INFO|WARNING|ERROR|CRITICAL)\s+[\d: .-]+(\[[^\]]*\])?\s*)?")
_EXCEPTION = re.compile(r"^[\w.]*(Error|Exception|Interrupt|Exit|NotFound|Failed)\b.*")
_USAGE = re.compile(r"^\S+: error: ")
_NOISE = ("See root cause above", "Found ulimit")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def tail_lines(path: Path, limit: int = 2000) -> list[str]:
    """The last lines, without colours and log prefixes; empty if there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    lines = (_PREFIX.sub("", _COLOUR.sub("", line)).strip() for line in text.splitlines())
    return [line for line in lines if line][-limit:]


def cause(path: Path) -> str:
    """The line that most likely says why the server ended; says so if the log holds nothing."""
    lines = tail_lines(path)
    told = [line for line in lines if not any(noise in line for noise in _NOISE)]
    for line in reversed(told):
        if _EXCEPTION.match(line) or _USAGE.match(line):
            return line[:300]
    return told[-1][:300] if told else "its log is empty"
