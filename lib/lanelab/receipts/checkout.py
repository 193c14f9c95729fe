"""The checkout that a receipt was made from: commit, and whether files differ from it."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git_state(folder: Path) -> tuple[str | None, bool | None]:
    """The commit that is checked out and whether tracked files differ from it; (None, None) outside git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changed is None else bool(changed)


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],  # noqa: S607 the user's own git
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
