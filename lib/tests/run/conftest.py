"""A lab of its own for each test, and the real command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lanelab.cli.main import main

NOTEBOOKS = Path(__file__).with_name("notebooks")
Call = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "lab"
    for folder in ("data/campaigns", "data/lanes", "data/machines", "notebooks"):
        (root / folder).mkdir(parents=True)
    monkeypatch.setenv("LANELAB_ROOT", str(root))
    return root


@pytest.fixture
def call(lab: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """`lanelab … --json` in this process: exit code, the JSON of stdout's last line, stderr."""

    def run(*arguments: object) -> tuple[int, dict[str, Any], str]:
        capsys.readouterr()
        code = main([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, json.loads(out.splitlines()[-1]), err

    return run


def fixture(name: str) -> Path:
    return NOTEBOOKS / f"{name}.ipynb"


def stored(answer: dict[str, Any]) -> Any:
    """The executed notebook of a run, valid."""
    notebook = nbformat.read(answer["notebook"], as_version=4)
    nbformat.validate(notebook)
    return notebook


def cell_of(notebook: Any, cell_id: str) -> Any:
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def text_of(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def record_of(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(answer["run_dir"]) / "run.json").read_text())
    return found
