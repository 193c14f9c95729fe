"""What a built page must say, derived from the sources by a parser of its own.

Neither renderer nor the pre-processor is trusted: this reads the same sources through another Markdown
parser (mistune), fills in facts, embeds and numbers in its own way, and says which headings, captions
and words the built page must hold, in order. Both renderers are held to it. White space, quotes and
dashes are not compared; everything else is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any

import mistune
import yaml

from lanelab.publish.site.built import BuiltPage, squeezed

_SHORTCODE = re.compile(r"(?<!\{)\{\{<\s*(\w+)\s+(.*?)\s*>\}\}")
_ATTRIBUTES = re.compile(r"(?<=[\])])\{[^{}\n]*\}")
_SPAN = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\](?=\{[.#][^{}]*\})")
_KINDS = {"fig": "Figure", "tbl": "Table", "sec": "Section"}
_REFERENCE = re.compile(
    r"(\[(?P<before>[^\[\]@]*?))?(?<![\w\\?/.])(?P<bare>-?)@(?P<label>(?:fig|tbl|sec)-[A-Za-z0-9][\w-]*)(?(1)\])"
)
_NOTE = re.compile(
    r"^\[\^(?P<name>[^\]\s]+)\]:[ \t]*(?P<text>.*(?:\n(?!\[\^)(?=.*\S).*)*(?:\n\n {4}.*(?:\n(?!\[\^)(?=.*\S).*)*)*)",
    re.M,
)
_NOTE_NAME = re.compile(r"(?:`+[^`]+?`+)|\[\^([^\]\s]+)\](?!:)")
_parse = mistune.create_markdown(renderer="ast", plugins=["table", "strikethrough"])


@dataclass
class Expected:
    """What one page must hold. `words` are (source line, text), in the order of the page."""

    headings: list[str] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    words: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Difference:
    """Something a built page lacks or has otherwise."""

    line: int
    message: str


@dataclass
class _Chunk:
    """A piece of a page between the things that this module takes apart itself."""

    line: int
    text: str
    kind: str = "markdown"  # markdown | html | code | caption
    label: str = ""


def expected(page: Path, project: Path) -> Expected:
    """Derive a page's expectations from its source, `_variables.yml` and the executed notebooks."""
    text = page.read_text(encoding="utf-8")
    front: dict[str, Any] = {}
    first = 1
    if match := re.match(r"---\n(.*?)\n---[ \t]*\n", text, re.S):
        front = yaml.safe_load(match[1]) or {}
        first = text[: match.end()].count("\n") + 1
        text = text[match.end() :]
    variables_path = project / "_variables.yml"
    variables = _variables(variables_path.read_text(encoding="utf-8")) if variables_path.is_file() else {}
    chunks = _with_notes_last(_chunks(text, first, page, project))
    numbers = _numbers(chunks, front.get("number-sections") is True)
    found = Expected()
    if front.get("title"):
        found.headings.append(_inline(str(front["title"])))
    for key in ("subtitle", "description"):
        if front.get(key):
            found.words.append((1, _inline(str(front[key]))))
    for chunk in chunks:
        _expect(chunk, numbers, variables or {}, found)
    return found


@lru_cache(maxsize=1)
def _variables(text: str) -> dict[str, Any]:
    found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return found if isinstance(found, dict) else {}


def differences(wanted: Expected, page: BuiltPage) -> list[Difference]:
    """Where a built page differs from what its source says."""
    found = []
    for name, want, have in (
        ("heading", wanted.headings, page.reading.headings),
        ("caption", wanted.captions, page.reading.captions),
    ):
        if [squeezed(text) for text in want] != [squeezed(text) for text in have]:
            index = next(
                (i for i, (a, b) in enumerate(zip(want, have, strict=False)) if squeezed(a) != squeezed(b)),
                min(len(want), len(have)),
            )
            wants = want[index] if index < len(want) else "no more"
            has = have[index] if index < len(have) else "no more"
            found.append(Difference(1, f"{name} {index + 1} should be {wants!r} and is {has!r}"))
    at = 0
    for line, text in wanted.words:
        squeezed_text = squeezed(text)
        if squeezed_text == "-":
            continue  # cells of dashes run together on the page
        place = page.reading.words.find(squeezed_text, at)
        if place < 0:
            found.append(Difference(line, f"the built page does not say {' '.join(text.split())[:90]!r}"))
        else:
            at = place + len(squeezed_text)
    return found


def _chunks(text: str, first: int, page: Path, project: Path) -> list[_Chunk]:
    lines = text.split("\n")
    chunks: list[_Chunk] = []
    held: list[str] = []
    start = first

    def flush(next_line: int) -> None:
        nonlocal start
        if any(line.strip() for line in held):
            chunks.append(_Chunk(start, "\n".join(held)))
        held.clear()
        start = next_line

    index = 0
    floats: list[tuple[str, str, int]] = []  # attributes, label, chunks before it
    while index < len(lines):
        line = lines[index]
        number = first + index
        if match := re.match(r" {0,3}(`{3,}|~{3,})\s*(.*)$", line):
            end = next(
                (
                    i
                    for i in range(index + 1, len(lines))
                    if re.match(rf" {{0,3}}{match[1][0]}{{{len(match[1])},}}\s*$", lines[i])
                ),
                len(lines),
            )
            flush(number)
            kind = "html" if match[2].strip() == "{=html}" else "code"
            chunks.append(_Chunk(number, "\n".join(lines[index + 1 : end]), kind))
            index = end + 1
            start = first + index
        elif match := re.match(r":{3,}\s*(\{.*\}|\S+)?\s*$", line):
            flush(number + 1)
            _div(match, number, chunks, floats)
            index += 1
        elif match := re.match(r"\s*\{\{<\s*embed\s+([^\s#]+)#([\w-]+)[^>]*>\}\}\s*$", line):
            flush(number + 1)
            chunks += _embedded(project, page.parent / match[1], match[2], number)
            index += 1
        elif match := re.match(r"\s*\{\{<\s*include\s+(\S+)\s*>\}\}\s*$", line):
            flush(number + 1)
            target = project / match[1][1:] if match[1].startswith("/") else page.parent / match[1]
            inner = re.sub(r"\A---\n.*?\n---\n", "", target.read_text(encoding="utf-8"), flags=re.S)
            chunks += _within(inner, number, target, project)
            index += 1
        elif match := re.match(r":\s+(.*?)\s*(?:\{[^{}]*#(tbl-[\w-]+)[^{}]*\})?\s*$", line):
            flush(number + 1)
            chunk = _Chunk(number, match[1], "caption", match[2] or "")
            # a caption below its table is shown above it
            chunks.insert(len(chunks) - 1 if chunks and "|" in chunks[-1].text else len(chunks), chunk)
            index += 1
        elif match := re.match(r"!\[(.*)\]\([^)]*\)(?:\{[^{}]*?(?:#(fig-[\w-]+))?[^{}]*\})?\s*$", line):
            flush(number + 1)
            if match[1]:
                chunks.append(_Chunk(number, match[1], "caption", match[2] or ""))
            index += 1
        else:
            held.append(line)
            index += 1
    flush(first + index)
    return chunks


def _with_notes_last(chunks: list[_Chunk]) -> list[_Chunk]:
    """Footnotes, which any part of a page may define, where the page shows them: at its end, as first named."""
    notes: dict[str, _Chunk] = {}
    for chunk in chunks:
        if chunk.kind == "markdown":
            for match in _NOTE.finditer(chunk.text):
                line = chunk.line + chunk.text[: match.start()].count("\n")
                notes[match["name"]] = _Chunk(line, re.sub(r"^ {4}", "", match["text"], flags=re.M))
            chunk.text = _NOTE.sub("", chunk.text)
    named: list[str] = []

    def drop(match: re.Match[str]) -> str:
        if match[1] is None or match[1] not in notes:
            return match[0]
        named.append(match[1])
        return ""

    for chunk in chunks:
        if chunk.kind in ("markdown", "caption"):
            chunk.text = _NOTE_NAME.sub(drop, chunk.text)
    return [*chunks, *(notes[name] for name in dict.fromkeys(named))]


def _div(match: re.Match[str], number: int, chunks: list[_Chunk], floats: list[tuple[str, str, int]]) -> None:
    attributes = match[1] or ""
    if attributes:
        label = re.search(r"#((?:fig|tbl)-[\w-]+)", attributes)
        floats.append((attributes, label[1] if label else "", len(chunks)))
        if title := re.search(r'title="([^"]*)"', attributes):
            chunks.append(_Chunk(number, title[1]))
        return
    if floats:
        opened, label_text, before = floats.pop()
        if ".callout-" in opened and "title=" not in opened and len(chunks) > before:
            # a callout's first heading is its title, and no heading of the page
            chunks[before].text = re.sub(r"\A\s*#{1,6} (.*)", r"\1\n", chunks[before].text)
        if label_text and len(chunks) > before:
            last = chunks.pop()
            body, _, caption = last.text.strip().rpartition("\n\n")
            if body:
                chunks.append(_Chunk(last.line, body, last.kind))
            made = _Chunk(last.line, caption, "caption", label_text)
            chunks.insert(before if label_text.startswith("tbl") else len(chunks), made)


def _embedded(project: Path, notebook: Path, name: str, line: int) -> list[_Chunk]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    chunks: list[_Chunk] = []
    for cell in cells:
        source = "".join(cell["source"])
        options = dict(re.findall(r"^#\|\s*([\w-]+):\s*(.*?)\s*$", source, re.M)) if cell["cell_type"] == "code" else {}
        label = _yaml(options.get("label", ""))
        if name not in (label, cell.get("id")):
            continue
        if cell["cell_type"] == "markdown":
            chunks += _within(source, line, notebook, project)
        done = False
        for output in cell.get("outputs", []):
            kind, text = _shown(output)
            caption = _yaml(options.get(f"{kind[:3]}-cap", "")) if kind in ("figure", "tblhtml", "tblmarkdown") else ""
            made = _Chunk(line, caption, "caption", label)
            own = kind[:3] == label[:3] and not done
            done = done or own
            if kind.endswith("markdown"):
                body = _within(text, line, notebook, project)
            else:
                body = [_Chunk(line, text, kind.removeprefix("tbl"))] if kind != "figure" else []
            chunks += [made, *body] if own and kind != "figure" else [*body, *([made] if own else [])]
    return chunks


def _within(text: str, line: int, page: Path, project: Path) -> list[_Chunk]:
    """The chunks of Markdown that comes from elsewhere; they keep the line that brought them in."""
    return [_Chunk(line, chunk.text, chunk.kind, chunk.label) for chunk in _chunks(text, 1, page, project)]


def _shown(output: dict[str, Any]) -> tuple[str, str]:
    if output["output_type"] == "stream":
        return "code", "".join(output["text"])
    data = {name: "".join(text) for name, text in output.get("data", {}).items()}
    if any(name.startswith("image/") for name in data):
        return "figure", ""
    if "text/html" in data:
        return ("tblhtml" if "<table" in data["text/html"] else "html"), data["text/html"]
    if "text/markdown" in data:
        table = re.search(r"^\|.*\|\s*$", data["text/markdown"], re.M)
        return ("tblmarkdown" if table else "markdown"), data["text/markdown"]
    return "code", data.get("text/plain", "")


def _yaml(text: str) -> str:
    value = yaml.safe_load(text) if text else ""
    return "" if value is None else str(value)


def _numbers(chunks: list[_Chunk], number_sections: bool) -> dict[str, str]:
    numbers: dict[str, str] = {}
    counts = {"fig": 0, "tbl": 0}
    for chunk in chunks:
        if chunk.kind == "caption" and chunk.label and chunk.label not in numbers:
            counts[chunk.label[:3]] += 1
            numbers[chunk.label] = str(counts[chunk.label[:3]])
    if number_sections:
        at = [0] * 7
        top = 0
        for chunk in chunks:
            for match in re.finditer(r"^(#{1,6}) (.*)$", chunk.text, re.M) if chunk.kind == "markdown" else ():
                if ".unnumbered" in match[2] or "{-}" in match[2]:
                    continue
                level = len(match[1])
                top = top or level
                at = [*at[:level], at[level] + 1, *[0] * (6 - level)]
                if label := re.search(r"#(sec-[\w-]+)", match[2]):
                    numbers[label[1]] = ".".join(map(str, at[top : level + 1]))
    return numbers


def _expect(chunk: _Chunk, numbers: dict[str, str], variables: dict[str, Any], found: Expected) -> None:
    if chunk.kind == "code":
        found.words.append((chunk.line, _two_braces(chunk.text)))
    elif chunk.kind == "html":
        text = unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style)\b.*?</\1>", "", chunk.text, flags=re.S)))
        found.words.append((chunk.line, text))
    elif chunk.kind == "caption":
        prefix = f"{_KINDS[chunk.label[:3]]} {numbers[chunk.label]}: " if chunk.label else ""
        caption = prefix + _inline(_resolved(chunk.text, numbers, variables))
        found.captions.append(caption)
        found.words.append((chunk.line, caption))
    else:
        text = _resolved(chunk.text, numbers, variables)
        for block in _blocks(text):
            words = _plain(block)
            if block["type"] == "heading":
                words = re.sub(r"\s*\{[^{}]*\}\s*$", "", words)
                found.headings.append(words)
            if words.strip():
                found.words.append((chunk.line, words))


def _resolved(text: str, numbers: dict[str, str], variables: dict[str, Any]) -> str:
    def fill(match: re.Match[str]) -> str:
        if match[1] != "var":
            return match[0]
        value: Any = variables
        for part in match[2].split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return match[0] if value is None else str(value)

    def refer(match: re.Match[str]) -> str:
        label = match["label"]
        if label not in numbers:
            return f"?@{label}"
        before = (match["before"] or "").strip()
        if match["bare"]:
            return numbers[label]
        return f"{before or _KINDS[label[:3]]} {numbers[label]}"

    parts = re.split(r"(`+[^`]+?`+)", text)
    for index in range(0, len(parts), 2):
        part = _SHORTCODE.sub(fill, parts[index])
        part = _REFERENCE.sub(refer, part)
        parts[index] = _ATTRIBUTES.sub("", _SPAN.sub(r"\1", part)) if "{" in part else part
    # what a filled-in value or span left behind
    return _two_braces(re.sub(r"(?<=\S)\{[.#][^{}\n]*\}", "", "".join(parts)))


def _two_braces(text: str) -> str:
    return text.replace("{{{<", "{{<").replace(">}}}", ">}}")


def _inline(text: str) -> str:
    return "".join(_plain(block) for block in _blocks(text))


def _blocks(text: str) -> list[dict[str, Any]]:
    parsed = _parse(text)
    assert isinstance(parsed, list)
    out: list[dict[str, Any]] = []
    for block in parsed:
        children = block.get("children")
        nested = block["type"] in (
            "list",
            "list_item",
            "block_quote",
            "table",
            "table_head",
            "table_body",
            "table_row",
            "footnotes",
            "footnote_item",
        )
        out += [leaf for child in children for leaf in _leaves(child)] if nested and children else [block]
    return out


def _leaves(block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] in ("list", "list_item", "block_quote", "table_head", "table_body", "table_row", "footnote_item"):
        return [leaf for child in block.get("children", []) for leaf in _leaves(child)]
    return [block]


def _plain(node: dict[str, Any]) -> str:
    kind = node["type"]
    if kind in ("softbreak", "linebreak", "blank_line", "thematic_break"):
        return " "
    if kind == "inline_html":
        return ""
    if kind == "block_html":
        return unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<!--.*?-->", "", str(node.get("raw", "")), flags=re.S)))
    if kind == "image":
        return ""
    if "children" in node:
        return "".join(_plain(child) for child in node["children"])
    return unescape(str(node.get("raw", "")))
