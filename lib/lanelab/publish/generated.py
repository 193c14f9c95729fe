"""Writing files that a build makes again: untouched when nothing changed, and no fsync."""

from __future__ import annotations

from pathlib import Path


def put(path: Path, text: str) -> Path:
    """Write the text unless the file holds it already; a half-written file is replaced by the next build."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(content)
        temporary.replace(path)
    return path
