"""Digits in prose: a number that is no fact has no receipt, so it may not stand in a text.

`loose_digits` reads Markdown (or plain text) and returns every digit that is neither a fact nor one
of the exemptions: code, links' targets and attributes, shortcodes, facts (`{.fact}` links), dates,
versions, issue and RFC numbers, names such as `GB300` or `MiMo-V2.6-Pro`, list markers, labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?|"
    "Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
# What is taken out before digits are looked for, in this order; each match keeps its length and lines.
_REMOVED = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"\A---\n.*?\n---[ \t]*(?:\n|\Z)", re.S),  # front matter
        (r"<!--.*?-->", re.S),
        (r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=fence)[ \t]*$", re.S | re.M),
        (r"^(?::::+)[^\n]*$", re.M),  # div fences
        (r"(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)", re.S),
        (r"\{\{<.*?>\}\}", re.S),  # shortcodes
        (r"\[(?:[^\[\]]|\[[^\]]*\])*\](?:\([^)\s]*(?:\s+\"[^\"]*\")?\))?\{[^}]*\.fact\b[^}]*\}", re.S),  # facts
        (r"<span\b[^>]*\bclass=\"[^\"]*\bfact\b[^\"]*\"[^>]*>.*?</span>", re.S),
        (r"<[A-Za-z/][^>]*>", re.S),  # tags and their attributes
        (r"(?<=\])\([^)\s]*(?:\s+\"[^\"]*\")?\)", re.S),  # link targets and titles
        (r"(?<=\])\[[^\]]*\]", 0),  # reference links
        (r"^\[[^\]]+\]:[^\n]*$", re.M),  # their definitions
        (r"\[\^[^\]]+\]", 0),  # footnotes
        (r"\{[#.][^}\n]*\}", 0),  # attributes
        (r"@[A-Za-z]+-[\w-]+", 0),  # cross-references
        (r"\bhttps?://[^\s)>\]]+", 0),
        (r"\bsha256:[0-9a-f…]+", 0),
        (r"^[ \t>]*\d{1,3}[.)](?=\s)", re.M),  # list markers
        (r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?Z?)?\b", 0),
        (rf"\b(?:\d{{1,2}}\s+)?{_MONTH}\s+(?:\d{{1,2}},\s+)?\d{{4}}\b", 0),
        (rf"\b\d{{1,2}}\s+{_MONTH}\b", 0),
        (r"(?<![\w/])(?:PR\s*|issue\s*|issues\s*)?#\d+\b", 0),
        (r"\b(?:PRs?|[Ii]ssues?|RFC|CVE|ISO|PEP)[ -]\d[\d-]*\b", 0),
        (
            r"\b(?:Python|CUDA|cuDNN|NCCL|vLLM|SGLang|PyTorch|[Tt]orch|[Tt]ransformers|Triton|Quarto|Ubuntu|Debian|"
            r"Linux|PCIe|NVLink|DuckDB|[Pp]apermill|[Dd]river|[Vv]ersion|[Rr]elease)\s+v?\d[\w.+-]*\b",
            0,
        ),
        (r"\bv\d+(?:\.\d+)*[a-z]?\d*(?:-[\w.]+)*\b", 0),  # v24, v19b, v1.2.3
        (r"\b\d+\.\d+\.\d+[\w.+-]*\b", 0),  # 2.11.0+cu130
        (r"\b\d\d-[a-z]+(?:-[a-z]+)*\b", 0),  # a step: 04-decode
        (
            r"\b(?:bf|fp|tf|int|uint|sha|utf-|cu|sm_?|mx|nv|x|aarch|arm|amd)\d+(?:[-_]\d+)?\b(?![.,]\d)",
            0,
        ),  # bf16, x86-64
        # a name: an upper-case letter before its first digit (GB300, C1, MiMo-V2.6-Pro, E2M1)
        (r"\b(?=[A-Za-z_-]*[A-Z])[A-Za-z][A-Za-z_-]*\d[\w]*(?:[.-]\w+)*\b", 0),
    )
)
_X_NUMBER = re.compile(r"\bx\d+\b(?!-64)")
_DIGITS = re.compile(r"[^\s\d]*\d\S*")


@dataclass(frozen=True)
class Finding:
    """A digit that is no fact: where it stands and the word that holds it."""

    line: int
    column: int
    text: str
    message: str = "a digit in prose that is no fact: take it from facts.yaml, or put code in backticks"


def loose_digits(markdown_text: str) -> list[Finding]:
    """Digits in prose that are no fact and not exempt, in order; lines and columns from 1."""
    text = markdown_text.replace("\r\n", "\n")
    for pattern in _REMOVED:
        text = pattern.sub(_blanked, text)
    found = []
    for match in _DIGITS.finditer(text):
        start = match.start()
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        found.append(Finding(line, column, match[0].strip(".,;:()*_\"'")))
    return found


def _blanked(match: re.Match[str]) -> str:
    return match[0] if _X_NUMBER.fullmatch(match[0]) and match[0] not in ("x86", "x64") else _blank(match[0])


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
