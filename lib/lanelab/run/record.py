"""`run.json`: what a run was, what it did and what it left.

It is written twice: when the run begins (`running`, with the runner's process) and when it ends,
each time by rename. A runner that was killed leaves `running` behind; whoever reads the record then
finds its process gone and reads `died`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lanelab.errors import BadFile
from lanelab.receipts.canonical import digest_of, parse_json, without_nan
from lanelab.receipts.files import write_atomic

SCHEMA = "lanelab/run/1"
NAME = "run.json"
Status = Literal["running", "ok", "failed", "died", "timeout", "interrupted"]


class Part(BaseModel):
    """Base of the record's parts."""

    model_config = ConfigDict(extra="forbid")


class Cells(Part):
    """Cell ids: `executed` ran to their end, `stopped_in` began and did not, the rest never began."""

    executed: list[str] = []
    stopped_in: str | None = None
    not_executed: list[str] = []


class Value(Part):
    """A parameter as the kernel got it; `passed` tells a chosen value from a default."""

    type: str
    value: Any
    passed: bool


class Runner(Part):
    """The process that runs the notebook; pid and start time together name it."""

    pid: int
    started: float  # seconds since the epoch, of the process


class Measured(Part):
    """What a workload of this run measures: the measure key and the inputs it was made from."""

    workload: str
    key: str
    inputs: dict[str, Any]


class Render(Part):
    """What the rendered step depends on: the render key and the inputs it was made from."""

    key: str  # the one that the site keeps its executed notebooks under
    notebook_sha256: str
    publishing_sha256: str  # the code and libraries that turn receipts into a page
    receipts_sha256: str  # the campaign's receipt files


class EndedProcess(Part):
    """A process left behind by the notebook and how it went."""

    pid: int
    command: str
    by: str


class Run(Part):
    """The record of one run. See site/docs/formats.md."""

    schema_: str = Field(SCHEMA, alias="schema")
    id: str
    status: Status
    cause: str | None = None
    reason: str | None = None
    campaign: str
    step: str
    lane: str | None = None
    kernel: str
    notebook: str  # relative to the lab, or the file's name
    notebook_sha256: str
    parameters: dict[str, Value] = {}
    measures: list[Measured] = []
    render: Render | None = None
    started: str
    finished: str | None = None
    seconds: float | None = None
    limits: dict[str, float | None] = {}
    cells: Cells = Cells()
    cell_seconds: dict[str, float] = {}
    receipts: list[str] = []
    files: dict[str, str] = {}  # name to sha256 of every other file of the folder
    versions: dict[str, str] = {}
    ended_processes: list[EndedProcess] = []
    warnings: list[str] = []
    runner: Runner | None = None
    digest: str | None = None  # of the canonical bytes without it, as a receipt's; None in older records

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    def file_bytes(self) -> bytes:
        """The record as it is stored, with its digest: indented JSON and LF."""
        body = without_nan(self.model_dump(mode="json", by_alias=True))
        # of the value that a reader gets: an integer beyond 2**53 has no canonical form as it is
        body["digest"] = digest_of(parse_json(_text(body)))
        return _text(body, indent=1) + b"\n"

    def write(self, run_dir: Path) -> None:
        """Put the record into its folder. Raises `NoSpace`."""
        write_atomic(run_dir / NAME, self.file_bytes())


def _text(body: dict[str, Any], indent: int | None = None) -> bytes:
    # half a surrogate pair, as from a file name that is no UTF-8, has no place in JSON
    return json.dumps(body, indent=indent, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def new_id(started: datetime) -> str:
    """`20260922t225030z-1f2e3d4c`: sorts by time, does not collide."""
    return f"{started.astimezone(UTC).strftime('%Y%m%dt%H%M%Sz')}-{secrets.token_hex(4)}"


def this_runner() -> Runner:
    """This process."""
    process = psutil.Process()
    return Runner(pid=process.pid, started=process.create_time())


def alive(runner: Runner | None) -> bool:
    """Whether the process of a record still runs on this machine."""
    if runner is None:
        return False
    try:
        return abs(psutil.Process(runner.pid).create_time() - runner.started) < 2.0
    except psutil.Error:
        return False


def read(run_dir: Path) -> Run:
    """The record of a run's folder; one whose runner has gone reads `died`. Raises `BadFile`."""
    path = run_dir / NAME
    try:
        run = Run.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadFile(path, first["msg"], field=".".join(str(part) for part in first["loc"])) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"is no run record: {error}") from error
    if run.status == "running" and not alive(run.runner):
        return run.model_copy(
            update={"status": "died", "cause": "runner_killed", "reason": "the runner was killed before it could end"}
        )
    return run


def of_step(campaign_dir: Path, step: str) -> list[Run]:
    """The step's runs, oldest first; a folder without a record (its runner was killed) is left out."""
    folder = campaign_dir / "runs" / step
    if not folder.is_dir():
        return []
    return [read(path) for path in sorted(folder.iterdir()) if (path / NAME).is_file()]


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
