"""The notebook to run: found by step or path, read, and its kernel checked, before anything is written."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from lanelab.errors import NotFound
from lanelab.paths import root
from lanelab.receipts.canonical import canonical_bytes
from lanelab.run.errors import Refused, UnknownKernel, UnreadableNotebook
from lanelab.run.verdict import plain

DEFAULT_KERNEL = "python3"
INJECTED = "injected-parameters"


class UnknownStep(Refused, NotFound):
    """There is no notebook of that step or path. Data: `name`, `valid`."""


@dataclass(frozen=True)
class Source:
    """A notebook as it is stored. `sha256` is of the file's bytes, `code_sha256` of what cells say."""

    path: Path
    notebook: NotebookNode
    sha256: str
    code_sha256: str

    @property
    def step(self) -> str:
        """Its step: from the metadata, else the file's name made plain."""
        step = lab_metadata(self.notebook).get("step")
        plain = re.sub(r"[^a-z0-9]+", "-", str(step or self.path.stem).lower()).strip("-")
        return plain[:64] or "notebook"

    @property
    def of_lab(self) -> bool:
        """Whether it is a step of a campaign: it says so, or it lies in the lab's notebooks/."""
        return bool(lab_metadata(self.notebook)) or self.path.parent == root() / "notebooks"

    @property
    def workloads(self) -> list[str]:
        """The workloads that it measures, by name."""
        found = lab_metadata(self.notebook).get("workloads")
        return [str(name) for name in found] if isinstance(found, list) else []

    @property
    def code_cells(self) -> list[str]:
        """The ids of the cells that can run, in order; blank ones never run and do not count."""
        return [cell.id for cell in self.notebook.cells if runs(cell)]


def lab_metadata(notebook: NotebookNode) -> dict[str, Any]:
    """The notebook's `lanelab` metadata."""
    found = notebook.metadata.get("lanelab")
    return dict(found) if isinstance(found, dict) else {}


def runs(cell: NotebookNode) -> bool:
    """Whether a cell has something to execute and is the author's."""
    return cell.cell_type == "code" and bool(cell.source.strip()) and INJECTED not in cell.metadata.get("tags", [])


def steps() -> dict[str, Path]:
    """The lab's step notebooks by name."""
    return {path.stem: path for path in sorted((root() / "notebooks").glob("*.ipynb"))}


def find(step_or_notebook: str) -> Path:
    """The file of a step of notebooks/, or of a path. Raises `UnknownStep`, `UnreadableNotebook`."""
    path = Path(step_or_notebook)
    if path.suffix == ".ipynb" or "/" in step_or_notebook:
        if path.is_file():
            return path.resolve()
        if what := _what_is(path):
            raise UnreadableNotebook(f"{step_or_notebook}: {what}", path=step_or_notebook)
        raise UnknownStep("notebook", step_or_notebook, hint="no such file")
    known = steps()
    if step_or_notebook not in known:
        raise UnknownStep("step", step_or_notebook, known, hint="or give the path of a notebook, ending in .ipynb")
    return known[step_or_notebook]


def _what_is(path: Path) -> str | None:
    """What stands at a path that is no file to read; None if nothing does."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        return "cannot be read" if isinstance(error, PermissionError) else None
    if stat.S_ISDIR(mode):
        return "is a folder, not a notebook"
    device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    return f"is {'a device' if device else 'a pipe or a socket'}, not a notebook"


def _parsed(path: Path, content: bytes) -> NotebookNode:
    """The notebook in a file's bytes; what the file says is no part of an error. Raises `UnreadableNotebook`."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableNotebook(f"{path}: is not a notebook: it is not JSON", path=str(path)) from error
    cells = (value.get("cells") or value.get("worksheets") or []) if isinstance(value, dict) else None
    if not isinstance(cells, list) or not isinstance(value.get("nbformat"), int):
        raise UnreadableNotebook(
            f"{path}: is not a notebook: it must be a JSON object with nbformat and a list of cells", path=str(path)
        )
    try:
        notebook = nbformat.v4.upgrade(nbformat.reads(content.decode("utf-8"), as_version=4))
        nbformat.validate(notebook)
    except Exception as error:  # nbformat raises what its parsers raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnreadableNotebook(f"{path}: is not a notebook: {plain(why)[:200]}", path=str(path)) from error
    return notebook


def read(path: Path) -> Source:
    """The notebook, upgraded to cells with ids. Raises `UnreadableNotebook`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableNotebook(f"{path}: cannot be read: {error.strerror}", path=str(path)) from error
    notebook = _parsed(path, content)
    ids = [cell.id for cell in notebook.cells]
    if len(set(ids)) != len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise UnreadableNotebook(f"{path}: two cells have the id {twice!r}", path=str(path))
    said = [[cell.id, cell.cell_type, cell.source, sorted(cell.metadata.get("tags", []))] for cell in notebook.cells]
    return Source(
        path, notebook, hashlib.sha256(content).hexdigest(), hashlib.sha256(canonical_bytes(said)).hexdigest()
    )


def kernel_for(source: Source, asked: str | None) -> str:
    """The kernel's name, if it is installed and speaks Python. Raises `UnknownKernel`, `UnreadableNotebook`."""
    from jupyter_client.kernelspec import KernelSpecManager

    name = asked or source.notebook.metadata.get("kernelspec", {}).get("name") or DEFAULT_KERNEL
    manager = KernelSpecManager()
    installed = sorted(manager.find_kernel_specs())
    if name not in installed:
        raise UnknownKernel(
            f"no kernel {name!r} is installed (installed: {', '.join(installed) or 'none'})", name=name, valid=installed
        )
    language = manager.get_kernel_spec(name).language
    if language.lower() != "python":
        raise UnreadableNotebook(f"{source.path}: kernel {name!r} speaks {language}; only Python notebooks are run")
    return str(name)
