"""The HTML view of a run: one file, readable without a network and without JavaScript."""

from __future__ import annotations

import copy
import html
from pathlib import Path
from typing import Any

from jinja2 import DictLoader
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from traitlets.config import Config

WIDGETS = "application/vnd.jupyter.widget-state+json"
# widgets and scripts would need a network; every one of them has a picture, a table or a text beside it
SHOWN = [
    "text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain",
]  # fmt: skip


def mend_widgets(notebook: NotebookNode) -> None:
    """Give widget metadata the `state` that nbconvert expects of them."""
    widgets = notebook.metadata.get("widgets")
    if isinstance(widgets, dict):
        for mime, content in list(widgets.items()):
            if mime == WIDGETS and not (isinstance(content, dict) and isinstance(content.get("state"), dict)):
                widgets[mime] = NotebookNode(state={}, version_major=2, version_minor=0)


def html_view(notebook: NotebookNode, *, title: str, status: str, line: str) -> str:
    """The executed notebook as a page; `status` and `line` stand at its top."""
    shown = copy.deepcopy(notebook)
    shown.metadata.pop("widgets", None)
    here = Path(__file__).with_name("view.html").read_text(encoding="utf-8")
    settings = Config({"NbConvertBase": {"display_data_priority": SHOWN}})
    exporter = HTMLExporter(
        config=settings,
        template_name="basic",
        template_file="run.html.j2",
        extra_loaders=[DictLoader({"run.html.j2": here})],
    )
    for cell in shown.cells:
        cell.metadata["run_status"] = cell.metadata.get("papermill", {}).get("status", "pending")
    resources: dict[str, Any] = {
        "run": {"title": html.escape(title), "status": html.escape(status), "line": html.escape(line)}
    }
    page, _ = exporter.from_notebook_node(shown, resources=resources)
    return str(page)
