"""From Quarto's sources to what the fallback renderer reads.

`smalldocs` knows neither `{{< embed >}}` nor cross-references. This copies the project into a
staging folder, writes each page with its embeds filled in and its references numbered, and turns
each executed notebook into a page of its own. Nothing else is changed, so that both renderers start
from the same words.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from lanelab.errors import BadFile, LabError
from lanelab.publish.site import cells, crossref
from lanelab.publish.site.source import Page, lines_outside_code, read_page

VARIABLES = "_variables.yml"
_EMBED = re.compile(r"^\s*\{\{<\s*embed\s+(?P<path>[^\s#>]+)#(?P<cell>[\w-]+)(?P<rest>[^>]*?)\s*>\}\}\s*$")
_INCLUDE = re.compile(r"^\s*\{\{<\s*include\s+(\S+)\s*>\}\}\s*$")
VARIABLE = re.compile(r"(?<!\{)\{\{<\s*var\s+([\w.-]+)\s*>\}\}")
_IMAGE = re.compile(
    r"^!\[(?P<caption>.*)\]\((?P<target>[^)\s]+)\)\{(?P<attrs>[^{}]*#(?P<label>fig-[\w-]+)[^{}]*)\}\s*$"
)
_TABLE_CAPTION = re.compile(r"^(?P<colon>:\s+)(?P<caption>.*?)\s*\{(?P<attrs>[^{}]*#(?P<label>tbl-[\w-]+)[^{}]*)\}\s*$")
_ESCAPED = re.compile(r"\{\{\{<(.*?)>\}\}\}")
_FLOAT_DIV = re.compile(r"^(?P<colons>:{3,})\s*\{[^{}]*#(?P<label>(?:fig|tbl)-[\w-]+)[^{}]*\}\s*$")
_CALLOUT = re.compile(
    r"^(?P<open>:{3,}\s*\{[^{}]*\.callout-[^{}]*?)\s*title=\"(?P<title>[^\"]*)\"(?P<close>[^{}]*\})\s*$"
)
_ALT = re.compile(r'fig-alt="((?:[^"\\]|\\.)*)"')
_DIV = re.compile(r"^(:{3,})\s*(.*?)\s*$")
_PAGES = {".qmd", ".md", ".ipynb"}


def stage(source: Path, staging: Path, published: list[str]) -> None:
    """Copy the project from `source` into `staging`, ready for the fallback; only posts of published campaigns."""
    if staging.exists():
        shutil.rmtree(staging)
    staging.mkdir(parents=True)
    variables = read_variables(source)
    for path in _files(source):
        relative = PurePosixPath(path.relative_to(source).as_posix())
        if relative.parts[0] == "posts" and len(relative.parts) > 2 and relative.parts[1] not in published:
            continue
        target = staging / relative
        if path.suffix == ".ipynb":
            _write(target.with_suffix(".qmd"), notebook_page(path, relative, staging, variables))
        elif path.suffix in _PAGES and relative.name.startswith("_"):
            _write(target, unescaped(fill_variables(path.read_text(encoding="utf-8"), variables)))
        elif path.suffix in _PAGES:
            _write(target, page_text(read_page(path), relative, source, staging, variables))
        elif relative.name != VARIABLES:  # every place is filled in here; the renderer would read it once a page
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def page_text(page: Page, relative: PurePosixPath, source: Path, staging: Path, variables: dict[str, Any]) -> str:
    """One page as the fallback should read it. Raises `BadFile` on an embed of nothing."""
    lines: list[str] = []
    body = page.body.splitlines()
    skip_to = 0
    for index, line, prose in lines_outside_code(page.body):
        if index < skip_to:
            continue
        if not prose:
            lines.append(line)
        elif embed := _EMBED.match(line):
            lines += _embed(embed, page, page.first_line + index, relative, source, staging)
        elif included := _INCLUDE.match(line):
            _included(included[1], page, page.first_line + index, relative, source)
            lines.append(line)
        elif (callout := _CALLOUT.match(line)) and re.search(r"[*_`\[]|\{\{<", callout["title"]):
            # the fallback shows a title attribute as it stands, and a first heading as Markdown
            lines += [callout["open"] + callout["close"], f"## {callout['title']} {{.unnumbered}}", ""]
        elif image := _IMAGE.match(line):
            lines += _image(image)
        elif (opened := _FLOAT_DIV.match(line)) and (end := _div_end(body, index)):
            lines += _float_div(opened["label"], body[index + 1 : end])
            skip_to = end + 1
        elif caption := _TABLE_CAPTION.match(line):
            lines.append(f": {crossref.mark(caption['label'])}{caption['caption']} {{{caption['attrs']}}}")
        else:
            lines.append(line)
    text = unescaped(fill_variables("\n".join(lines) + "\n", variables))
    text = crossref.number(text, number_sections=page.front.get("number-sections") is True)
    front = yaml.safe_dump(page.front, sort_keys=False, allow_unicode=True, width=10_000) if page.front else ""
    return f"---\n{front}---\n\n{text}" if front else text


def notebook_page(path: Path, relative: PurePosixPath, staging: Path, variables: dict[str, Any]) -> str:
    """A whole executed notebook as a page: its text, its code and its outputs."""
    notebook = read_notebook(path)
    front: dict[str, Any] = {}
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        text = cells.text_of(cell["source"])
        if number == 0 and cell["cell_type"] == "raw":
            front = yaml.safe_load(text.strip().strip("-")) or {}
            continue
        if "remove-cell" in cell.get("metadata", {}).get("tags", []):
            continue
        shown = cells.show_cell(cell, relative, relative, echo=True)
        _keep(shown, staging)
        parts.append(shown.markdown)
    text = crossref.number(fill_variables("\n\n".join(parts), variables), number_sections=False)
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n\n{text}"


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook's JSON. Raises `BadFile`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadFile(path, f"is no notebook: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("cells"), list):
        raise BadFile(path, "is no notebook: it has no cells")
    return value


def fill_variables(text: str, variables: dict[str, Any]) -> str:
    """Replace `{{< var a.b >}}` outside code; an unknown name becomes `?var:a.b`, as Quarto prints it."""

    def value(found: re.Match[str]) -> str:
        at = lookup(variables, found[1])
        return f"**?var:{found[1]}**" if at is None else str(at)

    return "\n".join(VARIABLE.sub(value, line) if prose else line for _, line, prose in lines_outside_code(text)) + "\n"


def unescaped(text: str) -> str:
    """`{{{< … >}}}`, which Quarto prints as a shortcode in two braces, as the fallback writes the same."""
    lines = []
    for _, line, prose in lines_outside_code(text):
        lines.append(_ESCAPED.sub(r"\\{{<\1>}}" if prose else r"{{<\1>}}", line))
    return "\n".join(lines) + "\n"


def lookup(variables: dict[str, Any], name: str) -> Any:
    """A dotted name's value, or None."""
    at: Any = variables
    for part in name.split("."):
        at = at.get(part) if isinstance(at, dict) else None
    return at


def _embed(
    found: re.Match[str], page: Page, line: int, relative: PurePosixPath, source: Path, staging: Path
) -> list[str]:
    target = os.path.normpath(relative.parent / found["path"])
    notebook = PurePosixPath(target)
    path = source / notebook
    if not path.is_file():
        raise BadFile(page.path, f"embeds {found['path']}, which does not exist", line=line)
    echo = "echo=true" in found["rest"].replace('"', "")
    lines: list[str] = []
    try:
        for cell in cells.find_cells(read_notebook(path), found["cell"], notebook):
            shown = cells.show_cell(cell, notebook, relative, echo=echo)
            _keep(shown, staging)
            lines += ["", *shown.markdown.splitlines(), ""]
    except cells.NoSuchCell as error:
        raise BadFile(page.path, str(error), line=line) from error
    return lines


def _included(target: str, page: Page, line: int, relative: PurePosixPath, source: Path) -> None:
    path = PurePosixPath(os.path.normpath(target[1:] if target.startswith("/") else relative.parent / target))
    if not (source / path).is_file():
        raise BadFile(page.path, f"includes {target}, which does not exist", line=line)


def _image(found: re.Match[str]) -> list[str]:
    alt = _ALT.search(found["attrs"])
    attrs = f'{{fig-alt="{alt[1]}"}}' if alt else ""
    # caption text outside the image, so that the float is the same as an embedded one
    content = f"![]({found['target']}){attrs}\n"
    return ["", *cells.float_markdown(found["label"], found["caption"], content).splitlines(), ""]


def _float_div(label: str, body: list[str]) -> list[str]:
    text = "\n".join(body).strip("\n")
    content, _, caption = text.rpartition("\n\n")
    return ["", *cells.float_markdown(label, " ".join(caption.split()), content + "\n").splitlines(), ""]


def _div_end(body: list[str], start: int) -> int | None:
    depth = 0
    for index in range(start, len(body)):
        if found := _DIV.match(body[index]):
            depth += 1 if found[2] else -1
            if depth == 0:
                return index
    return None


def read_variables(source: Path) -> dict[str, Any]:
    """`_variables.yml` of a project; nothing without one."""
    path = source / VARIABLES
    if not path.is_file():
        return {}
    # the C loader where there is one: the file holds every fact of every campaign
    value = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    if not isinstance(value, dict):
        raise LabError(f"{path} must be a mapping of campaigns")
    return value


def _files(source: Path) -> list[Path]:
    kept = []
    for path in sorted(source.rglob("*")):
        parts = path.relative_to(source).parts
        hidden = any(part.startswith(".") for part in parts) or parts[0] in {"_site", "_extensions"}
        if path.is_file() and not hidden:
            kept.append(path)
    return kept


def _keep(shown: cells.Rendered, staging: Path) -> None:
    for name, content in shown.files.items():
        target = staging / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
