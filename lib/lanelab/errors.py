"""What can go wrong, one class a failure.

Every error a user can cause derives from `LabError`: its message is one line that names the
offending value and what would be valid, and its data stand on the exception, so that `--json`
can print them. The command line prints the message and exits with `exit_code`; anything that is
not a `LabError` is a defect of Lane Lab.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class LabError(Exception):
    """Base of all errors that a user can cause or repair.

    Keyword arguments become attributes and are kept in `data` for machine-readable output.
    """

    exit_code = 1

    def __init__(self, message: str, **data: object) -> None:
        super().__init__(" ".join(message.split()))
        self.data = data
        for name, value in data.items():
            setattr(self, name, value)


class UsageError(LabError):
    """The command was called wrongly (unknown option, bad value)."""

    exit_code = 2


class NotFound(LabError):
    """A named thing does not exist. Data: `what`, `name`, `valid`."""

    def __init__(self, what: str, name: str, valid: Iterable[str] = (), hint: str = "") -> None:
        names = sorted(valid)
        near = difflib.get_close_matches(name, names, n=1)
        message = f"unknown {what} {name!r}"
        if near:
            message += f"; did you mean {near[0]!r}?"
        message += f" (valid: {', '.join(names)})" if names else f" (there is no {what} yet)"
        if hint:
            message += f"; {hint}"
        super().__init__(message, what=what, name=name, valid=names)


class BadFile(LabError):
    """A file of ours cannot be read as what it should be. Data: `path`, `line`, `field`."""

    def __init__(self, path: Path | str, why: str, *, line: int | None = None, field: str | None = None) -> None:
        where = str(path) + (f":{line}" if line else "") + (f" (field {field})" if field else "")
        super().__init__(f"{where}: {why}", path=str(path), line=line, field=field)


class NoSpace(LabError):
    """The disk is full or the file system refuses writes. Data: `path`."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(f"cannot write {path}: {why}; what was written before is untouched", path=str(path))
