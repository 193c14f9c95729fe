"""Cross-references for the fallback, numbered as Quarto numbers them.

Figures and tables are numbered in the order of the page, each kind by itself. A caption carries a
mark (`mark(label)`) until `number` knows every label; then marks become `Figure 1: ` and each
`@fig-x` becomes a link that reads `Figure 1`. A reference to nothing is printed as Quarto prints it,
`?@fig-x`, and the gate refuses the page.
"""

from __future__ import annotations

import re

from lanelab.publish.site.source import lines_outside_code, pieces

WORDS = {"fig": "Figure", "tbl": "Table", "sec": "Section"}
NBSP = "\u00a0"
_MARK = re.compile("\ue000([\\w-]+)\ue001")
_ID = r"(?:fig|tbl|sec)-[A-Za-z0-9][\w-]*"
_GROUP = re.compile(rf"\[(?P<before>[^\]\[@]*?)(?P<bare>-?)@(?P<label>{_ID})\](?![\(\{{])")
_ALONE = re.compile(rf"(?<![\w@\\?/.])(?P<bare>-?)@(?P<label>{_ID})")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*$")
_SECTION_ID = re.compile(r"\{[^}]*#(sec-[\w-]+)[^}]*\}\s*$")


def mark(label: str) -> str:
    """Where the number of a caption will stand."""
    return f"\ue000{label}\ue001"


def number(text: str, *, number_sections: bool) -> str:
    """Fill in the marks and resolve the references of one page's Markdown."""
    numbers = _floats(text) | (_sections(text) if number_sections else {})
    text = _MARK.sub(lambda found: f"{_name(found[1], numbers)}: ", text)
    out = []
    for _, line, prose in lines_outside_code(text):
        out.append(
            "".join(_resolve(piece, numbers) if is_prose else piece for piece, is_prose in pieces(line))
            if prose
            else line
        )
    return "\n".join(out) + "\n"


def _floats(text: str) -> dict[str, str]:
    counts = {"fig": 0, "tbl": 0}
    numbers: dict[str, str] = {}
    for found in _MARK.finditer(text):
        kind = found[1].split("-", 1)[0]
        if found[1] not in numbers:
            counts[kind] += 1
            numbers[found[1]] = str(counts[kind])
    return numbers


def _sections(text: str) -> dict[str, str]:
    counts = [0] * 7
    top = 0
    numbers: dict[str, str] = {}
    for _, line, prose in lines_outside_code(text):
        heading = _HEADING.match(line) if prose else None
        if not heading or ".unnumbered" in line or "{-}" in line:
            continue
        level = len(heading[1])
        top = top or level
        counts[level] += 1
        counts[level + 1 :] = [0] * (6 - level)
        if section := _SECTION_ID.search(heading[2]):
            numbers[section[1]] = ".".join(str(count) for count in counts[top : level + 1])
    return numbers


def _name(label: str, numbers: dict[str, str]) -> str:
    return f"{WORDS[label.split('-', 1)[0]]}{NBSP}{numbers[label]}"


def _resolve(text: str, numbers: dict[str, str]) -> str:
    text = _GROUP.sub(lambda found: _link(found["label"], found["bare"], found["before"].strip(), numbers), text)
    return _ALONE.sub(lambda found: _link(found["label"], found["bare"], "", numbers), text)


def _link(label: str, bare: str, before: str, numbers: dict[str, str]) -> str:
    if label not in numbers:
        return f"**?\\@{label}**"
    if bare:
        words = numbers[label]
    elif before:
        words = f"{before}{NBSP}{numbers[label]}"
    else:
        words = _name(label, numbers)
    return f"[{words}](#{label}){{.quarto-xref}}"
