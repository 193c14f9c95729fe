"""A page's source: front matter, body, and which of its lines are code.

Both the pre-processor and the gate read pages through this module; `expect.py` deliberately does
not, so that a mistake here cannot hide from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lanelab.errors import BadFile

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass(frozen=True)
class Page:
    """One source page. `first_line` is the file's line that `body` begins on, counted from one."""

    path: Path
    front: dict[str, Any]
    body: str
    first_line: int

    @property
    def draft(self) -> bool:
        """Whether the page says that it is a draft."""
        return self.front.get("draft") is True


def read_page(path: Path) -> Page:
    """Read a .qmd or .md page. Raises `BadFile` when its front matter is no YAML mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(path, f"cannot be read as UTF-8 text: {error}") from error
    return parse_page(path, text)


def parse_page(path: Path, text: str) -> Page:
    """Split a page's text. Raises `BadFile`."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return Page(path, {}, text, 1)
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() in ("---", "..."):
            try:
                front = yaml.safe_load("\n".join(lines[1 : number - 1])) or {}
            except yaml.YAMLError as error:
                mark = getattr(error, "problem_mark", None)
                why = getattr(error, "problem", None) or "a mistake"
                raise BadFile(path, f"front matter is not YAML: {why}", line=mark.line + 2 if mark else 1) from error
            if not isinstance(front, dict):
                raise BadFile(path, "front matter must be a mapping of fields", line=1)
            return Page(path, front, "\n".join(lines[number:]) + "\n", number + 1)
    raise BadFile(path, "front matter is never closed by a line of ---", line=1)


def lines_outside_code(body: str) -> Iterator[tuple[int, str, bool]]:
    """Every line as (index from zero, text, whether it is outside fenced code); fences count as code."""
    fence = ""
    for index, line in enumerate(body.splitlines()):
        match = FENCE.match(line)
        if fence:
            closes = match and match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2].strip()
            yield index, line, False
            if closes:
                fence = ""
        elif match:
            fence = match[1]
            yield index, line, False
        else:
            yield index, line, True


def pieces(line: str) -> Iterator[tuple[str, bool]]:
    """A line in pieces: (text, whether it is prose); inline code is not."""
    at = 0
    for match in CODE_SPAN.finditer(line):
        if match.start() > at:
            yield line[at : match.start()], True
        yield match[0], False
        at = match.end()
    if at < len(line):
        yield line[at:], True


def source_pages(source: Path) -> list[Path]:
    """The pages of a project, in order: .qmd and .md that Quarto would render."""
    found = [path for pattern in ("*.qmd", "*.md") for path in source.rglob(pattern)]
    return sorted(path for path in found if not _left_out(path.relative_to(source)))


def _left_out(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts) or path.stem.lower() == "readme"
