"""One run: a notebook, executed once in a new folder, with a record that can be trusted.

Everything that can be known without a kernel is checked first (`prepare`); a refused run writes
nothing. Then the folder appears with `run.json` saying `running`, the kernel works in it, and
whatever happens (an error, a dead kernel, a limit, Ctrl-C) the same end is reached: kernel and
orphans gone, notebook, view, log and record written, the folder left alone from then on.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode

from lanelab import campaign as campaigns
from lanelab import paths
from lanelab.errors import LabError, NoSpace
from lanelab.receipts import utc_text
from lanelab.receipts.files import write_atomic
from lanelab.receipts.redact import redact_text, redact_value
from lanelab.run import orphans, parameters, plan, record
from lanelab.run.errors import Refused
from lanelab.run.marks import settle
from lanelab.run.source import INJECTED, Source, find, kernel_for, read
from lanelab.run.stopping import Stopper
from lanelab.run.verdict import Limits, Verdict, plain

if TYPE_CHECKING:
    from lanelab.run.engine import Session

OUTPUT, VIEW, LOG = "notebook.ipynb", "notebook.html", "log.txt"
MOST_LOG = 2_000_000  # bytes of log.txt that are kept


class NoLaneParameter(Refused):
    """A lane was asked for, but the notebook takes none. Data: `lane`."""


class CannotWrite(LabError):
    """The run's folder cannot be made. Data: `path`."""


@dataclass
class Order:
    """What is asked for. `texts` are parameters as a command line gives them, `values` are typed."""

    notebook: str
    campaign: str | None = None
    lane: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    kernel: str | None = None
    run_dir: Path | None = None


@dataclass
class Prepared:
    """An order that was checked: it can begin."""

    source: Source
    kernel: str
    campaign: str
    campaign_dir: Path
    base: Path
    values: dict[str, Any]
    recorded: dict[str, record.Value]
    lane: str | None
    measures: list[record.Measured]
    limits: Limits
    planned: Mapping[str, Any]  # the step's parameters in the campaign's plan, which the site renders with


@dataclass
class Result:
    """How a run ended; `run` is None if it was refused."""

    status: str
    reason: str | None
    run_dir: Path | None
    run: record.Run | None
    cells: record.Cells
    seconds: float = 0.0
    signum: int | None = None

    @property
    def exit_code(self) -> int:
        """0 only for `ok`; 130 and 143 for SIGINT and SIGTERM; 2 for `refused`."""
        if self.status == "ok":
            return 0
        if self.status == "refused":
            return 2
        return 128 + self.signum if self.status == "interrupted" and self.signum else 1

    def data(self) -> dict[str, Any]:
        """The command's answer, as DESIGN.md's contract has it, with cause and warnings."""
        return {
            "status": self.status,
            "reason": self.reason,
            "cause": self.run.cause if self.run else "refused",
            "run_dir": str(self.run_dir) if self.run_dir else None,
            "notebook": str(self.run_dir / OUTPUT) if self.run_dir else None,
            "cells": self.cells.model_dump(),
            "receipts": self.run.receipts if self.run else [],
            "seconds": self.seconds,
            "warnings": self.run.warnings if self.run else [],
        }


def refused(order: Order, error: LabError) -> Result:
    """The result of an order that `prepare` turned down."""
    cells = record.Cells()
    with contextlib.suppress(LabError):
        cells = record.Cells(not_executed=read(find(order.notebook)).code_cells)
    return Result("refused", str(error), None, None, cells)


def prepare(order: Order) -> Prepared:
    """Check everything that can be known before a kernel starts. Writes nothing.

    Raises `Refused` and other `LabError`s, one line each.
    """
    source = read(find(order.notebook))
    if not source.code_cells:
        raise Refused(f"{source.path.name} has no code cell: there is nothing to execute")
    tagged = [cell.id for cell in source.notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) > 1:
        raise Refused(
            f"{source.path.name} has {len(tagged)} cells tagged 'parameters' ({', '.join(map(repr, tagged))}): tag one"
        )
    kernel = kernel_for(source, order.kernel)
    for cell in source.notebook.cells:
        if cell.cell_type == "code" and "skip-execution" in cell.metadata.get("tags", []):
            raise Refused(f"cell {cell.id!r} is tagged 'skip-execution', but a run is ok only if every cell ran")
    texts, values = dict(order.texts), dict(order.values)
    known: dict[str, parameters.Parameter] = {}
    with contextlib.suppress(parameters.BadParameter):
        known = parameters.declared(source.notebook)
    for name, value in _planned(order, source).items():
        if name in known and name not in texts:
            values.setdefault(name, value)
    for name, asked in (("campaign", order.campaign), ("lane", order.lane)):
        if asked is None:
            continue
        if name in texts and texts[name] != asked:
            raise Refused(f"{name} is given twice: --{name} {asked!r} and -p {name}={texts[name]!r}")
        if name in known:
            texts.pop(name, None)
            values[name] = asked
        elif name == "lane":
            raise NoLaneParameter(
                f"lane {asked!r} was asked for, but {source.path.name} has no parameter 'lane'", lane=asked
            )
    chosen = parameters.chosen(source.notebook, values, texts)
    effective = {item.name: item.default for item in known.values() if item.default is not parameters.UNREADABLE}
    effective.update(chosen)
    said = effective.get("campaign") if source.of_lab else None
    name = order.campaign or (said if isinstance(said, str) else campaigns.HERE)
    campaign_dir = campaigns.folder(name)
    campaign_plan = campaigns.planned(name) if order.campaign or source.of_lab else None
    planned = (
        next((item.parameters for item in campaign_plan.steps if item.step == source.step), {}) if campaign_plan else {}
    )
    lane = effective.get("lane")
    lane = lane if isinstance(lane, str) else None
    measures = plan.measured(source, campaign_plan, lane, effective)
    if measures and effective.get("measure", True):
        plan.require_lane(source, lane)
    taken = {
        item: record.Value(type=type(value).__name__, value=redact_value(value), passed=item in chosen)
        for item, value in effective.items()
    }
    base = (order.run_dir or campaign_dir / "runs" / source.step).resolve()
    return Prepared(source, kernel, name, campaign_dir, base, chosen, taken, lane, measures, order.limits, planned)


def _planned(order: Order, source: Source) -> dict[str, Any]:
    """What the campaign that was named plans for this step: its parameters and lane; given ones come first."""
    if not order.campaign or not source.of_lab or (plan := campaigns.planned(order.campaign)) is None:
        return {}
    step = next((item for item in plan.steps if item.step == source.step), None)
    lane = plan.lane_of(step) if step else plan.lane
    return {**(step.parameters if step else {}), **({"lane": lane} if lane and not order.lane else {})}


def run(order: Order, stopper: Stopper | None = None, say: Callable[[str], None] = lambda _: None) -> Result:
    """Check, then execute. A signal ends the run as `interrupted`.

    Raises what `prepare` raises, `CannotWrite` and `NoSpace`.
    """
    ready = prepare(order)
    if stopper is not None:
        with stopper.deferred():
            return perform(ready, stopper, say)
    stopper = Stopper()
    with stopper.deferred(), stopper.listening():
        return perform(ready, stopper, say)


def perform(ready: Prepared, stopper: Stopper, say: Callable[[str], None]) -> Result:
    """Execute a prepared order while signals are deferred. Raises `CannotWrite`, `NoSpace`."""
    # papermill and nbclient take a second to import, and a refused run or a plan needs neither
    from lanelab.run.engine import Session, execute

    began = datetime.now(UTC)
    clock = time.monotonic()
    run_id = record.new_id(began)
    run_dir = ready.base / run_id
    try:
        run_dir.mkdir(parents=True)
    except OSError as error:
        raise CannotWrite(f"cannot make the run's folder {run_dir}: {error.strerror}", path=str(run_dir)) from error
    _end_abandoned(ready.base, say)
    draft = record.Run(
        id=run_id, status="running", campaign=ready.campaign, step=ready.source.step, lane=ready.lane,
        kernel=ready.kernel, notebook=_shown(ready.source.path), notebook_sha256=ready.source.sha256,
        parameters=ready.recorded, measures=ready.measures, started=utc_text(began),
        limits={"start_s": ready.limits.start_s, "cell_s": ready.limits.cell_s, "run_s": ready.limits.run_s},
        cells=record.Cells(not_executed=ready.source.code_cells), versions=plan.versions(),
        runner=record.this_runner(),
    )  # fmt: skip
    draft.write(run_dir)
    notebook = _parameterised(ready, run_id)
    warnings: list[str] = []
    family = orphans.Family(run_id)
    left: dict[int, str] = {}

    def save(current: NotebookNode) -> None:
        try:
            _write_notebook(run_dir, current)
        except (LabError, OSError) as error:
            if not any(item.startswith("autosave") for item in warnings):
                warnings.append(f"autosave failed: {error}")

    with (
        open(run_dir / LOG, "a+", encoding="utf-8", errors="replace", buffering=1) as log,
        _logging(log),
        orphans.subreaper(),
    ):
        _note(log, f"run {run_id} of {draft.notebook} in kernel {ready.kernel}")

        def tell(line: str) -> None:
            _note(log, line)
            say(line)

        session = Session(
            limits=ready.limits, stopper=stopper, working_dir=run_dir, environment=_environment(ready, run_id, run_dir),
            log=log, save=save, say=tell, started=clock,
            before_shutdown=lambda kernel: left.update(orphans.commands(family.members(kernel))),
        )  # fmt: skip
        try:
            execute(notebook, ready.kernel, session)
        finally:
            ended = orphans.sweep(family, session.kernel_pid, left)
        for item in ended:
            tell(f"left behind by the notebook and ended ({item.by}): {item.pid} {plain(item.command)}")
        verdict = _folder_kept(run_dir, _judged(session, notebook))
        _note(log, f"{verdict.status}: {verdict.why or 'every cell ran'}")
        said = _whole_log(log)
    try:
        return _close(ready, draft, run_dir, notebook, session, verdict, ended, warnings, said, clock)
    except (NoSpace, OSError) as error:
        ends: dict[str, Any] = {
            "status": "failed",
            "cause": "no_space",
            "reason": redact_text(plain(str(error))),
            "runner": None,
        }
        with contextlib.suppress(NoSpace, OSError):
            ends["files"] = _files(run_dir)
            draft.model_copy(update={**ends, "finished": utc_text(datetime.now(UTC))}).write(run_dir)
        if isinstance(error, NoSpace):
            raise
        raise CannotWrite(f"cannot end the run in {run_dir}: {error}", path=str(run_dir)) from error


def _close(
    ready: Prepared, draft: record.Run, run_dir: Path, notebook: NotebookNode, session: Session, verdict: Verdict,
    ended: list[orphans.Ended], warnings: list[str], said: str, clock: float,
) -> Result:  # fmt: skip
    from lanelab.run.view import html_view, mend_widgets

    cells = record.Cells(
        executed=session.executed,
        stopped_in=session.stopped_in,
        not_executed=[name for name in ready.source.code_cells if name not in {*session.executed, session.stopped_in}],
    )
    settle(notebook, cells, verdict, draft.id)
    mend_widgets(notebook)
    for name, count in session.streams.cut_bytes.items():
        warnings.append(f"cell {name!r}: {count} bytes of its printed text were cut")
    for name, count in session.streams.dropped_outputs.items():
        warnings.append(f"cell {name!r}: {count} outputs beyond the limit were left out")
    for name, sizes in session.streams.left_out.items():
        many = f"{len(sizes)} output{'' if len(sizes) == 1 else 's'}"
        warnings.append(f"cell {name!r}: {sum(sizes)} bytes of {many} too large to keep were left out")
    if ended:
        warnings.append(f"{len(ended)} process{'' if len(ended) == 1 else 'es'} left behind by the notebook: ended")
    _write_notebook(run_dir, notebook)
    why = redact_text(verdict.why) if verdict.why else None
    try:
        line = why or f"all {len(cells.executed)} cells ran"
        page = html_view(_redacted(notebook), title=f"{draft.step} · run {draft.id}", status=verdict.status, line=line)
        write_atomic(run_dir / VIEW, _encoded(page))
    except Exception as error:  # a view is a convenience: its template or a cell's markup must not fail a run
        warnings.append(f"no HTML view: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    write_atomic(run_dir / LOG, _encoded(redact_text(said)))
    seconds = round(time.monotonic() - clock, 3)
    final = draft.model_copy(
        update={
            "status": verdict.status, "cause": verdict.cause, "reason": why, "finished": utc_text(datetime.now(UTC)),
            "seconds": seconds, "cells": cells, "cell_seconds": session.cell_seconds,
            "receipts": plan.receipts_of_run(ready.campaign_dir, run_dir),
            "render": plan.render(ready.source, ready.campaign_dir, ready.planned), "files": _files(run_dir),
            "ended_processes": [
                record.EndedProcess(pid=item.pid, command=redact_text(plain(item.command)), by=item.by) for item in ended
            ],
            "warnings": [redact_text(item) for item in warnings], "runner": None,
        }
    )  # fmt: skip
    final.write(run_dir)
    for name in (OUTPUT, VIEW, LOG, record.NAME):
        with contextlib.suppress(OSError):
            (run_dir / name).chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    return Result(verdict.status, why, run_dir, final, cells, seconds, session.stopper.signum)


def _folder_kept(run_dir: Path, verdict: Verdict) -> Verdict:
    """A notebook that removed its own folder has removed what a run is for: it did not end well."""
    gone = [name for name in (record.NAME, LOG) if not (run_dir / name).is_file()]
    if not gone:
        return verdict
    why = "the run's folder was removed by the notebook"
    if len(gone) == 1:
        why = f"{gone[0]} was removed from the run's folder by the notebook"
    if verdict.status == "ok":
        return Verdict("failed", "folder_removed", why)
    return Verdict(verdict.status, verdict.cause, f"{verdict.why or verdict.status}; {why}")


def _whole_log(log: IO[str]) -> str:
    """What the log's file says, also if it has no name any more; of a flood head and tail."""
    try:
        log.flush()
        end = log.seek(0, os.SEEK_END)
        log.seek(0)
        with open(os.dup(log.fileno()), "rb") as file:
            if end <= MOST_LOG:
                return file.read().decode("utf-8", "replace")
            head = file.read(MOST_LOG // 4)
            file.seek(end - 3 * MOST_LOG // 4)
            tail = file.read()
    except OSError as error:
        return f"the log cannot be read: {error.strerror}\n"
    cut = end - len(head) - len(tail)
    return (head + f"\n[… {cut} bytes cut here by the runner …]\n".encode() + tail).decode("utf-8", "replace")


def _judged(session: Session, notebook: NotebookNode) -> Verdict:
    """The verdict, once more against the notebook: ok needs an execution count in every cell."""
    verdict = session.verdict
    if verdict.status == "ok":
        blank = [
            cell.id
            for cell in notebook.cells
            if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None
        ]
        if blank:
            return Verdict("failed", "not_executed", f"cells without an execution count: {', '.join(blank)}")
    if verdict.cause == "kernel_died":
        code = session.kernel_exit
        how = ""
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            how = f", killed by {name}" + (" (as the host's out-of-memory killer does)" if name == "SIGKILL" else "")
        elif code is not None:
            how = f", exit code {code}"
        return Verdict(verdict.status, verdict.cause, f"{verdict.why}{how}; this is no Python error")
    return verdict


def _parameterised(ready: Prepared, run_id: str) -> NotebookNode:
    notebook = copy.deepcopy(ready.source.notebook)
    spec = notebook.metadata.get("kernelspec", {})
    shown = spec.get("display_name", ready.kernel) if spec.get("name") == ready.kernel else ready.kernel
    notebook.metadata["kernelspec"] = NotebookNode(name=ready.kernel, display_name=shown, language="python")
    notebook.metadata["papermill"] = NotebookNode(
        default_parameters={}, parameters={}, environment_variables={}, input_path=_shown(ready.source.path),
        output_path=OUTPUT,
    )  # fmt: skip
    notebook.metadata["lanelab"] = NotebookNode({**notebook.metadata.get("lanelab", {}), "run": {"id": run_id}})
    for cell in notebook.cells:
        cell.metadata.setdefault("tags", [])
    if ready.values:
        from papermill.parameterize import parameterize_notebook

        notebook = parameterize_notebook(
            notebook, ready.values, kernel_name=ready.kernel, language="python", comment="Parameters of this run"
        )
        taken = {cell.id for cell in notebook.cells}
        for cell in notebook.cells:
            if INJECTED in cell.metadata.get("tags", []) and INJECTED not in taken:
                cell["id"] = INJECTED
    return notebook


def _environment(ready: Prepared, run_id: str, run_dir: Path) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != orphans.DETACHED_MARK}
    environment.update(
        LANELAB_ROOT=str(paths.root()), LANELAB_CAMPAIGN=ready.campaign, LANELAB_STEP=ready.source.step,
        LANELAB_RUN=run_id, LANELAB_RUN_DIR=str(run_dir),
    )  # fmt: skip
    return environment


def _write_notebook(run_dir: Path, notebook: NotebookNode) -> None:
    write_atomic(run_dir / OUTPUT, _encoded(nbformat.writes(_redacted(notebook)) + "\n"))


def _redacted(notebook: NotebookNode) -> NotebookNode:
    """A copy whose outputs name no secret, host or home."""
    shown = copy.deepcopy(notebook)
    for cell in shown.cells:
        for output in cell.get("outputs", []):
            for name, value in list(output.items()):
                if name in ("text", "evalue", "traceback"):
                    output[name] = redact_value(value)
            for mime, value in output.get("data", {}).items():
                if mime.startswith("text/"):
                    output["data"][mime] = redact_value(value)
    return shown


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _files(run_dir: Path) -> dict[str, str]:
    found = {}
    for path in sorted(run_dir.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name != record.NAME and not path.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                found[path.relative_to(run_dir).as_posix()] = record.sha256_of(path)
    return found


def _shown(path: Path) -> str:
    """The path relative to the lab; of a notebook elsewhere its name alone."""
    try:
        return path.relative_to(paths.root()).as_posix()
    except ValueError:
        return path.name


def _end_abandoned(base: Path, say: Callable[[str], None]) -> None:
    """End what a run whose runner was killed has left alive; its mark tells."""
    for folder in base.iterdir():
        if not (folder / record.NAME).is_file():
            continue
        with contextlib.suppress(LabError):
            earlier = record.read(folder)
            if earlier.cause == "runner_killed":
                for item in orphans.end(orphans.marked(earlier.id)):
                    say(f"left by run {earlier.id}, whose runner was killed, and ended ({item.by}): {item.pid}")


def _note(log: IO[str], line: str) -> None:
    with contextlib.suppress(OSError):  # a full disk ends the run where its record is written, in one line
        log.write(f"{utc_text(datetime.now(UTC))} {line}\n")


@contextlib.contextmanager
def _logging(log: IO[str]) -> Iterator[None]:
    """papermill's and nbclient's own messages go to the run's log."""
    logger = logging.getLogger("papermill")
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(message)s"))
    before = (logger.propagate, logger.level)
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, _ = before
        logger.setLevel(before[1])
