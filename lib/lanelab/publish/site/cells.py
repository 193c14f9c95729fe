"""Notebook cells as Markdown, the way Quarto shows them: options, outputs, figures and tables.

Used for `{{< embed >}}` and for the pages of whole notebooks when the fallback renders. A labelled
figure or table becomes a float with its id; the number in its caption stands as a mark that
`crossref.number` fills in once the whole page is known.
"""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import yaml

from lanelab.errors import LabError
from lanelab.publish.site.crossref import mark

IMAGES = {"image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpg"}
# one spelling of an output is kept, the first of these that it has
MIME_ORDER = ("image/svg+xml", "text/html", "text/markdown", "image/png", "image/jpeg", "text/plain")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class NoSuchCell(LabError):
    """An embed names a notebook or cell that does not exist. Data: `notebook`, `cell`, `valid`."""


@dataclass
class Rendered:
    """Markdown, and the files that it shows: path relative to the project, content."""

    markdown: str = ""
    files: dict[PurePosixPath, bytes] = field(default_factory=dict)


def text_of(value: Any) -> str:
    """A notebook's text, which may be stored as a list of lines."""
    return "".join(value) if isinstance(value, list) else str(value)


def options_of(source: str) -> tuple[dict[str, Any], str]:
    """The `#| key: value` options at the top of a code cell, and the code below them."""
    lines = source.split("\n")
    head = []
    while lines and lines[0].startswith("#|"):
        head.append(lines.pop(0)[2:].removeprefix(" "))
    try:
        options = yaml.safe_load("\n".join(head)) if head else {}
    except yaml.YAMLError as error:
        why = getattr(error, "problem", None) or "a mistake"
        raise LabError(f"cell options are not YAML ({why}): {' / '.join(head)}") from error
    return (options if isinstance(options, dict) else {}), "\n".join(lines).strip("\n")


def label_of(cell: dict[str, Any]) -> str:
    """A cell's label: its `label` option, else its id."""
    if cell["cell_type"] == "code":
        options, _ = options_of(text_of(cell["source"]))
        if options.get("label"):
            return str(options["label"])
    return str(cell.get("id", ""))


def find_cells(notebook: dict[str, Any], name: str, path: PurePosixPath) -> list[dict[str, Any]]:
    """The cells that an embed names by label, id or tag. Raises `NoSuchCell`."""
    cells = notebook["cells"]
    found = [cell for cell in cells if name in (label_of(cell), cell.get("id"))]
    found = found or [cell for cell in cells if name in cell.get("metadata", {}).get("tags", [])]
    if not found:
        labels = sorted({label_of(cell) for cell in cells if label_of(cell)})
        raise NoSuchCell(
            f"{path} has no cell {name!r} (valid: {', '.join(labels)})", notebook=str(path), cell=name, valid=labels
        )
    return found


def show_cell(cell: dict[str, Any], notebook: PurePosixPath, page: PurePosixPath, *, echo: bool) -> Rendered:
    """One cell as Markdown for `page`; both paths are relative to the project."""
    source = text_of(cell["source"])
    if cell["cell_type"] == "markdown":
        return Rendered(source.strip("\n") + "\n")
    if cell["cell_type"] != "code":
        return Rendered()
    options, code = options_of(source)
    if options.get("include") is False:
        return Rendered()
    echo = echo and options.get("echo", True) is not False
    label = str(options.get("label") or "")
    parts = []
    if echo and code.strip():
        fence = _fence(code)
        parts.append(f"{fence}{{.python .cell-code}}\n{code}\n{fence}\n")
    shown = Rendered()
    floats = 0
    for number, output in enumerate(cell.get("outputs", []), start=1):
        is_figure, is_table = _is_figure(output), _is_table(output)
        wants = (label.startswith("fig-") and is_figure) or (label.startswith("tbl-") and is_table)
        floated = label if wants and not floats else ""
        floats += bool(floated)
        piece = _show_output(output, options, floated, label or str(cell.get("id")), number, notebook, page)
        parts.append(piece.markdown)
        shown.files.update(piece.files)
    body = "\n".join(part for part in parts if part)
    shown.markdown = f":::: {{.cell}}\n{body}\n::::\n" if body else ""
    return shown


def _show_output(
    output: dict[str, Any],
    options: dict[str, Any],
    floated: str,
    label: str,
    number: int,
    notebook: PurePosixPath,
    page: PurePosixPath,
) -> Rendered:
    kind = output["output_type"]
    if kind == "stream":
        text = html.escape(_ANSI.sub("", text_of(output["text"])).rstrip("\n"))
        return Rendered(
            raw(f'<div class="cell-output cell-output-{output["name"]}"><pre><code>{text}</code></pre></div>')
        )
    if kind == "error":
        text = html.escape(_ANSI.sub("", f"{output.get('ename')}: {output.get('evalue')}"))
        return Rendered(raw(f'<div class="cell-output cell-output-error"><pre><code>{text}</code></pre></div>'))
    data = output.get("data", {})
    mime = next((name for name in MIME_ORDER if name in data), None)
    if mime is None:
        return Rendered()
    value = text_of(data[mime])
    if mime in IMAGES:
        content = value.encode() if mime == "image/svg+xml" else base64.b64decode(value)
        folder = notebook.with_name(f"{notebook.stem}_files")
        file = folder / f"{label}-output-{number}.{IMAGES[mime]}"
        return Rendered(_figure(file, options, floated, page), {file: content})
    if mime == "text/html":
        return Rendered(_html(value, options, floated))
    if mime == "text/markdown":
        shown = f"::: {{.cell-output .cell-output-display .cell-output-markdown}}\n{value.strip(chr(10))}\n:::\n"
        return Rendered(_float(floated, str(options.get("tbl-cap") or ""), shown) if floated else shown)
    return Rendered(raw(f'<div class="cell-output"><pre><code>{html.escape(value)}</code></pre></div>'))


def _figure(file: PurePosixPath, options: dict[str, Any], floated: str, page: PurePosixPath) -> str:
    alt = html.escape(str(options.get("fig-alt") or ""))
    image = f'<img src="{relative(file, page)}" class="img-fluid figure-img" alt="{alt}">'
    shown = raw(f'<div class="cell-output cell-output-display"><p>{image}</p></div>')
    return _float(floated, str(options.get("fig-cap") or ""), shown) if floated else shown


def _html(value: str, options: dict[str, Any], floated: str) -> str:
    shown = raw(f'<div class="cell-output cell-output-display">\n{value}\n</div>')
    return _float(floated, str(options.get("tbl-cap") or ""), shown) if floated else shown


def _float(label: str, caption: str, content: str) -> str:
    """A numbered figure (caption below) or table (caption above)."""
    kind = label.split("-", 1)[0]
    above = kind == "tbl"
    place = "top" if above else "bottom"
    cap_open = f'<figcaption class="quarto-float-caption-{place} quarto-float-caption quarto-float-{kind}" id="{label}-caption">'
    open_ = f'<figure class="quarto-float quarto-float-{kind} figure">'
    cap = [raw(cap_open), f"{mark(label)}{caption}\n", raw("</figcaption>")]
    body = [raw(f'<div aria-describedby="{label}-caption">'), content, raw("</div>")]
    parts = [raw(open_), *(cap + body if above else body + cap), raw("</figure>")]
    return f"::: {{#{label} .quarto-float .quarto-figure .quarto-figure-center}}\n" + "\n".join(parts) + ":::\n"


def float_markdown(label: str, caption: str, content: str) -> str:
    """The same float around Markdown content, for floats written in a page itself."""
    return _float(label, caption, content)


def _is_figure(output: dict[str, Any]) -> bool:
    data = output.get("data", {})
    mime = next((name for name in MIME_ORDER if name in data), None)
    return mime in IMAGES


def _is_table(output: dict[str, Any]) -> bool:
    data = output.get("data", {})
    if "text/html" in data:
        return "<table" in text_of(data["text/html"])
    return bool(re.search(r"^\|.*\|\s*$", text_of(data.get("text/markdown", "")), re.M))


def relative(target: PurePosixPath, page: PurePosixPath) -> str:
    """The link from a page to a file, both relative to the project."""
    up = len(page.parent.parts)
    return "../" * up + str(target)


def raw(content: str) -> str:
    """HTML as a raw block."""
    fence = _fence(content)
    return f"{fence}{{=html}}\n{content}\n{fence}\n"


def _fence(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)
