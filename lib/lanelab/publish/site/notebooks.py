"""Each campaign's step notebooks, executed in publish mode, the same bytes every time.

In publish mode (`measure = False`) a notebook only reads receipts. It is executed in a kernel of its
own and then normalised: no times, no execution counts, no widget state, no path of this machine, one
spelling of each output. The result is kept under its render key (the notebook's source, the code that
publishes and everything the campaign recorded), so that an unchanged notebook is not executed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lanelab
from lanelab.errors import BadFile, LabError, NotFound
from lanelab.publish.site.cells import IMAGES, MIME_ORDER, options_of, text_of
from lanelab.receipts.files import write_atomic

# rooms whose code decides what a published notebook shows
RENDERING_ROOMS = ("receipts", "publish", "checkpoint", "memory", "routing")
RENDERING_FILES = ("notebook.py", "stats.py", "machine.py", "campaign.py", "recipe.py", "yamlfile.py")
RENDERING_LIBRARIES = ("matplotlib", "pandas", "duckdb", "numpy", "nbclient", "ipykernel")
CELL_TIMEOUT_S = 120


class NotebookFailed(LabError):
    """A step's notebook fails in publish mode. Data: `notebook`, `cell`, `error`."""


@dataclass(frozen=True)
class Job:
    """One notebook to execute for one campaign."""

    source: Path
    campaign: str
    step: str
    lane: str | None  # None: published by others, with no lane behind it
    parameters: tuple[tuple[str, Any], ...]
    campaign_dir: Path
    target: Path


def render_key(source: Path, campaign_dir: Path, parameters: Iterable[tuple[str, Any]] = ()) -> str:
    """Hex digest of what a published notebook depends on; needs no kernel and no lane."""
    digest = hashlib.sha256(code_digest().encode())
    digest.update(source.read_bytes())
    digest.update(json.dumps(sorted(parameters), default=str).encode())
    for path in campaign_files(campaign_dir):
        name = path.relative_to(campaign_dir).as_posix()
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def campaign_files(campaign_dir: Path) -> list[Path]:
    """What a campaign recorded, as far as it can be published; neither runs nor unfinished work."""
    return [
        path
        for path in sorted(campaign_dir.rglob("*"))
        if path.is_file()
        and path.relative_to(campaign_dir).parts[0] not in {"runs", "journal"}
        and not path.name.startswith(".")
    ]


@cache
def code_digest(whole: bool = False) -> str:
    """Hex digest of the code and libraries that decide what a notebook shows, as this process found them.

    With `whole` also of the code that renders pages, which no notebook depends on.
    """
    package = Path(lanelab.__file__).parent
    files = [path for room in RENDERING_ROOMS for path in (package / room).rglob("*.py")]
    files += [package / name for name in RENDERING_FILES if (package / name).is_file()]
    site = Path(__file__).parent
    kept = [path for path in files if whole or path.parent != site or path.name in ("cells.py", "notebooks.py")]
    digest = hashlib.sha256(platform.python_version().encode())
    for name in RENDERING_LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    for path in sorted(kept):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def execute_all(jobs: list[Job], lab: Path, cache: Path, say: Callable[[str], None], workers: int = 2) -> int:
    """Write every job's target, from the cache where its key is known; returns how many were executed.

    Raises `NotebookFailed` for the first notebook, in the order given, that fails.
    """
    todo = []
    for job in jobs:
        key = render_key(job.source, job.campaign_dir, job.parameters)
        kept = cache / job.campaign / f"{job.step}-{key[:32]}.ipynb"
        if kept.is_file():
            _place(kept, job.target)
        else:
            todo.append((job, kept))
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        results = [(job, kept, pool.submit(execute, job, lab)) for job, kept in todo]
        for job, kept, result in results:
            content = result.result()
            for old in kept.parent.glob(f"{job.step}-*.ipynb"):
                old.unlink()
            write_atomic(kept, content)
            _place(kept, job.target)
            say(f"executed {job.campaign}/{job.step} in publish mode")
    return len(todo)


def _place(kept: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_file() or target.read_bytes() != kept.read_bytes():
        shutil.copyfile(kept, target)


def execute(job: Job, lab: Path) -> bytes:
    """Execute one notebook with `measure=False`; returns its normalised bytes. Raises `NotebookFailed`."""
    import nbformat
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    try:
        notebook = nbformat.read(str(job.source), as_version=4)
        nbformat.validate(notebook)
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        raise BadFile(job.source, f"is no notebook: {str(error).splitlines()[0][:120]}") from error
    _inject(notebook, job)
    with tempfile.TemporaryDirectory(prefix="lanelab-publish-") as folder:
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute(env=_environment(lab, job), stderr=subprocess.DEVNULL)
        except CellExecutionError as error:
            raise _failed(job, notebook, f"{error.ename}: {error.evalue}") from error
        except CellTimeoutError as error:
            raise _failed(job, notebook, f"a cell took over {CELL_TIMEOUT_S} s") from error
        except DeadKernelError as error:
            raise _failed(job, notebook, "the kernel died") from error
        except NoSuchKernel as error:
            raise _failed(job, notebook, "no python3 kernel is installed; `make setup` installs it") from error
    return normalised(notebook, job, lab)


def _environment(lab: Path, job: Job) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("LANELAB_")}
    return given | {
        "LANELAB_ROOT": str(lab),
        "LANELAB_CAMPAIGN": job.campaign,
        "LANELAB_STEP": job.step,
        "LANELAB_SITE": "1",
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": "0",
        "OMP_NUM_THREADS": "1",
    }


def _inject(notebook: Any, job: Job) -> None:
    import nbformat

    values = {**dict(job.parameters), "campaign": job.campaign, "lane": job.lane, "measure": False}
    code = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell = nbformat.v4.new_code_cell(code, id="published-parameters", metadata={"tags": ["remove-cell"]})
    for index, found in enumerate(notebook.cells):
        if "parameters" in found.metadata.get("tags", []):
            notebook.cells.insert(index + 1, cell)
            return
    raise NotebookFailed(
        f"{job.source.name} has no cell tagged 'parameters', so it cannot be told not to measure",
        notebook=job.source.name, cell=None, error="no parameters cell",
    )  # fmt: skip


def _failed(job: Job, notebook: Any, why: str) -> NotebookFailed:
    stopped = next(
        (cell.id for cell in notebook.cells if any(out.output_type == "error" for out in cell.get("outputs", []))),
        None,
    )
    where = f" in cell {stopped!r}" if stopped else ""
    return NotebookFailed(
        f"{job.source.name} fails for campaign {job.campaign!r}{where}: {why.splitlines()[0]}",
        notebook=job.source.name, cell=stopped, error=why,
    )  # fmt: skip


def normalised(notebook: Any, job: Job, lab: Path) -> bytes:
    """The notebook's bytes without anything that differs between two executions."""
    title = job.step
    cells: list[dict[str, Any]] = []
    for cell in notebook.cells:
        text = text_of(cell.source)
        heading = re.match(r"\s*#\s+(.+?)\s*(?:\n|$)", text) if cell.cell_type == "markdown" else None
        if heading and title == job.step:
            title = heading[1]
            text = text[heading.end() :].strip("\n")
            if not text:
                continue
        cells.append(_plain_cell(cell, text, lab))
    front = f"---\ntitle: {json.dumps(f'{title} ({job.campaign})', ensure_ascii=False)}\ntoc: true\n---"
    cells.insert(0, {"cell_type": "raw", "id": "front-matter", "metadata": {}, "source": front})
    plain = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(plain, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _plain_cell(cell: Any, text: str, lab: Path) -> dict[str, Any]:
    tags = list(cell.metadata.get("tags", []))
    plain: dict[str, Any] = {
        "cell_type": cell.cell_type,
        "id": cell.id,
        "metadata": {"tags": tags} if tags else {},
        "source": text,
    }
    if cell.cell_type == "code":
        outputs = [_plain_output(output, lab) for output in cell.outputs]
        plain["outputs"] = _joined([output for output in outputs if output])
        plain["execution_count"] = None
        plain["source"] = _with_words_of_outputs(text, cell.outputs)
    return plain


def _plain_output(output: Any, lab: Path) -> dict[str, Any] | None:
    if output.output_type == "stream":
        if output.name == "stderr":
            return None  # warnings name files and lines of this machine
        return {"output_type": "stream", "name": output.name, "text": _without_paths(text_of(output.text), lab)}
    if output.output_type == "error":
        return {"output_type": "error", "ename": output.ename, "evalue": output.evalue, "traceback": []}
    mime = next((name for name in MIME_ORDER if name in output.data), None)
    if mime is None:
        return None
    value = text_of(output.data[mime])
    if mime not in IMAGES or mime == "image/svg+xml":
        value = _without_paths(value, lab)
    if mime == "text/markdown" and str(output.get("metadata", {}).get("exhibit", "")).startswith("data "):
        value = f"::: {{.data-links}}\n{value.strip()}\n:::"
    return {"output_type": "display_data", "data": {mime: value}, "metadata": {}}


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] == "stream" and joined and joined[-1].get("name") == output["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def _with_words_of_outputs(source: str, outputs: list[Any]) -> str:
    """Captions and alt texts that a figure carries in its metadata, as the cell options that Quarto reads."""
    options, _ = options_of(source)
    added = []
    for output in outputs:
        metadata = output.get("metadata", {})
        for mime in ("image/svg+xml", "text/html"):
            metadata = {**metadata, **metadata.get(mime, {})} if isinstance(metadata.get(mime), dict) else metadata
        kind = "fig" if any(mime in IMAGES for mime in output.get("data", {})) else "tbl"
        for key, option in (("alt", f"{kind}-alt"), ("caption", f"{kind}-cap")):
            if metadata.get(key) and option not in options and not (key == "alt" and kind == "tbl"):
                options[option] = metadata[key]
                added.append(f"#| {option}: {json.dumps(' '.join(str(metadata[key]).split()), ensure_ascii=False)}")
    return "\n".join([*added, source]) if added else source


def _without_paths(text: str, lab: Path) -> str:
    return text.replace(str(lab) + os.sep, "").replace(str(lab), ".")


def jobs_of(lab: Path, campaign: str, notebooks_out: Path) -> list[Job]:
    """The notebooks of a campaign's steps, each once, in the plan's order. Raises `BadFile`, `NotFound`."""
    from lanelab import campaign as campaigns

    plan = campaigns.load(campaign)
    jobs: dict[str, Job] = {}
    for step in plan.steps:
        source = lab / "notebooks" / f"{step.step}.ipynb"
        if not source.is_file():
            names = (path.stem for path in source.parent.glob("*.ipynb"))
            raise NotFound(f"notebook of campaign {campaign!r}", step.step, names, hint="steps stand in campaign.yaml")
        if step.step not in jobs:
            jobs[step.step] = Job(
                source=source,
                campaign=campaign,
                step=step.step,
                lane=plan.lane_of(step),
                parameters=tuple(sorted((step.parameters or {}).items())),
                campaign_dir=lab / "data" / "campaigns" / campaign,
                target=notebooks_out / campaign / f"{step.step}.ipynb",
            )
    return list(jobs.values())
